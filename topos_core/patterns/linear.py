"""Linear layer: a product with an unbatched weight, and a bias.

Recognises
    `x @ w + bias` as matmul, einsum, tensordot or the sum of a product, with any number of batch axes, flattened or not,
    heads inside the output axis, w transposed, everything transposed (`w @ x + bias[:, None]`). The bias is optional and
    runs along the output axes. Which operand is the weight is told by the bias, by parameters and constants, else by order.

Why it pays
    The product goes to the machine's matrix product in one call; the bias is added while the result is in cache.

Declines when
    It reads windows: that is a convolution.

Not recognised
    Outputs made one by one (a layer each) or summed feature by feature, a product that both operands' batch axes take part
    in (`matmul`), a bias per element or per row, an x that is padded with 0 (a `convolution`); one padded with another
    number, such as a column of ones, is bound as it is.

Source
    Rumelhart, Hinton, Williams, Learning representations by back-propagating errors (1986).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching.answers import ROOTS, finder, places
from topos_core.matching.attempt import Attempt
from topos_core.matching.binding import Found
from topos_core.matching.core import Keys
from topos_core.matching.declared import Form, Term
from topos_core.matching.facts import CoreFacts
from topos_core.matching.match import Match
from topos_core.matching.pattern import Example, Pattern
from topos_core.matching.summary import core_facts, evaluated
from topos_core.matching.view import is_overlapping, pruned
from topos_core.tape.tape import Tape


def formula(x: Any, w: Any, bias: Any) -> Any:
    """`x: [b, r] @ w: [r, n] + bias: [n]`."""
    y = x @ w
    return y if bias is None else y + bias


def own(keys: Keys, attempt: Attempt) -> bool:
    """Says whether a product is no plain scalar product."""
    return bool(attempt.labels["b"] or attempt.labels["n"])


def settled(found: Found) -> Found | None:
    """Decides which operand is the weight; None for windows."""
    if any(_is_windowed(found, hole) for hole in ("x", "w")):
        return None
    if "bias" in found.bindings or not _turned(found):
        return found
    return found.exchanged({"x": "w", "w": "x"}, {"b": "n", "n": "b"})


def evaluate(facts: CoreFacts, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Computes the match's own formula."""
    return evaluated(TERM.holes, facts, arrays, "b n", formula)


def work(tape: Tape, match: Match) -> Work:
    """A multiply-add per element of the product's inner space, and one sum per result with a bias."""
    extents = match.facts.extents
    results = extents["b"] * extents["n"]
    read = sum(tape.type_of(value).bytes for value in match.bindings.values())
    flops = 2 * results * extents["r"] + results * ("bias" in match.bindings)
    return Work(flops, 0, read, tape.type_of(match.root).bytes)


def _is_windowed(found: Found, hole: str) -> bool:
    """Says whether an operand is a convolution's: padded with 0, or windows over a pad; a pad with another number is x's own."""
    if found.attempt.bound[hole][0].kind != "window":
        return False
    view = pruned(found.keys.views[found.bindings[hole]])
    return all(bound.fill == 0 for bound in view.bounds) or is_overlapping(view)


def _turned(found: Found) -> bool:
    """Says whether what is bound as x is the weight: only it is given, or else it is the recorded right operand."""
    ops = found.keys.tape.ops
    x, w = (ops[found.bindings[hole]].name in ("parameter", "constant") for hole in ("x", "w"))
    if x != w:
        return x
    for value in sorted((found.root, *found.interior), reverse=True):
        op = ops[value]
        if op.name in ("matmul", "mul") and len(op.operands) == 2:
            for operand, hole in zip(op.operands, ("w", "x"), strict=True):
                if found.keys.funcs[operand] is found.attempt.bound[hole][0]:
                    return operand != op.operands[1] or not _leads(found, op.operands[1], found.bindings["w"])
            return False
    return False


def _leads(found: Found, value: int, binding: int) -> bool:
    """Says whether a value is a binding, moved."""
    ops = found.keys.tape.ops
    while value != binding:
        if not found.keys.is_movement(value):
            return False
        value = ops[value].operands[0]
    return True


TERM = Term(
    formula=Form(formula, silent=True),
    facts=core_facts,
    holes={"x": "b r", "w": "r n", "bias": "n"},
    optional=("bias",),
    own=own,
    settled=settled,
)


def _matmul(x: Any, w: Any, bias: Any) -> Any:
    return x @ w + bias


def _torch(x: Any, w: Any, bias: Any) -> Any:
    return bias + np.einsum("btr,nr->btn", x, w)


def _residual(x: Any, w: Any) -> Any:
    return x @ w + x


def _wrong_axis(x: Any, w: Any, bias: Any) -> Any:
    return x @ w + bias[None, :, None]


PATTERN = Pattern(
    identifier="linear",
    documentation=__doc__ or "",
    roots=ROOTS,
    find=finder("linear"),
    where=places("linear"),
    work=work,
    evaluate=evaluate,
    examples=(
        Example("matmul", _matmul, {"x": "f32[4,5]", "w": "f32[5,6]", "bias": "f32[6]"}),
        Example("einsum with a transposed weight", _torch, {"x": "f32[2,3,5]", "w": "f32[6,5]", "bias": "f32[6]"}),
    ),
    counterexamples=(
        Example("a residual is no bias", _residual, {"x": "f32[4,5]", "w": "f32[5,5]"}),
        Example(
            "a bias along a batch axis", _wrong_axis, {"x": "f32[2,4,5]", "w": "f32[5,6]", "bias": "f32[4]"}, "axis"
        ),
    ),
    term=TERM,
)
