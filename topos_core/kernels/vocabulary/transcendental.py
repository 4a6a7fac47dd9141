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
from topos_core.kernels.vocabulary.pieces import in_pieces, pieces
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


# f32: minimax of the relative error on |r| <= 0.3475, 3e-9; the parts of log 2 (Cephes expf, Moshier 1992) have few bits, so
# that n * log2_high is exact.
_F32: Final = _Exp(
    -104.0, 89.0, 12582912.0, 0x4B400000, 23, 127, 0.693359375, -2.12194440e-4,
    (0.00138142216, 0.00836889911, 0.0416684039, 0.166665196, 0.49999994, 1.0),
)  # fmt: skip
# f64: Taylor to degree 14, whose remainder on |r| <= log(2) / 2 is below 2^-57.
_F64: Final = _Exp(
    -746.0, 710.0, 6755399441055744.0, 0x4338000000000000, 52, 1023, 6.93147180369123816490e-01,
    1.90821492927058770002e-10, tuple(1 / math.factorial(k) for k in range(14, 0, -1)),
)  # fmt: skip

# f32 tanh: x * P(x^2) / Q(x^2), the rational approximation of Eigen's ptanh (Eigen 3.4, MPL2 constants by minimax).
_TANH_LIMIT: Final = 7.90531110763549805
_TANH_P: Final = (
    -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08, 1.48572235717979e-05,
    6.37261928875436e-04, 4.89352455891786e-03,
)  # fmt: skip
_TANH_Q: Final = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)
_TANH_ONE: Final = 9.011  # tanh rounds to 1 from here on
_ERF_ONE: Final = 3.92  # erf rounds to 1 from here on
_TANH_NEAR: Final = 0.35  # below it, f64 uses the series; above, 1 - exp(-2|x|) loses at most two bits

# f32 gelu by erf: x * (1/2 + x * P(t)), t = 2 x^2 / limit^2 - 1; minimax of x * P(t) - erf(x / sqrt 2) / 2 on |x| <= 5.4, 2.8e-8.
# At the limit x * P reaches 1/2, so that what is kept within [0, 1] is 0 or 1 from there on.
_GELU_LIMIT: Final = 5.4
_GELU_P: Final = (
    0.0003929261, -0.00102842378, 0.000874733611, -0.00118625339, 0.00365915196, -0.00671550911, 0.00965106767,
    -0.0139632327, 0.0196451806, -0.0257464796, 0.0321165919, -0.0392068103, 0.0484995916, -0.0653280541, 0.130928114,
)  # fmt: skip


def exp(e: Emitter, x: Any) -> Any:
    """Emits exp(x)."""
    if e.picks:
        return _picked_exp(e, x)
    builder, rule = e.builder, _F64 if e.element_bytes == 8 else _F32
    x = e.at_most(e.at_least(x, e.constant(rule.low)), e.constant(rule.high))
    shifted = e.fma(x, e.constant(1 / math.log(2)), e.constant(rule.magic))
    n = builder.fsub(shifted, e.constant(rule.magic))
    r = e.fma(n, e.constant(-rule.log2_high), x)
    r = e.fma(n, e.constant(-rule.log2_low), r)
    y = e.fma(e.polynomial(r, rule.polynomial), r, e.constant(1.0))
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


def _picked_exp(e: Emitter, x: Any, *, negative: bool = False) -> Any:
    """exp(x) = 2^(n / 16) * exp(r), n = round(16 x / log 2): a power out of a table, and three terms less."""
    x = e.at_least(x, e.constant(_F32.low))
    if not negative:
        x = e.at_most(x, e.constant(_F32.high))
    shifted = e.fma(x, e.constant(1 / math.log(2)), e.constant(_F32.magic / 16))
    n = e.builder.fsub(shifted, e.constant(_F32.magic / 16))
    if negative:
        r = e.fma(n, e.constant(-math.log(2)), x)
    else:
        r = e.fma(n, e.constant(-_F32.log2_low), e.fma(n, e.constant(-_F32.log2_high), x))
    power = e.picked([2.0 ** (k / 16) for k in range(16)], e.builder.bitcast(shifted, e.integer))
    more = e.mul(r, e.polynomial(r, (1 / 6, 0.5, 1.0)))
    return e.scaled(e.fma(power, more, power), n)


def exp_below(e: Emitter, x: Any) -> Any:
    """Emits exp(x) for x that is no larger than 0, or hardly; its relative error grows to 3 ulp at -88."""
    return _picked_exp(e, x, negative=True) if e.picks else exp(e, x)


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
    """Emits erf(x), in narrow registers by the formula of `ops/erf.py`."""
    if e.picks:
        found = in_pieces(e, x, pieces(math.erf, _ERF_ONE, 2 / math.sqrt(math.pi), 6))
        known = e.builder.fcmp_ordered("ord", x, x)
        return e.builder.select(known, with_sign_of(e, found, x), x)
    rule = formula("f64" if e.element_bytes == 8 else "f32")
    near = e.fma(x, e.polynomial(e.mul(x, x), rule.small), x)
    magnitude = absolute(e, x)
    decay = exp(e, e.polynomial(e.at_most(magnitude, e.constant(rule.saturated)), rule.large))
    far = with_sign_of(e, e.sub(e.constant(1.0), decay), x)
    return e.builder.select(e.builder.fcmp_ordered("<=", magnitude, e.constant(rule.edge)), near, far)


def sigmoid(e: Emitter, x: Any) -> Any:
    """Emits 1 / (1 + exp(-x))."""
    return _reciprocal_of_one_more(e, exp(e, e.mul(x, e.constant(-1.0))))


def _reciprocal_of_one_more(e: Emitter, x: Any) -> Any:
    one = e.constant(1.0)
    return e.div(one, e.add(one, x))


def sigmoid_of_exp(e: Emitter, x: Any) -> Any:
    """Emits exp(x) / (1 + exp(x)): NaN where exp(x) overflows."""
    power = exp(e, x)
    return e.div(power, e.add(e.constant(1.0), power))


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


def _share(e: Emitter, x: Any, half: Callable[[float], float]) -> Any:
    """Emits x * (1/2 + half(x)) for an odd function that is 1/2 from 5.4 on, where 3e-8 are left out."""
    found = in_pieces(e, x, pieces(half, _GELU_LIMIT, half(1e-6) / 1e-6, 5))
    return e.mul(x, e.add(with_sign_of(e, found, x), e.constant(0.5)))


def _half_erf(x: float) -> float:
    return 0.5 * math.erf(x / math.sqrt(2))


def _half_tanh(x: float) -> float:
    return 0.5 * math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


def _gelu_erf(e: Emitter, x: Any) -> Any:
    if e.picks:
        return _share(e, x, _half_erf)
    if e.element_bytes == 8:
        share = e.fma(erf(e, e.mul(x, e.constant(math.sqrt(0.5)))), e.constant(0.5), e.constant(0.5))
        return e.mul(x, share)
    square = e.at_most(e.mul(x, x), e.constant(_GELU_LIMIT**2))
    place = e.fma(square, e.constant(2 / _GELU_LIMIT**2), e.constant(-1.0))
    share = e.fma(x, e.polynomial(place, _GELU_P), e.constant(0.5))
    return e.mul(x, e.at_most(e.at_least(share, e.constant(0.0)), e.constant(1.0)))


def _gelu_tanh(e: Emitter, x: Any) -> Any:
    """(1 + tanh(u)) / 2 is 1 / (1 + exp(-2 u)), which does not cancel below zero."""
    if e.picks:
        return _share(e, x, _half_tanh)
    root = 2 * math.sqrt(2 / math.pi)
    minus_twice = e.mul(x, e.fma(e.mul(x, x), e.constant(-0.044715 * root), e.constant(-root)))
    return e.mul(x, _reciprocal_of_one_more(e, exp(e, minus_twice)))


def _hardswish(e: Emitter, x: Any) -> Any:
    inner = e.at_most(e.at_least(e.add(x, e.constant(3.0)), e.constant(0.0)), e.constant(6.0))
    return e.mul(x, e.div(inner, e.constant(6.0)))  # the product with 6 could overflow


def _chosen(kind: str, *, keeps: bool) -> Callable[[Emitter, Any], Any]:
    """Makes a choice between x and 0 by comparing x with 0: whether x is kept where the comparison holds."""

    def choose(e: Emitter, x: Any) -> Any:
        zero = e.constant(0.0)
        holds = e.builder.fcmp_ordered(kind, x, zero)
        return e.builder.select(holds, x, zero) if keeps else e.builder.select(holds, zero, x)

    return choose


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
    "gelu_sigmoid_of_exp": lambda e, x: e.mul(x, sigmoid_of_exp(e, e.mul(x, e.constant(1.702)))),
    "silu": lambda e, x: e.mul(x, sigmoid(e, x)),
    "silu_of_exp": lambda e, x: e.mul(x, sigmoid_of_exp(e, x)),
    "relu": lambda e, x: e.at_least(x, e.constant(0.0)),
    "relu_where_positive": _chosen(">", keeps=True),
    "relu_where_not_negative": _chosen(">=", keeps=True),
    "relu_unless_negative": _chosen("<", keeps=False),
    "tanh": tanh,
    "sigmoid": sigmoid,
    "sigmoid_of_exp": sigmoid_of_exp,
    "hardswish": _hardswish,
    "exp": exp,
    "erf": erf,
}
"""What an epilogue can do besides clamping, and the plain functions, for tests."""
