"""A convolution with its bias, batch norm, residual and activation.

StableHLO names the convolution and the norm; the rest follows them as ordinary ops, in the root's layout from the
residual on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from topos_core.emission.builder import Builder, Ssa
from topos_core.emission.lower.elementwise import write_erf
from topos_core.emission.raises.batch_norm_inference import normalize
from topos_core.emission.raises.convolution import RESULT_LETTERS, convolve
from topos_core.emission.raises.layout import recorded
from topos_core.emission.raises.normalization import vector
from topos_core.matching.facts import EpilogueFacts
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape


def raise_match(builder: Builder, tape: Tape, match: Match, bindings: Mapping[str, Ssa]) -> Mapping[int, Ssa]:
    """Writes the chain."""
    facts: EpilogueFacts = match.facts
    convolution, shape = facts.convolution, tape.ops[match.root].type.shape
    y = convolve(builder, convolution, bindings["x"], bindings["kernel"], facts.result, None)
    feature, value = y.letters.index("f"), y.value
    if facts.bias:
        bias = vector(builder, bindings["bias"], 0.0, convolution.out_channels, value.dtype, "bias")
        value = builder.same("add", value, builder.broadcast(bias, value.shape, [feature], "biases"), word="biased")
    if facts.norm is not None:
        value = normalize(builder, value, feature, convolution.out_channels, facts.norm, bindings, "bn_", "normed")
    for k, step in enumerate(facts.steps):
        factors = vector(builder, bindings[f"step{k}"], 0.0, convolution.out_channels, value.dtype, f"step{k}")
        spread = builder.broadcast(factors, value.shape, [feature], f"step{k}_spread")
        value = builder.same(STEPS[step], value, spread, word=f"stepped{k}")
    value = recorded(builder, y._replace(value=value), facts.result, RESULT_LETTERS, shape, "laid_out")
    activate = ACTIVATIONS[facts.activation]
    if facts.residual_last:
        value = activate(builder, value)
    if facts.residual:
        value = builder.same("add", value, bindings["residual"], word="added")
    return {match.root: value if facts.residual_last else activate(builder, value)}


STEPS: Final = MappingProxyType({"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide"})


def _none(builder: Builder, x: Ssa) -> Ssa:
    return x


def _relu(builder: Builder, x: Ssa) -> Ssa:
    return builder.same("maximum", x, builder.constant(0.0, x.type, "zero"), word="relu")


def _chosen(direction: str, *, keeps: bool) -> Callable[[Builder, Ssa], Ssa]:
    """Makes a choice between x and 0 by comparing x with 0: whether x is kept where the comparison holds."""

    def choose(builder: Builder, x: Ssa) -> Ssa:
        zero = builder.constant(0.0, x.type, "zero")
        holds = builder.compare(direction, x, zero, "holds")
        return builder.select(holds, *((x, zero) if keeps else (zero, x)), word="relu")

    return choose


def _relu6(builder: Builder, x: Ssa) -> Ssa:
    return builder.same("minimum", _relu(builder, x), builder.constant(6.0, x.type, "six"), word="relu6")


def _tanh(builder: Builder, x: Ssa) -> Ssa:
    return builder.same("tanh", x, word="tanh")


def _sigmoid(builder: Builder, x: Ssa) -> Ssa:
    return builder.same("logistic", x, word="sigmoid")


def _silu(builder: Builder, x: Ssa) -> Ssa:
    return builder.same("multiply", x, _sigmoid(builder, x), word="silu")


def _sigmoid_of_exp(builder: Builder, x: Ssa) -> Ssa:
    power = builder.same("exponential", x, word="power")
    opened = builder.same("add", power, builder.constant(1.0, x.type, "one"), word="opened")
    return builder.same("divide", power, opened, word="sigmoid")


def _silu_of_exp(builder: Builder, x: Ssa) -> Ssa:
    return builder.same("multiply", x, _sigmoid_of_exp(builder, x), word="silu")


def _gelu_sigmoid_of_exp(builder: Builder, x: Ssa) -> Ssa:
    return builder.same("multiply", x, _sigmoid_of_exp(builder, _times(builder, x, 1.702, "steeper")), word="gelu")


def _gelu_sigmoid(builder: Builder, x: Ssa) -> Ssa:
    return builder.same("multiply", x, _sigmoid(builder, _times(builder, x, 1.702, "steeper")), word="gelu")


def _gelu_tanh(builder: Builder, x: Ssa) -> Ssa:
    cube = builder.same("multiply", builder.same("multiply", x, x, word="square"), x, word="cube")
    inner = builder.same("add", x, _times(builder, cube, 0.044715, "cubic"), word="inner")
    return _halved(builder, x, _tanh(builder, _times(builder, inner, math.sqrt(2 / math.pi), "argument")))


def _gelu_erf(builder: Builder, x: Ssa) -> Ssa:
    return _halved(builder, x, write_erf(builder, _times(builder, x, math.sqrt(0.5), "argument")))


def _hardswish(builder: Builder, x: Ssa) -> Ssa:
    shifted = builder.same("add", x, builder.constant(3.0, x.type, "three"), word="shifted")
    product = builder.same("multiply", x, _relu6(builder, shifted), word="product")
    return builder.same("divide", product, builder.constant(6.0, x.type, "six"), word="hardswish")


def _times(builder: Builder, x: Ssa, factor: float, word: str) -> Ssa:
    return builder.same("multiply", x, builder.constant(factor, x.type, f"{word}_factor"), word=word)


def _halved(builder: Builder, x: Ssa, gate: Ssa) -> Ssa:
    """Gives x / 2 * (1 + gate)."""
    opened = builder.same("add", gate, builder.constant(1.0, x.type, "one"), word="opened")
    return builder.same("multiply", _times(builder, x, 0.5, "half"), opened, word="gelu")


ACTIVATIONS: Final[Mapping[str, Callable[[Builder, Ssa], Ssa]]] = MappingProxyType(
    {
        "none": _none,
        "relu": _relu,
        "relu_where_positive": _chosen("GT", keeps=True),
        "relu_where_not_negative": _chosen("GE", keeps=True),
        "relu_unless_negative": _chosen("LT", keeps=False),
        "relu6": _relu6,
        "tanh": _tanh,
        "sigmoid": _sigmoid,
        "sigmoid_of_exp": _sigmoid_of_exp,
        "silu": _silu,
        "silu_of_exp": _silu_of_exp,
        "gelu_sigmoid": _gelu_sigmoid,
        "gelu_sigmoid_of_exp": _gelu_sigmoid_of_exp,
        "gelu_tanh": _gelu_tanh,
        "gelu_erf": _gelu_erf,
        "hardswish": _hardswish,
    }
)
