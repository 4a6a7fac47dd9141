"""A depthwise convolution and the pointwise convolution that mixes its channels.

Recognises
    A `convolution` whose every group has one input channel, alone or with the epilogue of `conv_bn_activation` (bias, batch norm,
    activation), and the 1x1 `convolution` that reads its result, with its own epilogue and residual: in any spelling of both,
    channels first or as the recorded result has them, positions counted along several axes or along one.

Why it pays
    A block of the depthwise result is used up by the pointwise products while it is in the cache; apart, all of it is written
    and read again.

Declines when
    Nothing of its own: it stands on `convolution` and declines with it.

Differs from the recorded ops
    Where the factor of a batch norm is infinite (its scale, or a variance of minus epsilon) and the recorded ops fold it
    (`x * k + (shift - mean * k)`): the kernel centres first and gives an infinity for a recorded NaN.

Not recognised
    A residual between the two. Several results per channel with nothing between the two that puts them in one axis. A pointwise layer written as a product over the last axis, or as a bare product of bare results: that is `linear`. Pointwise
    convolutions with groups or a stride.

Source
    Howard et al., MobileNets (arXiv 1704.04861), section 3.1; Sandler et al., MobileNetV2 (arXiv 1801.04381).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching.facts import ConvolutionFacts, DepthwisePointwiseFacts, EpilogueFacts
from topos_core.matching.formula import Arrays, convolve_and_finish
from topos_core.matching.joining import joined, match_at
from topos_core.matching.layout import order_of
from topos_core.matching.match import Match
from topos_core.matching.pattern import Example, Pattern
from topos_core.patterns import conv_bn_activation, convolution
from topos_core.tape.tape import Tape

if TYPE_CHECKING:
    from topos_core.matching.context import Context

IDENTIFIER = "depthwise_pointwise"
CHEAP = ("none", "relu", "relu6", "hardswish")


def find(context: Context, root: int, /) -> Match | None:
    """Gives the pair of convolutions whose second one, with its epilogue, ends at `root`."""
    pointwise = _convolved(context, root)
    if pointwise is None or not is_pointwise(_finished(pointwise).convolution):
        return None
    depthwise = _convolved(context, pointwise.bindings["x"])
    if depthwise is None:
        return None
    facts = DepthwisePointwiseFacts(_finished(depthwise), _finished(pointwise))
    first, second = facts.depthwise.convolution, facts.pointwise.convolution
    if not is_depthwise(first) or facts.depthwise.residual:
        return None
    if order_of(facts.depthwise.result, (("g", "f"),)) != order_of(second.image, (("f",),)):
        return None
    bindings = {"x": depthwise.bindings["x"]}
    for name, match in (("depthwise", depthwise), ("pointwise", pointwise)):
        bindings |= {f"{name}_{part}": value for part, value in match.bindings.items() if part != "x"}
    return joined(context, IDENTIFIER, root, [depthwise, pointwise], bindings, facts)


def evaluate(facts: DepthwisePointwiseFacts, arrays: Arrays) -> dict[str, np.ndarray]:
    """Computes the match's own formula."""
    mixed = convolve_and_finish(facts.depthwise, {**part_of("depthwise", arrays), "x": arrays["x"]})
    return {"root": convolve_and_finish(facts.pointwise, {**part_of("pointwise", arrays), "x": mixed})}


def work(tape: Tape, match: Match) -> Work:
    """Counts both convolutions and their epilogues; only the second result is written."""
    total = Work(bytes_written=tape.type_of(match.root).bytes)
    for facts in (match.facts.depthwise, match.facts.pointwise):
        size = math.prod(facts.result.shape)
        taps = math.prod(window.size for window in facts.convolution.windows)
        steps = facts.bias + len(facts.steps) + 2 * (facts.norm is not None) + facts.residual
        steps += facts.activation != "none"
        total += Work(
            flops=size * (2 * facts.convolution.in_channels * taps + steps),
            transcendentals=0 if facts.activation in CHEAP else size,
        )
    return total + Work(bytes_read=sum(tape.type_of(value).bytes for value in set(match.bindings.values())))


def part_of(name: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Gives what is bound of one of the two convolutions, by its own names."""
    return {key.removeprefix(f"{name}_"): value for key, value in arrays.items() if key.startswith(f"{name}_")}


def is_pointwise(facts: ConvolutionFacts) -> bool:
    """Says whether a convolution mixes channels alone."""
    plain = all((w.size, w.stride, w.low, w.high, w.base_dilation) == (1, 1, 0, 0, 1) for w in facts.windows)
    return plain and facts.groups == 1


def is_depthwise(facts: ConvolutionFacts) -> bool:
    """Says whether every group of a convolution has one input channel, and a window."""
    return facts.groups > 1 and facts.in_channels == 1 and any(window.size > 1 for window in facts.windows)


def _convolved(context: Context, value: int) -> Match | None:
    """Gives the convolution with all of the epilogue that ends at a value."""
    finished = match_at(context, conv_bn_activation.IDENTIFIER, value)
    return finished or match_at(context, convolution.IDENTIFIER, value)


def _finished(match: Match) -> EpilogueFacts:
    """Gives the facts of a convolution with an epilogue, be it an empty one."""
    facts = match.facts
    return facts if isinstance(facts, EpilogueFacts) else EpilogueFacts(facts, facts.result, False, None, False, "none")


def _places(context: Context) -> Collection[int]:
    """Lists the values that come from a pointwise convolution."""
    stages = context.once(conv_bn_activation.stages)
    return [value for value, stage in stages.items() if is_pointwise(stage.convolution.facts)]


def _depth(x: Any, w: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    return (windows * w[None, :, None, None]).sum(axis=(-2, -1))


def _plain(x: Any, w: Any, p: Any) -> Any:
    return np.einsum("bchw,oc->bohw", _depth(x, w), p)


def _mobilenet(x: Any, w: Any, b: Any, p: Any, c: Any) -> Any:
    y = np.maximum(_depth(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), w) + b[:, None, None], 0)
    return np.maximum(np.einsum("bchw,oc->bohw", y, p) + c[:, None, None], 0)


def _pointwise_first(x: Any, w: Any, p: Any) -> Any:
    return _depth(np.einsum("bchw,oc->bohw", x, p), w)


def _residual_between(x: Any, w: Any, p: Any, r: Any) -> Any:
    return np.einsum("bchw,oc->bohw", _depth(x, w) + r, p)


def _grouped(x: Any, w: Any, p: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(x.reshape(2, 2, 2, 6, 6), (3, 3), axis=(3, 4))
    y = np.einsum("bgchwij,gocij->bgohw", windows, w.reshape(2, 2, 2, 3, 3)).reshape(2, 4, 4, 4)
    return np.einsum("bchw,oc->bohw", y, p)


_BOTH = {"x": "f32[2,4,6,6]", "w": "f32[4,3,3]", "p": "f32[5,4]"}

PATTERN = Pattern(
    identifier=IDENTIFIER,
    documentation=__doc__ or "",
    roots=convolution.PATTERN.roots | conv_bn_activation.PATTERN.roots,
    find=find,
    where=_places,
    work=work,
    evaluate=evaluate,
    examples=(
        Example("two convolutions", _plain, _BOTH),
        Example(
            "each with a bias and relu",
            _mobilenet,
            {"x": "f32[2,4,6,6]", "w": "f32[4,3,3]", "b": "f32[4]", "p": "f32[5,4]", "c": "f32[5]"},
        ),
    ),
    counterexamples=(
        Example("the pointwise one first", _pointwise_first, {**_BOTH, "p": "f32[4,4]"}),
        Example("a residual between them", _residual_between, {**_BOTH, "r": "f32[2,4,4,4]"}),
        Example("two channels a group", _grouped, {**_BOTH, "w": "f32[4,2,3,3]"}),
    ),
)
