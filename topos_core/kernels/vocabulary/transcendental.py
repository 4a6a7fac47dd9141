"""exp, tanh, erf and what is made of them, as straight-line IR for one scalar or one vector register.

NaN gives NaN, infinities give their limits, -0 keeps its sign where the function does, subnormal results are gradual.
Largest errors over 2^22 points of [-100, 100] and all binades (tests/core/kernels/test_transcendental.py measures them):
exp 1.1 ulp in f32 and 1.1 in f64, tanh 4.5 and 3, erf as `ops/erf.py`, whose formula this is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from topos_core.kernels.vocabulary.emitter import Emitter
from topos_core.ops.erf import formula


@dataclass(frozen=True, slots=True)
class _Exp:
    """Constants of one dtype: exp(x) = 2^n * exp(r), n = round(x / log 2), r = x - n * log 2 in two parts."""

    low: float
    high: float
    magic: float
    magic_bits: int
    mantissa: int
    bias: int
    log2_high: float
    log2_low: float
    polynomial: tuple[float, ...]


# f32: Cephes expf (Moshier 1992); the parts of log 2 have few bits, so that n * log2_high is exact.
_F32: Final = _Exp(
    -104.0, 89.0, 12582912.0, 0x4B400000, 23, 127, 0.693359375, -2.12194440e-4,
    (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1),
)  # fmt: skip
# f64: Taylor to degree 14, whose remainder on |r| <= log(2) / 2 is below 2^-57.
_F64: Final = _Exp(
    -746.0, 710.0, 6755399441055744.0, 0x4338000000000000, 52, 1023, 6.93147180369123816490e-01,
    1.90821492927058770002e-10, tuple(1 / math.factorial(k) for k in range(14, 1, -1)),
)  # fmt: skip

# f32 tanh: x * P(x^2) / Q(x^2), the rational approximation of Eigen's ptanh (Eigen 3.4, MPL2 constants by minimax).
_TANH_LIMIT: Final = 7.90531110763549805
_TANH_P: Final = (
    -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08, 1.48572235717979e-05,
    6.37261928875436e-04, 4.89352455891786e-03,
)  # fmt: skip
_TANH_Q: Final = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)
_TANH_ONE: Final = 9.011  # tanh rounds to 1 from here on
_TANH_NEAR: Final = 0.35  # below it, f64 uses the series; above, 1 - exp(-2|x|) loses at most two bits


def exp(e: Emitter, x: Any) -> Any:
    """Emits exp(x)."""
    builder, rule = e.builder, _F64 if e.element_bytes == 8 else _F32
    x = e.at_most(e.at_least(x, e.constant(rule.low)), e.constant(rule.high))
    shifted = e.fma(x, e.constant(1 / math.log(2)), e.constant(rule.magic))
    n = builder.fsub(shifted, e.constant(rule.magic))
    r = e.fma(n, e.constant(-rule.log2_high), x)
    r = e.fma(n, e.constant(-rule.log2_low), r)
    y = e.add(e.fma(e.polynomial(r, rule.polynomial), e.mul(r, r), r), e.constant(1.0))
    scaled = e.scaled(y, n)
    if scaled is not None:
        return scaled
    whole = builder.sub(builder.bitcast(shifted, e.integer), e.constant(rule.magic_bits, e.integer))
    half = builder.ashr(whole, e.constant(1, e.integer))
    for part in (half, builder.sub(whole, half)):  # two factors, so that neither overflows and subnormals round once
        biased = builder.add(part, e.constant(rule.bias, e.integer))
        factor = builder.bitcast(builder.shl(biased, e.constant(rule.mantissa, e.integer)), e.type)
        y = e.mul(y, factor)
    return y


def tanh(e: Emitter, x: Any) -> Any:
    """Emits tanh(x)."""
    if e.element_bytes == 4:
        limit = e.constant(_TANH_LIMIT)
        inside = e.at_least(e.at_most(x, limit), e.constant(-_TANH_LIMIT))
        square = e.mul(inside, inside)
        ratio = e.mul(inside, e.div(e.polynomial(square, _TANH_P), e.polynomial(square, _TANH_Q)))
        saturated = e.builder.fcmp_ordered(">=", absolute(e, x), e.constant(_TANH_ONE))
        return e.builder.select(saturated, with_sign_of(e, e.constant(1.0), x), ratio)
    magnitude = absolute(e, x)
    decay = exp(e, e.mul(magnitude, e.constant(-2.0)))
    far = e.div(e.sub(e.constant(1.0), decay), e.add(e.constant(1.0), decay))
    square = e.mul(x, x)
    near = e.fma(e.mul(e.polynomial(square, _tanh_series(16)), square), x, x)
    small = e.builder.fcmp_ordered("<", magnitude, e.constant(_TANH_NEAR))
    return with_sign_of(e, e.builder.select(small, near, far), x)


def erf(e: Emitter, x: Any) -> Any:
    """Emits erf(x) by the formula of `ops/erf.py`."""
    rule = formula("f64" if e.element_bytes == 8 else "f32")
    near = e.fma(x, e.polynomial(e.mul(x, x), rule.small), x)
    magnitude = absolute(e, x)
    decay = exp(e, e.polynomial(e.at_most(magnitude, e.constant(rule.saturated)), rule.large))
    far = with_sign_of(e, e.sub(e.constant(1.0), decay), x)
    return e.builder.select(e.builder.fcmp_ordered("<=", magnitude, e.constant(rule.edge)), near, far)


def sigmoid(e: Emitter, x: Any) -> Any:
    """Emits 1 / (1 + exp(-x))."""
    one = e.constant(1.0)
    return e.div(one, e.add(one, exp(e, e.mul(x, e.constant(-1.0)))))


def absolute(e: Emitter, x: Any) -> Any:
    """Emits |x|."""
    bits = 8 * e.element_bytes
    clear = e.constant((1 << (bits - 1)) - 1, e.integer)
    return e.builder.bitcast(e.builder.and_(e.builder.bitcast(x, e.integer), clear), e.type)


def with_sign_of(e: Emitter, magnitude: Any, x: Any) -> Any:
    """Emits a magnitude with the sign of x."""
    bits = 8 * e.element_bytes
    sign = e.builder.and_(e.builder.bitcast(x, e.integer), e.constant(-(1 << (bits - 1)), e.integer))
    return e.builder.bitcast(e.builder.or_(e.builder.bitcast(magnitude, e.integer), sign), e.type)


def activation(e: Emitter, name: str, x: Any) -> Any:
    """Emits an activation by the name that facts use."""
    return ACTIVATIONS[name](e, x)


def _gelu_erf(e: Emitter, x: Any) -> Any:
    return _half_of(e, x, erf(e, e.mul(x, e.constant(math.sqrt(0.5)))))


def _gelu_tanh(e: Emitter, x: Any) -> Any:
    root = math.sqrt(2 / math.pi)
    inner = e.mul(x, e.fma(e.mul(x, x), e.constant(0.044715 * root), e.constant(root)))
    return _half_of(e, x, tanh(e, inner))


def _half_of(e: Emitter, x: Any, t: Any) -> Any:
    return e.mul(e.mul(x, e.constant(0.5)), e.add(e.constant(1.0), t))


def _hardswish(e: Emitter, x: Any) -> Any:
    inner = e.at_most(e.at_least(e.add(x, e.constant(3.0)), e.constant(0.0)), e.constant(6.0))
    return e.div(e.mul(x, inner), e.constant(6.0))


def _tanh_series(terms: int) -> Sequence[float]:
    """Gives the coefficients of (tanh(x) - x) / x^3 in x^2, highest power first, from tanh' = 1 - tanh^2."""
    series = [1.0]  # of tanh(x) / x in x^2
    for k in range(1, terms + 1):
        series.append(-sum(series[i] * series[k - 1 - i] for i in range(k)) / (2 * k + 1))
    return series[:0:-1]


ACTIVATIONS: Final[Mapping[str, Callable[[Emitter, Any], Any]]] = {
    "gelu_erf": _gelu_erf,
    "gelu_tanh": _gelu_tanh,
    "gelu_sigmoid": lambda e, x: e.mul(x, sigmoid(e, e.mul(x, e.constant(1.702)))),
    "silu": lambda e, x: e.mul(x, sigmoid(e, x)),
    "relu": lambda e, x: e.at_least(x, e.constant(0.0)),
    "tanh": tanh,
    "sigmoid": sigmoid,
    "hardswish": _hardswish,
    "exp": exp,
    "erf": erf,
}
"""What an epilogue can do besides clamping, and the plain functions, for tests."""
