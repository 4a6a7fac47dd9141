"""Products side by side: matrices multiplied from the left by one and the same.

Recognises
    Two or more recorded matmuls of matrices whose left operand is one value, seen through movement (transposed twice, reshaped
    twice), with right operands that need nothing of each other's results: projections to queries, keys and values without
    biases. The root is the last one's result; the others are named results `sibling0`, `sibling1` and so on. Up to 8 products.

Why it pays
    The shared operand is read once, one kernel starts instead of several, and narrow results fill whole tiles together; known
    right operands are laid beside each other beforehand.

Declines when
    It is predicted to be slower than the products one by one, which it is where they are large: the two times are told.

Not recognised
    A shared right operand, products with batch axes on both sides, products that are spelled otherwise than by matmul, biases.

Source
    Chen et al., TVM: An Automated End-to-End Optimizing Compiler for Deep Learning (OSDI 2018), section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching.closure import computes
from topos_core.matching.facts import SiblingFacts
from topos_core.matching.match import Match
from topos_core.matching.pattern import Example, Pattern
from topos_core.tape.tape import Tape

if TYPE_CHECKING:
    from topos_core.matching.context import Context

IDENTIFIER = "sibling_matmul"
MOST = 8
"""Products of one match."""


def find(context: Context, root: int, /) -> Match | None:
    """Gives the products whose last one the value is."""
    return context.once(_products).get(root)


def places(context: Context) -> Mapping[int, Match]:
    """Gives the last ones."""
    return context.once(_products)


def evaluate(facts: SiblingFacts, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Computes the match's own formula."""
    x = arrays["x"].reshape(facts.rows, facts.steps)
    weights = (arrays[f"w{number}"] for number in range(len(facts.columns)))
    return {name: x @ w for name, w in zip(facts.results, weights, strict=True)}


def work(tape: Tape, match: Match) -> Work:
    """A multiply-add per element of every product's inner space."""
    facts: SiblingFacts = match.facts
    read = sum(tape.type_of(value).bytes for value in set(match.bindings.values()))
    written = sum(tape.type_of(value).bytes for value in match.produced)
    return Work(2 * facts.rows * facts.steps * sum(facts.columns), 0, read, written)


def _products(context: Context) -> dict[int, Match]:
    """Finds all sets in one pass: products by the view that their left operand is."""
    by_left: dict[Any, list[int]] = {}
    for value in context.made_by(("matmul",)):
        op = context.op(value)
        if len(op.type.shape) == 2 and context.is_live(value):
            key = context.view(op.operands[0]), op.type.dtype, op.attributes["accumulate"]
            by_left.setdefault(key, []).append(value)
    found: dict[int, Match] = {}
    for products in by_left.values():
        chosen: list[int] = []
        for value in [*products, -1]:
            fits = value >= 0 and len(chosen) < MOST and (not chosen or _made(context, value) < chosen[0])
            if not fits:
                if len(chosen) > 1:
                    found[chosen[-1]] = _match(context, chosen)
                chosen = []
            chosen.append(value)
    return found


def _made(context: Context, product: int) -> int:
    """Gives the latest value that a product's right operand is made of; what exists before the run is made before all."""
    base = context.view(context.op(product).operands[1]).base
    return base if context.op(base).operands else -1


def _match(context: Context, products: list[int]) -> Match:
    tape = context.tape
    ops = tape.ops
    *others, root = products
    x = ops[products[0]].operands[0]
    bindings = {"x": x, **{f"w{number}": ops[value].operands[1] for number, value in enumerate(products)}}
    interior: set[int] = set()
    for value in products[1:]:
        at = ops[value].operands[0]
        base = context.view(at).base
        while at not in (x, base) and not computes(tape, at):
            interior.add(at)
            at = ops[at].operands[0]
    rows, steps = ops[x].type.shape
    facts = SiblingFacts(rows, steps, tuple(ops[value].type.shape[1] for value in products))
    named = {name: (value,) for name, value in zip(facts.results, others, strict=False)}
    inside = frozenset(interior - set(bindings.values()))
    return Match(IDENTIFIER, root, bindings, inside, frozenset((root,)), named, facts)


def _projections(x: Any, q: Any, k: Any, v: Any) -> Any:
    return x @ q, x @ k, x @ v


def _turned(x: Any, a: Any, b: Any) -> Any:
    return np.tanh(x @ a), x.T.T @ b


def _chained(x: Any, a: Any) -> Any:
    return x @ (x @ a)


def _two_left(x: Any, y: Any, a: Any) -> Any:
    return x @ a, y @ a


_SQUARE = {"x": "f32[5,6]", "a": "f32[6,7]"}

PATTERN = Pattern(
    identifier=IDENTIFIER,
    documentation=__doc__ or "",
    roots=frozenset(("matmul",)),
    find=find,
    where=places,
    work=work,
    last=True,
    evaluate=evaluate,
    examples=(
        Example(
            "three projections", _projections, {"x": "f32[5,6]", "q": "f32[6,7]", "k": "f32[6,4]", "v": "f32[6,9]"}
        ),
        Example("transposed twice", _turned, {**_SQUARE, "b": "f32[6,3]"}),
    ),
    counterexamples=(
        Example("one waits for the other", _chained, {"x": "f32[6,6]", "a": "f32[6,6]"}),
        Example("a shared right operand", _two_left, {**_SQUARE, "y": "f32[5,6]"}),
    ),
)
