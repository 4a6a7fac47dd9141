"""Linear layer with an activation in the same loop.

Recognises
    A `linear` layer, with or without a bias, whose result goes through relu (the maximum, or a choice by comparison, told apart
    by what a NaN gives), relu6, tanh, sigmoid, silu, hardswish or gelu (by tanh, erf or sigmoid), as it is or reshaped and permuted
    (heads, columns); each in the spellings that `conv_bn_activation` has.

Why it pays
    The activation reads and writes the whole result once more; behind the product it costs a register.

Declines when
    Nothing of its own: it stands on `linear` and declines with it.

Not recognised
    A part of the layer's result that is activated. A sigmoid as `where(x >= 0, 1, e) / (1 + e)` with `e = exp(-|x|)`, the
    choice before the quotient. Hardswish by `clip(x / 6 + 0.5, 0, 1)` or by three branches, relu by a product with a mask or as `(h + abs(h)) / 2`,
    tanh by sigmoid or exp. Leaky relu, elu and other activations.

Source
    Jacob et al., Quantization and Training of Neural Networks (arXiv 1712.05877), section 2.4, for fused layers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching.activation import ROOTS, THROUGH, Leaves, read_activation
from topos_core.matching.answers import places
from topos_core.matching.facts import CoreFacts
from topos_core.matching.formula import ACTIVATIONS, WITHOUT_FUNCTIONS
from topos_core.matching.joining import chain, joined, match_at
from topos_core.matching.match import Match
from topos_core.matching.moved_layout import MOVES, moved_layout
from topos_core.matching.pattern import Example, Pattern
from topos_core.patterns import linear
from topos_core.tape.tape import Tape

if TYPE_CHECKING:
    from topos_core.matching.context import Context

IDENTIFIER = "linear_bias_activation"


def find(context: Context, root: int, /) -> Match | None:
    """Gives the linear layer whose activation ends at `root`."""
    known, likely = context.once(_layers)
    if root not in likely:
        return None
    found = read_activation(context.tape, root, lambda value: value in known)
    if found is None:
        return None
    name, leaf = found
    layer = known[leaf]
    result = moved_layout(context, layer.facts.result, ("b", "n"), layer.root, leaf)
    if result is None:
        return None
    facts = replace(layer.facts, result=result, options={"activation": name})
    return joined(context, IDENTIFIER, root, [layer], layer.bindings, facts, chain(context, root, [layer.root]))


def evaluate(facts: CoreFacts, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Computes the match's own formula."""
    y = linear.evaluate(facts, arrays)["root"]
    return {"root": ACTIVATIONS[facts.options["activation"]](y)}


def work(tape: Tape, match: Match) -> Work:
    """Counts the layer and the activation of its result."""
    layer = linear.work(tape, match)
    size = tape.type_of(match.root).size
    cheap = match.facts.options["activation"] in WITHOUT_FUNCTIONS
    return layer + Work(flops=2 * size, transcendentals=0 if cheap else size)


def _layers(context: Context) -> tuple[Mapping[int, Match], Collection[int]]:
    """Lists linear layers by root and by what moves it, one without a bias only where no layer with a bias reads it; and
    the values that may be an activation of one."""
    found = {}
    for value in sorted(places(linear.PATTERN.identifier)(context)):
        match = match_at(context, linear.PATTERN.identifier, value)
        if match is not None:
            found[value] = match
    inner = {value for match in found.values() for value in match.interior}
    layers = {value: match for value, match in found.items() if value not in inner}
    for value in context.made_by(MOVES):
        below = layers.get(context.op(value).operands[0])
        if below is not None:
            layers[value] = below
    likely: set[int] = set()
    leaves = Leaves(context.tape)
    for value in context.made_by(THROUGH | linear.PATTERN.roots):
        if context.op(value).name in ROOTS and leaves.above(value):
            likely.add(value)
        leaves.add(value, value in layers)
    return layers, likely


def ends(context: Context) -> Collection[int]:
    """Lists where an activation of a linear layer may end."""
    return context.once(_layers)[1]


def _relu(x: Any, w: Any, b: Any) -> Any:
    return np.maximum(x @ w + b, 0)


def _no_bias(x: Any, w: Any) -> Any:
    return np.tanh(x @ w)


def _batches(x: Any, w: Any) -> Any:
    return np.maximum(x @ w, 0)


def _heads(x: Any, w: Any, b: Any) -> Any:
    return np.maximum((x @ w + b).reshape(4, 2, 3).transpose(1, 0, 2), 0)


def _plain(x: Any, w: Any, b: Any) -> Any:
    return x @ w + b


def _leaky(x: Any, w: Any) -> Any:
    y = x @ w
    return np.maximum(y, 0.1 * y)


_LAYER = {"x": "f32[4,5]", "w": "f32[5,6]", "b": "f32[6]"}
_BARE = {"x": "f32[4,5]", "w": "f32[5,6]"}

PATTERN = Pattern(
    identifier=IDENTIFIER,
    documentation=__doc__ or "",
    roots=ROOTS,
    find=find,
    where=ends,
    work=work,
    evaluate=evaluate,
    examples=(
        Example("bias and relu", _relu, _LAYER),
        Example("tanh without a bias", _no_bias, _BARE),
        Example("heads", _heads, _LAYER),
        Example("batches of rows", _batches, {"x": "f32[2,4,5]", "w": "f32[5,6]"}),
    ),
    counterexamples=(Example("no activation", _plain, _LAYER), Example("leaky relu", _leaky, _BARE)),
)
