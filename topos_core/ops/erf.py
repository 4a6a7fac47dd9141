"""The one formula of erf that interpreter, lowering and kernels share.

    erf(x) = x + x * SMALL(x * x)                            where |x| <= EDGE
    erf(x) = sign(x) * (1 - exp(LARGE(min(|x|, SATURATED))))     elsewhere

Both polynomials are run by Horner's rule, leading coefficient first, without fma, in f32 (f16, bf16 and f32) or f64.
SMALL approximates (erf(x) - x) / x, weighted by x / erf(x); LARGE approximates log(erfc(t)), weighted by erfc(t) / erf(t):
minimax by Remez exchange at 60 digits, then rounded. Their own relative errors are 5e-10 and 1.5e-9 in f32, 2e-18 and
2e-18 in f64; with rounding the whole formula stays within 2 ulp (tests/core/ops/test_erf.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from topos_core.ops.pieces import PIECE


@dataclass(frozen=True, slots=True)
class ErfFormula:
    """Coefficients of one working dtype; polynomials hold the leading coefficient first."""

    edge: float
    saturated: float
    small: tuple[float, ...]
    large: tuple[float, ...]


F32: Final = ErfFormula(
    edge=0.9375,
    saturated=4.0,
    small=(8.267444e-05, -0.0008118071, 0.0051988293, -0.026858497, 0.11283679, -0.37612632, 0.12837917),
    large=(0.00019389251, -0.0030230859, 0.022146348, -0.103763714, -0.63737446, -1.127561, -0.00022358885),
)
F64: Final = ErfFormula(
    edge=0.9375,
    saturated=6.0,
    small=(
        -8.21983410305913e-10, 1.3929298251415953e-08, -1.6253038643609003e-07, 1.645278033272046e-06,
        -1.4925136088583265e-05, 0.0001205531398477974, -0.0008548326559836399, 0.005223977618248595,
        -0.026866170644470916, 0.11283791670951986, -0.3761263890318369, 0.12837916709551256,
    ),
    large=(
        1.2449664991430151e-12, -5.610286612660005e-11, 1.1836845126122929e-09, -1.5522406886935722e-08,
        1.4146874641019234e-07, -9.470373692041207e-07, 4.777205893105636e-06, -1.8152052042485367e-05,
        4.974948056483992e-05, -8.116187105903483e-05, -2.5077859846168174e-05, 0.000612407539116547,
        -0.0017358650084958096, 0.00025071315165718926, 0.019098571213310128, -0.10275756014294188,
        -0.6366248793293322, -1.1283781117154255, -1.005824438610437e-07,
    ),
)  # fmt: skip


def formula(dtype: str) -> ErfFormula:
    """Gives the formula that a dtype is computed with; f16 and bf16 are computed in f32 and rounded once."""
    return F64 if dtype == "f64" else F32


def erf(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Evaluates the formula, into `out` where that is given. NaN gives NaN, erf(-0) is -0."""
    result = np.empty(x.shape, x.dtype) if out is None else out
    if x.size <= PIECE or not x.flags.c_contiguous or not result.flags.c_contiguous:
        result[...] = _evaluated(x)
        return result
    flat, target = x.reshape(-1), result.reshape(-1)
    for start in range(0, x.size, PIECE):
        target[start : start + PIECE] = _evaluated(flat[start : start + PIECE])
    return result


def _evaluated(x: np.ndarray) -> np.ndarray:
    if x.dtype.itemsize == 2:
        return np.asarray(_evaluated(x.astype(np.float32)).astype(x.dtype))
    rule = F64 if x.dtype.itemsize == 8 else F32
    magnitude = np.abs(x)
    near = x + x * _horner(rule.small, x * x)
    far = 1 - np.exp(_horner(rule.large, np.minimum(magnitude, x.dtype.type(rule.saturated))))
    return np.asarray(np.where(magnitude <= x.dtype.type(rule.edge), near, np.copysign(far, x)))


def _horner(coefficients: tuple[float, ...], t: np.ndarray) -> np.ndarray:
    number = t.dtype.type
    value: np.ndarray = np.full_like(t, coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * t + number(coefficient)
    return value
