"""A product of two batches of matrices.

Recognises
    A sum of products over one or more axes in which both operands share batch axes, as matmul, einsum or the sum of a product:
    `q @ k.swapaxes(-1, -2)`, `np.einsum("bhqd,bhkd->bhqk", q, k)`, `(a[..., None] * b[..., None, :, :]).sum(-2)`. Axes may stand
    in any order on all sides.

Why it pays
    A product that is spelled by multiplying and adding writes and reads every single product; tiles keep sums in registers. A
    recorded matmul of such batches is called once per batch, and its operands are copied where they are not contiguous.

Declines when
    A window slides: that is a convolution. Recorded matmuls that the machine's own product does as fast are left to it.

Not recognised
    An operand without batch axes (`linear`), products of vectors alone, more than two factors.

Source
    Dongarra et al., A Set of Level 3 Basic Linear Algebra Subprograms (1990).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching.answers import ROOTS, finder, places
from topos_core.matching.attempt import Attempt
from topos_core.matching.core import Keys
from topos_core.matching.declared import Form, Term
from topos_core.matching.facts import CoreFacts
from topos_core.matching.match import Match
from topos_core.matching.pattern import Example, Pattern
from topos_core.matching.summary import core_facts, evaluated
from topos_core.tape.tape import Tape


def formula(x: Any, w: Any) -> Any:
    """`x: [t, b, r] @ w: [t, r, n]`."""
    return x @ w


def own(keys: Keys, attempt: Attempt) -> bool:
    """Says whether a product has batch axes on both sides, and rows or columns, and is none of windows."""
    labels = attempt.labels
    if not labels["t"] or not (labels["b"] or labels["n"]):
        return False
    return not any(attempt.bound[hole][0].kind == "window" for hole in ("x", "w"))


def evaluate(facts: CoreFacts, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Computes the match's own formula."""
    return evaluated(TERM.holes, facts, arrays, "t b n", formula)


def work(tape: Tape, match: Match) -> Work:
    """A multiply-add per element of the product's inner space."""
    extents = match.facts.extents
    flops = 2 * extents["t"] * extents["b"] * extents["n"] * extents["r"]
    read = sum(tape.type_of(value).bytes for value in match.bindings.values())
    return Work(flops, 0, read, tape.type_of(match.root).bytes)


TERM = Term(
    formula=Form(formula, silent=True),
    facts=core_facts,
    holes={"x": "t b r", "w": "t r n"},
    own=own,
)


def _scores(q: Any, k: Any) -> Any:
    return q @ k.swapaxes(-1, -2)


def _einsum(a: Any, b: Any) -> Any:
    return np.einsum("bij,bjk->kib", a, b)


def _spelled(a: Any, b: Any) -> Any:
    return (a[:, :, :, None] * b[:, None, :, :]).sum(2)


def _unbatched(a: Any, b: Any) -> Any:
    return a @ b


def _elementwise(a: Any, b: Any) -> Any:
    return a * b


_BATCHES = {"a": "f32[3,4,5]", "b": "f32[3,5,6]"}

PATTERN = Pattern(
    identifier="matmul",
    documentation=__doc__ or "",
    roots=ROOTS,
    find=finder("matmul"),
    where=places("matmul"),
    work=work,
    last=True,
    evaluate=evaluate,
    examples=(
        Example("scores", _scores, {"q": "f32[2,3,4,8]", "k": "f32[2,3,5,8]"}),
        Example("einsum with its axes turned", _einsum, _BATCHES),
        Example("multiplied and added", _spelled, _BATCHES),
    ),
    counterexamples=(
        Example("a weight without batches", _unbatched, {"a": "f32[3,4,5]", "b": "f32[5,6]"}),
        Example("no sum", _elementwise, {"a": "f32[3,4,5]", "b": "f32[3,4,5]"}),
    ),
    term=TERM,
)
