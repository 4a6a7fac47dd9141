"""The number that a recorded constant stands for.

`x / 72` and `x * (1 / 72)` say the same thing, but the second holds a reciprocal rounded at its dtype, and a literal such
as `1e-5` is rounded too. Coefficients are therefore kept as the float64 of what was meant: the reciprocal of a whole
number where the recorded bits are exactly that reciprocal, else the shortest decimal that reads back as those bits.
Constants of f16 and bf16 are kept as they are: so few bits mean too many things, and a product of two of them, a scale
on q and one on k, is what the program computes with.
"""

from __future__ import annotations

import math
from typing import Any, Final

from topos_core.tape.type import FLOATS, numpy_dtype

LARGEST_DIVISOR: Final = 1 << 23  # reciprocals of larger whole numbers are not told apart in float32
EXACT_INTEGER: Final = 1 << 53

_NARROW: Final = ("f16", "bf16")
_ULPS: Final = 2
_UNITS: Final = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-43}


def ideal(value: Any, dtype: str) -> float | None:
    """Gives the float64 that a constant of the given dtype stands for; None for a whole number beyond float64."""
    if dtype not in FLOATS:
        whole = int(value)
        return float(whole) if abs(whole) <= EXACT_INTEGER else None
    number = float(value)
    if not math.isfinite(number) or number == int(number) or dtype in _NARROW:
        return number
    kind = numpy_dtype(dtype)
    inverse = round(1 / number) if abs(number) > 1 / LARGEST_DIVISOR else 0
    if abs(inverse) > 1 and float(kind.type(1 / inverse)) == number:
        return 1 / inverse
    return float(str(kind.type(number))) if dtype == "f32" else number


def recorded(number: float, dtype: str) -> float:
    """Gives the number that a program of a dtype computes with for an ideal one."""
    if dtype in _NARROW:
        return number
    return float(numpy_dtype(dtype).type(number))


def tolerance(dtype: str) -> float:
    """Gives the relative distance at which two coefficients are still one: two units of the dtype, 2^-43 for float64.

    Coefficients of float64 are solved to some fifteen digits, which leaves a few of its units to arithmetic. A literal with
    fewer digits, such as 0.79788456, is another number there: the kernel would compute something else.
    """
    return _ULPS * 1.25 * _UNITS.get(dtype, _UNITS["f32"])
