"""Norms whose scale and shift are multiplied out, as they are written where statistics and affine are folded by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from topos_core.matching.declared import Form


def folded(x: Any, mean: Any, root: Any, scale: Any, shift: Any) -> Any:
    """Gives the affine folded into one factor: `x * k + (shift - mean * k)`."""
    k = root if scale is None else scale * root
    return x * k - mean * k if shift is None else x * k + (shift - mean * k)


def multiplied_out(x: Any, mean: Any, root: Any, scale: Any, shift: Any) -> Any:
    """Gives `x * scale * root + (shift - mean * scale * root)`, where no factor is computed for both."""
    return folded(x, mean, root * scale, None, shift)


def scaled_last(x: Any, mean: Any, root: Any, scale: Any, shift: Any) -> Any:
    """Gives `(x * root - mean * root) * scale + shift`."""
    y = (x * root - mean * root) * scale
    return y if shift is None else y + shift


def forms(*formulas: Callable[..., Any]) -> tuple[Form, ...]:
    """Gives the forms of a norm with a scale whose products the program multiplies in any order."""
    return tuple(Form(formula, required=frozenset(("scale",)), silent=True, flat=True) for formula in formulas)
