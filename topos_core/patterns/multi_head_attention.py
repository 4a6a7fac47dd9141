"""Multi-head attention as a whole: projections, heads, attention, output projection.

Recognises
    An `attention` whose q, k and v are `linear` layers, of one value or of two (keys and values from another sequence), with the
    heads split and merged in any way, and whose result a `linear` layer projects: separate projections, one product for all
    three cut by slices or by an axis, projections to [heads, width] by einsum, flattened batch and heads, keys and values
    shared by groups of queries, each layer with or without a bias, a mask.

Why it pays
    The projections run as few large products and the scores never leave the cache.

Declines when
    Nothing of its own: it stands on its parts and declines with them.

Differs from the recorded ops
    As its `attention` does: values are added up with weights that are divided by their sum last, so that values near the largest
    number may overflow, and a scale on q or k is applied to their product.

Not recognised
    A norm or a rotary embedding between projection and scores, keys and values from two different sequences, projections
    that are the identity, heads computed one by one (with weights of their own, or cut out of one product for all: each one's
    `attention` is found), weights in front (`w @ x.T`), an output projection that keeps the heads apart (its parts are) or
    sums over positions (heads that are merged without being moved behind their positions), values of other positions than
    the keys, sequences that are mixed.

Source
    Vaswani et al., Attention Is All You Need (arXiv 1706.03762), section 3.2.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching.affine import Digit
from topos_core.matching.answers import ROOTS, places
from topos_core.matching.facts import CoreFacts, MultiHeadFacts, layer_of
from topos_core.matching.joining import joined, match_at, movement
from topos_core.matching.match import Match
from topos_core.matching.pattern import Example, Pattern
from topos_core.matching.positions import positions, refined, sums_features
from topos_core.matching.view import View, read
from topos_core.patterns import attention, linear
from topos_core.tape.tape import Tape

if TYPE_CHECKING:
    from topos_core.matching.context import Context

IDENTIFIER = "multi_head_attention"
SIDES = {"q": "query", "k": "key", "v": "value"}


def find(context: Context, root: int, /) -> Match | None:
    """Gives the block whose output projection roots at `root`."""
    output = match_at(context, "linear", root)
    if output is None:
        return None
    core = match_at(context, "attention", output.bindings["x"])
    if core is None:
        return None
    layers: dict[str, Match] = {}
    parts: dict[str, View] = {}
    moved: set[int] = set()
    for side, name in SIDES.items():
        value = core.bindings[side]
        view = context.view(value)
        layer = match_at(context, "linear", view.base)
        if layer is None:
            return None
        layers[name] = layer
        if view.base != value:
            parts[name] = view
            moved |= movement(context, value, view.base)
    sources = {name: layer.bindings["x"] for name, layer in layers.items()}
    if sources["key"] != sources["value"] or not _is_one_sequence(context, core, layers, output):
        return None
    bindings = {"x": sources["query"]}
    if sources["key"] != sources["query"]:
        bindings["context"] = sources["key"]
    for name, layer in (*layers.items(), ("output", output)):
        bindings[f"{name}_weight"] = layer.bindings["w"]
        bindings |= {f"{name}_bias": layer.bindings["bias"]} if "bias" in layer.bindings else {}
    bindings |= {name: core.bindings[name] for name in attention.MASKS if name in core.bindings}
    query, key, value_ = (layers[name].facts for name in SIDES.values())
    facts = MultiHeadFacts(core.facts, query, key, value_, output.facts, parts)
    return joined(context, IDENTIFIER, root, [*layers.values(), core, output], bindings, facts, moved)


def evaluate(facts: MultiHeadFacts, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Computes the match's own formula."""
    given = {name: arrays[name] for name in attention.MASKS if name in arrays}
    context = arrays.get("context", arrays["x"])
    projections = {"query": facts.query, "key": facts.key, "value": facts.value}
    for side, name in SIDES.items():
        y = _projected(projections[name], arrays["x"] if side == "q" else context, arrays, name)
        view = facts.parts.get(name)
        given[side] = y if view is None else read(view, y.reshape(view.base_shape))
    seen = attention.evaluate(facts.attention, given)["root"]
    return {"root": _projected(facts.output, seen, arrays, "output")}


def work(tape: Tape, match: Match) -> Work:
    """Counts the projections, each once, and the attention between them."""
    of: MultiHeadFacts = match.facts
    context = "context" if "context" in match.bindings else "x"
    sides = (
        ("query", "x", of.query),
        ("key", context, of.key),
        ("value", context, of.value),
        ("output", "", of.output),
    )
    seen = {layer_of(name, source, match.bindings, layer): layer for name, source, layer in sides}
    flops = sum(2 * layer.extents["b"] * layer.extents["r"] * layer.extents["n"] for layer in seen.values())
    e = of.attention.extents
    scores = e["b"] * e["i"] * e["j"]
    flops += 2 * scores * (e["d"] + e["e"]) + 5 * scores
    read_ = sum(tape.type_of(value).bytes for value in dict.fromkeys(match.bindings.values()))
    return Work(flops, scores, read_, tape.type_of(match.root).bytes)


def _is_one_sequence(context: Context, core: Match, layers: Mapping[str, Match], output: Match) -> bool:
    """Says whether keys and values are of the same positions, queries of the same sequences, scores and values summed over
    features, and whether the output projection sums over all heads and features of each position.
    """
    of: CoreFacts = core.facts
    seen = {
        side: positions(context, layers[name], core.bindings[side], of.layouts[side]) for side, name in SIDES.items()
    }
    q, k, v = seen["q"], seen["k"], seen["v"]
    if q is None or k is None or v is None or not k.alike(v, {"b": "b", "j": "j"}):
        return False
    if not (q.holds_features("d") and k.holds_features("d") and v.holds_features("e")):
        return False
    both = refined(q.numbers.get("b", ()), k.numbers.get("b", ()))
    if both is None:
        return False
    steps = [(one.coefficients[0], other.coefficients[0]) for one, other in zip(*both, strict=True)]
    if q.source == k.source and (q.features != k.features or any(a and b and a != b for a, b in steps)):
        return False
    numbers = {
        "b": [
            Digit(digit.extent, (abs(one) + abs(other),)) for digit, (one, other) in zip(both[0], steps, strict=True)
        ],
        "i": [Digit(digit.extent, digit.coefficients[:1]) for digit in q.numbers.get("i", ())],
        "e": [Digit(of.extents["e"], (0,))],
    }
    return sums_features(output.facts, of.result, numbers)


def _projected(layer: CoreFacts, x: np.ndarray, arrays: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    given = {"x": x, "w": arrays[f"{name}_weight"]}
    if f"{name}_bias" in arrays:
        given["bias"] = arrays[f"{name}_bias"]
    return linear.evaluate(layer, given)["root"]


def _softmax(scores: Any) -> Any:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _split(y: Any) -> Any:
    return y.reshape(2, 5, 3, 4).transpose(0, 2, 1, 3)


def _separate(x: Any, wq: Any, wk: Any, wv: Any, wo: Any, bo: Any) -> Any:
    q, k, v = (_split(x @ w) for w in (wq, wk, wv))
    seen = _softmax(q @ k.swapaxes(-1, -2) / 2.0) @ v
    return seen.transpose(0, 2, 1, 3).reshape(2, 5, 12) @ wo + bo


def _fused(x: Any, w: Any, b: Any, wo: Any) -> Any:
    q, k, v = (_split(part) for part in np.split(x @ w + b, 3, -1))
    seen = _softmax(q @ k.swapaxes(-1, -2) * 0.5) @ v
    return seen.transpose(0, 2, 1, 3).reshape(2, 5, 12) @ wo


def _one_weight(x: Any, w: Any, wv: Any, wo: Any) -> Any:
    q, k, v = (_split(x @ each) for each in (w, w.T, wv))
    return (_softmax(q @ k.swapaxes(-1, -2) / 2.0) @ v).transpose(0, 2, 1, 3).reshape(2, 5, 12) @ wo


def _no_output(x: Any, wq: Any, wk: Any, wv: Any) -> Any:
    q, k, v = (_split(x @ w) for w in (wq, wk, wv))
    return (_softmax(q @ k.swapaxes(-1, -2) * 0.5) @ v).transpose(0, 2, 1, 3).reshape(2, 5, 12) + x


def _heads_apart(x: Any, wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
    q, k, v = (_split(x @ w) for w in (wq, wk, wv))
    return (_softmax(q @ k.swapaxes(-1, -2) * 0.5) @ v) @ wo


def _merged_unmoved(x: Any, wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
    q, k, v = (_split(x @ w) for w in (wq, wk, wv))
    return (_softmax(q @ k.swapaxes(-1, -2) / 2.0) @ v).reshape(2, 5, 12) @ wo


def _values_reversed(x: Any, wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
    q, k, v = (_split(x @ w) for w in (wq, wk, wv))
    seen = _softmax(q @ k.swapaxes(-1, -2) / 2.0) @ v[:, :, ::-1]
    return seen.transpose(0, 2, 1, 3).reshape(2, 5, 12) @ wo


def _other_sequence(x: Any, wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
    q, k, v = (_split(x @ w) for w in (wq, wk, wv))
    seen = _softmax(q @ k[::-1].swapaxes(-1, -2) / 2.0) @ v[::-1]
    return seen.transpose(0, 2, 1, 3).reshape(2, 5, 12) @ wo


_X, _W = "f32[2,5,12]", "f32[12,12]"
_SEPARATE = {"x": _X, "wq": _W, "wk": _W, "wv": _W, "wo": _W}

PATTERN = Pattern(
    identifier=IDENTIFIER,
    documentation=__doc__ or "",
    roots=ROOTS,
    find=find,
    where=places("linear"),
    work=work,
    evaluate=evaluate,
    examples=(
        Example("separate", _separate, {"x": _X, "wq": _W, "wk": _W, "wv": _W, "wo": _W, "bo": "f32[12]"}),
        Example("one product for all three", _fused, {"x": _X, "w": "f32[12,36]", "b": "f32[36]", "wo": _W}),
        Example("keys by the queries' weight, turned", _one_weight, {"x": _X, "w": _W, "wv": _W, "wo": _W}),
    ),
    counterexamples=(
        Example("no output projection", _no_output, {"x": _X, "wq": _W, "wk": _W, "wv": _W}),
        Example("heads merged without their move", _merged_unmoved, _SEPARATE),
        Example("values from the last to the first", _values_reversed, _SEPARATE),
        Example("keys and values of another sequence of the batch", _other_sequence, _SEPARATE),
        Example("a projection of each head", _heads_apart, {"x": _X, "wq": _W, "wk": _W, "wv": _W, "wo": "f32[4,7]"}),
    ),
)
