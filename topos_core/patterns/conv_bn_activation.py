"""Convolution with its epilogue: bias, batch norm, residual and activation in the convolution's own loop.

Recognises
    A convolution (in any spelling) followed by at least one of: a bias per output channel; an inference batch norm (given
    statistics, or folded into a scale and a shift per channel); a residual of the same shape; an activation (relu as the
    maximum or as a choice by comparison, told apart by what a NaN gives, relu6, tanh, sigmoid, silu, hardswish, gelu by
    tanh, erf or sigmoid; a sigmoid also by `exp(-logaddexp(0, -x))`, by the softplus of -x, or chosen by the sign of x so that
    no power of e overflows). In this order, or with the residual last; operands commuted, reshape and permute between them.
    Bias and residual may also stand among the taps of a convolution that is summed slice by slice: a sum that begins with
    them, or with an array of zeros.

Why it pays
    Each step of the epilogue reads and writes the whole result once more; in the convolution's loop it costs a register.

Declines when
    Nothing of its own: it stands on `convolution` and declines with it.

Differs from the recorded ops
    Where the batch norm's factor is infinite (its scale, or a variance of minus epsilon) and the recorded ops fold it
    (`x * k + (shift - mean * k)`): the kernel centres first and gives an infinity for a recorded NaN.

Not recognised
    A scalar bias. Movement after the residual. Training batch norm (its statistics need the whole result first).
    A sigmoid as `where(x >= 0, 1, e) / (1 + e)` with `e = exp(-|x|)`, the choice before the quotient. Hardswish by
    `clip(x / 6 + 0.5, 0, 1)` or by three branches, relu by a product with a mask or as `(h + abs(h)) / 2`, tanh by sigmoid or exp. Leaky relu, elu
    and other activations.

Source
    Jacob et al. 2018, section 3.2, for folding batch norm into a convolution; the order is ResNet's (He et al. 2016).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching.activation import ROOTS
from topos_core.matching.epilogue import Stage, layout_of, read_stages
from topos_core.matching.facts import EpilogueFacts
from topos_core.matching.formula import Arrays, convolve_and_finish
from topos_core.matching.match import Match, NearMiss
from topos_core.matching.pattern import Example, Pattern
from topos_core.patterns.convolution import PATTERN as CONVOLUTION
from topos_core.patterns.convolution import among
from topos_core.patterns.convolution import work as convolution_work
from topos_core.tape.tape import Tape

if TYPE_CHECKING:
    from topos_core.matching.context import Context

IDENTIFIER = "conv_bn_activation"


def find(context: Context, root: int) -> Match | NearMiss | None:
    """Gives the convolution whose epilogue ends at `root`."""
    stage = context.once(stages).get(root)
    if stage is None or not stage.applied:
        return None
    convolution = stage.convolution
    bindings = dict(convolution.bindings)
    if stage.bias is not None:
        bindings["bias"] = stage.bias
    epsilon = None
    if stage.norm is not None:
        epsilon = stage.norm.epsilon
        bindings |= {"bn_mean": stage.norm.mean, "bn_variance": stage.norm.variance}
        bindings |= {"bn_scale": stage.norm.scale} if stage.norm.scale is not None else {}
        bindings |= {"bn_shift": stage.norm.shift} if stage.norm.shift is not None else {}
    bindings |= {f"step{k}": vector for k, (_, vector) in enumerate(stage.steps)}
    if stage.residual is not None:
        bindings["residual"] = stage.residual
    facts = EpilogueFacts(
        convolution=convolution.facts,
        result=layout_of(stage),
        bias=stage.bias is not None,
        norm=epsilon,
        residual=stage.residual is not None,
        activation=stage.activation,
        residual_last=stage.residual_last,
        steps=tuple(name for name, _ in stage.steps),
        among=context.answer(CONVOLUTION, convolution.root) is not convolution,
    )
    inside = context.region(root, bindings)
    return Match(IDENTIFIER, root, bindings, inside.interior, inside.computing, {}, facts)


def work(tape: Tape, match: Match) -> Work:
    """Counts the convolution and one or two operations per element and step; the result is written once."""
    facts = match.facts
    inner = Match(CONVOLUTION.identifier, match.root, _own(match), frozenset(), frozenset(), {}, facts.convolution)
    convolution = convolution_work(tape, inner)
    size = tape.type_of(match.root).size
    steps = facts.bias + len(facts.steps) + 2 * (facts.norm is not None) + facts.residual + (facts.activation != "none")
    extra = set(match.bindings.values()) - set(_own(match).values())
    return Work(
        flops=convolution.flops + steps * size,
        transcendentals=size * (facts.activation not in ("none", "relu", "relu6", "hardswish")),
        bytes_read=convolution.bytes_read + sum(tape.type_of(value).bytes for value in extra),
        bytes_written=convolution.bytes_written,
    )


def evaluate(facts: EpilogueFacts, arrays: Arrays) -> dict[str, np.ndarray]:
    """Computes the root from the bindings' arrays and the facts alone."""
    return {"root": convolve_and_finish(facts, arrays)}


def _own(match: Match) -> dict[str, int]:
    return {name: match.bindings[name] for name in ("x", "kernel")}


def stages(context: Context) -> dict[int, Stage]:
    """Reads all epilogues of a tape, once."""
    found = [context.answer(CONVOLUTION, value) for value in context.made_by(CONVOLUTION.roots)]
    return read_stages(
        context,
        [match for match in found if isinstance(match, Match)],
        [
            one
            for value in context.forms.mixed()
            if context.is_live(value) and (one := among(context, value)) is not None
        ],
    )


def _convolved(x: Any, w: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    return np.einsum("bchwij,ocij->bohw", windows, w)


def _examples() -> tuple[Example, ...]:
    def bias(x: Any, w: Any, b: Any) -> Any:
        return _convolved(x, w) + b[:, None, None]

    def relu(x: Any, w: Any) -> Any:
        return np.maximum(_convolved(x, w), 0)

    def commuted(x: Any, w: Any, b: Any) -> Any:
        return np.maximum(0, b.reshape(1, 4, 1, 1) + _convolved(x, w))

    def residual(x: Any, w: Any, b: Any, r: Any) -> Any:
        return np.maximum(r + (_convolved(x, w) + b[:, None, None]), 0)

    def silu(x: Any, w: Any) -> Any:
        y = _convolved(x, w)
        return y / (1 + np.exp(-y))

    image, kernel, vector = "f32[2,3,6,6]", "f32[4,3,3,3]", "f32[4]"
    return (
        Example("bias", bias, {"x": image, "w": kernel, "b": vector}),
        Example("relu", relu, {"x": image, "w": kernel}),
        Example("bias and relu, commuted", commuted, {"x": image, "w": kernel, "b": vector}),
        Example("bias, residual and relu", residual, {"x": image, "w": kernel, "b": vector, "r": "f32[2,4,4,4]"}),
        Example("silu", silu, {"x": image, "w": kernel}),
    )


def _counterexamples() -> tuple[Example, ...]:
    def plain(x: Any, w: Any) -> Any:
        return _convolved(x, w)

    def bias_by_column(x: Any, w: Any, b: Any) -> Any:
        return _convolved(x, w) * b

    def leaky(x: Any, w: Any) -> Any:
        y = _convolved(x, w)
        return np.maximum(y, 0.1 * y)

    image, kernel = "f32[2,3,6,6]", "f32[4,3,3,3]"
    return (
        Example("nothing follows", plain, {"x": image, "w": kernel}),
        Example("scaled by column", bias_by_column, {"x": image, "w": kernel, "b": "f32[4]"}),
        Example("leaky relu", leaky, {"x": image, "w": kernel}),
    )


PATTERN = Pattern(
    identifier=IDENTIFIER,
    documentation=__doc__ or "",
    roots=frozenset(("add", "sub", "mul", "div", "neg")) | ROOTS,
    find=find,
    work=work,
    evaluate=evaluate,
    examples=_examples(),
    counterexamples=_counterexamples(),
)
