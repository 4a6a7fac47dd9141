"""Gated linear unit: one projection of x, activated, times another one, and the projection back.

Recognises
    `activation(x @ gate) * (x @ up)` and, where it follows, `(...) @ down`; the activation is silu, gelu (by erf or tanh), relu
    or the logistic function, in the spellings of `silu` and `gelu`, halves by themselves too; each layer with or without a bias;
    gate and up as two products, or as two parts of one, cut in any way.

Why it pays
    Both projections read x once, and gate, up and their product never leave the cache.

Declines when
    Nothing beside the common rules.

Not recognised
    Gates that are no projections (`silu` alone, an attention gate), a scale between the layers, a gate of other positions
    than what it gates (rows that are reversed, turned or halved), a projection back that sums over positions. Weights that
    stand in front (`g @ x`) where nothing says which operand is the weight. Gelu by sigmoid; a logistic function as
    `exp(x) / (1 + exp(x))`: each projection is found with its own activation.

Source
    Shazeer, GLU Variants Improve Transformer (arXiv 2002.05202).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching.affine import Digits
from topos_core.matching.answers import ROOTS, answers, places
from topos_core.matching.attempt import Attempt
from topos_core.matching.binding import Found
from topos_core.matching.core import Keys
from topos_core.matching.declared import Form, Term
from topos_core.matching.facts import CoreFacts, GatedMlpFacts, layer_of
from topos_core.matching.formula import WITHOUT_FUNCTIONS
from topos_core.matching.joining import joined, match_at, movement
from topos_core.matching.match import Match
from topos_core.matching.pattern import Example, Pattern
from topos_core.matching.positions import positions, sums_features
from topos_core.matching.summary import core_facts, evaluated
from topos_core.matching.view import View, read
from topos_core.patterns import linear
from topos_core.patterns.silu import SIGMOIDS
from topos_core.recording.elementary import erf
from topos_core.tape.tape import Tape

if TYPE_CHECKING:
    from topos_core.matching.context import Context

IDENTIFIER = "gated_mlp"
SLOPE, CUBIC = math.sqrt(2 / math.pi), 0.044715


def by_silu(gate: Any, up: Any) -> Any:
    """`gate * sigmoid(gate) * up`."""
    return gate / (1 + np.exp(-gate)) * up


def by_silu_of_exp(gate: Any, up: Any) -> Any:
    """`gate * e / (1 + e) * up` with `e = exp(gate)`."""
    power = np.exp(gate)
    return up * (gate * power / (1 + power))


def by_silu_of_tanh(gate: Any, up: Any) -> Any:
    """`0.5 * gate * (1 + tanh(gate / 2)) * up`."""
    return up * (0.5 * gate * (1 + np.tanh(0.5 * gate)))


def by_gelu_erf(gate: Any, up: Any) -> Any:
    """`0.5 * gate * (1 + erf(gate / sqrt(2))) * up`."""
    return up * (0.5 * gate * (1 + erf(gate / math.sqrt(2))))


def by_gelu_tanh(gate: Any, up: Any) -> Any:
    """`0.5 * gate * (1 + tanh(sqrt(2 / pi) * (gate + 0.044715 * gate^3))) * up`."""
    return up * (0.5 * gate * (1 + np.tanh(SLOPE * (gate + CUBIC * (gate * gate * gate)))))


def by_gelu_tanh_factored(gate: Any, up: Any) -> Any:
    """With gate drawn out of the cubic."""
    return up * (0.5 * gate * (1 + np.tanh(gate * (SLOPE + SLOPE * CUBIC * (gate * gate)))))


def by_gelu_tanh_logistic(gate: Any, up: Any) -> Any:
    """`gate * sigmoid(2 * sqrt(2 / pi) * (gate + 0.044715 * gate^3)) * up`."""
    return gate / (1 + np.exp(-2 * SLOPE * (gate + CUBIC * (gate * gate * gate)))) * up


def by_relu(gate: Any, up: Any) -> Any:
    """`max(gate, 0) * up`."""
    return up * np.maximum(gate, 0.0)


def by_logistic(gate: Any, up: Any) -> Any:
    """`sigmoid(gate) * up`."""
    return up / (1 + np.exp(-gate))


def by_silu_distributed(gate: Any, up: Any) -> Any:
    """With both halves of the form by tanh by themselves."""
    return up * (0.5 * gate + 0.5 * gate * np.tanh(0.5 * gate))


def by_gelu_erf_distributed(gate: Any, up: Any) -> Any:
    """With both halves by themselves."""
    return up * (0.5 * gate + 0.5 * gate * erf(gate / math.sqrt(2)))


def by_gelu_tanh_distributed(gate: Any, up: Any) -> Any:
    """With both halves by themselves."""
    return up * (0.5 * gate + 0.5 * gate * np.tanh(SLOPE * (gate + CUBIC * (gate * gate * gate))))


def by_logistic_of_tanh(gate: Any, up: Any) -> Any:
    """`0.5 * (1 + tanh(gate / 2)) * up`."""
    return up * (0.5 * (1 + np.tanh(0.5 * gate)))


def _without_overflow() -> Iterator[tuple[Callable[..., Any], str]]:
    """Gives silu and the logistic function by each sigmoid that no power of e overflows in, with their names."""
    for sigmoid in SIGMOIDS:

        def silu(gate: Any, up: Any, _sigmoid: Any = sigmoid) -> Any:
            return up * (gate * _sigmoid(gate))

        def logistic(gate: Any, up: Any, _sigmoid: Any = sigmoid) -> Any:
            return up * _sigmoid(gate)

        yield from ((silu, "silu"), (logistic, "sigmoid"))


_ACTIVATIONS: Mapping[Callable[..., Any], str] = {
    by_silu: "silu", by_silu_of_exp: "silu_of_exp", by_silu_of_tanh: "silu", by_gelu_erf: "gelu_erf",
    by_gelu_tanh: "gelu_tanh", by_gelu_tanh_factored: "gelu_tanh", by_gelu_tanh_logistic: "gelu_tanh", by_relu: "relu", by_logistic: "sigmoid",
    by_silu_distributed: "silu", by_gelu_erf_distributed: "gelu_erf", by_gelu_tanh_distributed: "gelu_tanh", by_logistic_of_tanh: "sigmoid",
    **dict(_without_overflow()),
}  # fmt: skip
_FORMULAS = {
    "silu": by_silu, "silu_of_exp": by_silu_of_exp, "gelu_erf": by_gelu_erf, "gelu_tanh": by_gelu_tanh, "relu": by_relu, "sigmoid": by_logistic,
}  # fmt: skip


def own(keys: Keys, attempt: Attempt) -> bool:
    """Says whether the two sides of a product are different values."""
    return attempt.bound["gate"] != attempt.bound["up"]


def facts(found: Found) -> CoreFacts | None:
    """Gives the facts of a product, with its activation."""
    return core_facts(found, activation=_ACTIVATIONS[found.template.form])


def find(context: Context, root: int, /) -> Match | None:
    """Gives the gated layer at `root`: with the projection back where `root` is that."""
    down = match_at(context, "linear", root)
    if down is not None:
        gated = _gated(context, down.bindings["x"])
        if gated is None:
            return None
        product, numbers = gated
        if not sums_features(down.facts, product.facts.product.result, numbers):
            return None
        bindings = {**product.bindings, "down_weight": down.bindings["w"]}
        bindings |= {"down_bias": down.bindings["bias"]} if "bias" in down.bindings else {}
        return joined(context, IDENTIFIER, root, [product, down], bindings, replace(product.facts, down=down.facts))
    gated = _gated(context, root)
    return None if gated is None else gated[0]


def evaluate(facts: GatedMlpFacts, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Computes the match's own formula."""
    sides = {}
    for name, layer in (("gate", facts.gate), ("up", facts.up)):
        y = _layer(layer, arrays["x"], arrays, name)
        view = facts.parts.get(name)
        sides[name] = y if view is None else read(view, y.reshape(view.base_shape))
    y = evaluated(TERM.holes, facts.product, sides, "k", _FORMULAS[facts.activation])["root"]
    return {"root": y if facts.down is None else _layer(facts.down, y, arrays, "down")}


def work(tape: Tape, match: Match) -> Work:
    """Counts the projections, each once, one activation and one product per inner element."""
    of: GatedMlpFacts = match.facts
    size = of.product.extents["k"]
    total = Work(4 * size, 0 if of.activation in WITHOUT_FUNCTIONS else size, 0, tape.type_of(match.root).bytes)
    layers = {layer_of(name, "x", match.bindings, layer): layer for name, layer in (("gate", of.gate), ("up", of.up))}
    for layer in (*layers.values(), of.down):
        if layer is not None:
            total += Work(2 * layer.extents["b"] * layer.extents["r"] * layer.extents["n"])
    return total + Work(bytes_read=sum(tape.type_of(value).bytes for value in dict.fromkeys(match.bindings.values())))


def _layer(layer: CoreFacts, x: np.ndarray, arrays: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    given = {"x": x, "w": arrays[f"{name}_weight"]}
    if f"{name}_bias" in arrays:
        given["bias"] = arrays[f"{name}_bias"]
    return linear.evaluate(layer, given)["root"]


def _gated(context: Context, root: int) -> tuple[Match, Mapping[str, Digits]] | None:
    """Gives the product at `root` where both sides are projections of one value, or parts of one projection, each position
    with itself; and the digits that it has, those of features at a standstill.
    """
    inner = context.once(answers).get((IDENTIFIER, root))
    if not isinstance(inner, Match):
        return None
    layers: dict[str, Match] = {}
    parts: dict[str, View] = {}
    moved: set[int] = set()
    for side in ("gate", "up"):
        value = inner.bindings[side]
        view = context.view(value)
        layer = match_at(context, "linear", view.base)
        if layer is None:
            return None
        layers[side] = layer
        if view.base != value:
            parts[side] = view
            moved |= movement(context, value, view.base)
    gate, up = layers["gate"], layers["up"]
    if gate.bindings["x"] != up.bindings["x"]:
        return None
    at, other = (positions(context, layers[side], inner.bindings[side], inner.facts.layouts[side]) for side in layers)
    if at is None or other is None or not at.alike(other, {"k": "k"}):
        return None
    bindings = {"x": gate.bindings["x"]}
    for side, layer in layers.items():
        bindings[f"{side}_weight"] = layer.bindings["w"]
        bindings |= {f"{side}_bias": layer.bindings["bias"]} if "bias" in layer.bindings else {}
    of = GatedMlpFacts(inner.facts.options["activation"], inner.facts, gate.facts, up.facts, None, parts)
    return joined(context, IDENTIFIER, root, [inner, gate, up], bindings, of, moved), at.numbers


TERM = Term(
    formula=Form(by_silu, silent=True),
    facts=facts,
    holes={"gate": "k", "up": "k"},
    forms=tuple(Form(form, silent=True) for form in list(_ACTIVATIONS)[1:]),
    own=own,
)


def _llama(x: Any, gate: Any, up: Any, down: Any) -> Any:
    h = x @ gate
    return (h / (1 + np.exp(-h)) * (x @ up)) @ down


def _fused(x: Any, w: Any) -> Any:
    a, b = np.split(x @ w, 2, -1)
    return b * (a * (1 / (1 + np.exp(-a))))


def _one_weight(x: Any, w: Any) -> Any:
    h = x @ w
    return (h / (1 + np.exp(-h)) * (x @ w.T)) @ w


def _reversed_rows(x: Any, gate: Any, up: Any) -> Any:
    return (h := x @ gate) / (1 + np.exp(-h)) * (x @ up)[::-1]


def _turned(x: Any, gate: Any, up: Any) -> Any:
    return (h := x @ gate) / (1 + np.exp(-h)) * (x @ up).T


def _turned_before(x: Any, gate: Any, up: Any) -> Any:
    return (h := x @ gate) / (1 + np.exp(-h)) * (x.T @ up)


def _halved_rows(x: Any, w: Any) -> Any:
    a, b = np.split(x @ w, 2, 0)
    return b * (a * (1 / (1 + np.exp(-a))))


def _no_projection(a: Any, b: Any) -> Any:
    return a / (1 + np.exp(-a)) * b


_SQUARE = {"x": "f32[6,6]", "gate": "f32[6,6]", "up": "f32[6,6]"}

PATTERN = Pattern(
    identifier=IDENTIFIER,
    documentation=__doc__ or "",
    roots=ROOTS,
    find=find,
    where=places(IDENTIFIER, "linear"),
    work=work,
    evaluate=evaluate,
    examples=(
        Example("as llama has it", _llama, {"x": "f32[3,8]", "gate": "f32[8,6]", "up": "f32[8,6]", "down": "f32[6,8]"}),
        Example("both sides in one product", _fused, {"x": "f32[3,8]", "w": "f32[8,10]"}),
        Example("by a weight, and by it turned", _one_weight, {"x": "f32[3,8]", "w": "f32[8,8]"}),
    ),
    counterexamples=(
        Example("no projections", _no_projection, {"a": "f32[3,8]", "b": "f32[3,8]"}),
        Example("gated by the last rows first", _reversed_rows, _SQUARE),
        Example("gated by what is turned", _turned, _SQUARE),
        Example("gated by what is turned before its projection", _turned_before, _SQUARE),
        Example("half of the rows gate the others", _halved_rows, {"x": "f32[6,8]", "w": "f32[8,10]"}),
    ),
    term=TERM,
)
