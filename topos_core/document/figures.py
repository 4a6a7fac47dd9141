"""Numbers as people read them: scaled, with their unit and their basis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # servers say these sentences, and load no NumPy
    from topos_core.plan.decision import Number

_TIMES: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
_SIZES: Final = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_COUNTS: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_PLURALS: Final = {"flop": "flops", "call": "calls", "op": "ops", "value": "values"}


def figure(number: Number) -> str:
    """Writes a number with its unit: `4.12 us`, `256 KiB`, `1.05 Mflops`."""
    value = number.value
    match number.unit:
        case "second":
            return _scaled(value, _TIMES, "0 s")
        case "byte":
            return f"{value:.0f} B" if abs(value) < 1 << 10 else _scaled(value, _SIZES, "0 B")
        case "share":
            return f"{value:.2g}"
    unit = number.unit if abs(value) == 1 else _PLURALS.get(number.unit, number.unit)
    if abs(value) < 10_000:
        return f"{value:g} {unit}".rstrip()
    return _scaled(value, _COUNTS, "0") + unit


def with_basis(number: Number, machine: str) -> str:
    """Writes a number and how it is known; predicted ones name their machine profile."""
    return f"{figure(number)} ({basis(number, machine)})"


def basis(number: Number, machine: str) -> str:
    """Says how a number is known."""
    return f"modelled, {machine}" if number.basis == "modelled" else number.basis


def percent(share: float) -> str:
    """Writes a share in percent."""
    return f"{100 * share:.3g} %"


def _scaled(value: float, scales: Sequence[tuple[float, str]], zero: str) -> str:
    if value == 0:
        return zero
    for scale, unit in scales:
        if abs(value) >= scale:
            return f"{value / scale:.3g} {unit}"
    scale, unit = scales[-1]
    return f"{value / scale:.3g} {unit}"
