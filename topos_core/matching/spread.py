"""Norms whose scale and shift are multiplied out, as they are written where statistics and affine are folded by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from topos_core.matching.declared import Form, Lookalike, difference


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


def mean_unscaled(x: Any, mean: Any, root: Any, scale: Any, shift: Any) -> Any:
    """Gives `x * scale * root + (shift - mean * root)`."""
    y = x * scale * root - difference(mean * root)
    return y if shift is None else y + shift


def mean_undivided(x: Any, mean: Any, root: Any, scale: Any, shift: Any) -> Any:
    """Gives `x * scale * root + (shift - mean * scale)`."""
    y = x * scale * root - difference(mean * scale)
    return y if shift is None else y + shift


def mean_added(x: Any, mean: Any, root: Any, scale: Any, shift: Any) -> Any:
    """Gives `x * scale * root + (shift + mean * scale * root)`."""
    y = x * scale * root + difference(mean * scale * root)
    return y if shift is None else y + shift


def image_unscaled(x: Any, mean: Any, root: Any, scale: Any, shift: Any) -> Any:
    """Gives `x * root + (shift - mean * scale * root)`."""
    y = difference(x * root) - mean * scale * root
    return y if shift is None else y + shift


_SUBTRACTED: Final = "the mean times the factor of x, subtracted"
_UNLIKE: Final = (
    (mean_unscaled, "mean-factor", _SUBTRACTED, "the mean times the reciprocal deviation, without the scale"),
    (mean_undivided, "mean-factor", _SUBTRACTED, "the mean times the scale, without the reciprocal deviation"),
    (mean_added, "mean-sign", _SUBTRACTED, "the mean times that factor, added"),
    (image_unscaled, "scale-missing", "x times the scale and the reciprocal deviation, as the mean is",
     "x times the reciprocal deviation, without the scale"),
)  # fmt: skip


def lookalikes(statistics: Callable[..., tuple[Any, Any]]) -> tuple[Lookalike, ...]:
    """Gives the look-alikes of a norm that is multiplied out, one part of which has another factor than the rest.

    Args:
        statistics: Gives the mean and the reciprocal deviation, from the holes beside scale and shift and from epsilon.
    """
    return tuple(
        Lookalike(_of(formula, statistics), code, expected, found, required=frozenset(("scale",)), flat=True)
        for formula, code, expected, found in _UNLIKE
    )


def _of(formula: Callable[..., Any], statistics: Callable[..., tuple[Any, Any]]) -> Callable[..., Any]:
    def unlike(x: Any, scale: Any, shift: Any, **given: Any) -> Any:
        return formula(x, *statistics(x=x, **given), scale, shift)

    return unlike
