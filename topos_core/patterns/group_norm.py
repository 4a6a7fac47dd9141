"""Group normalisation: mean and variance of each group of channels, over all positions.

Recognises
    `(x - mean) / sqrt(variance + epsilon) * scale + shift` where the statistics run over part of a channel axis that was
    split into groups, and over the positions, and scale or shift run along all channels; any rank, layout and spelling, as
    `layer_norm` has them.

Why it pays
    One kernel reads x twice and writes once; the recorded ops read and write it about eight times.

Declines when
    Neither scale nor shift is given (that is a `layer_norm` of the grouped value), or each channel is a group
    (`instance_norm`).

Differs from the recorded ops
    Where scale is infinite and the recorded ops fold it (`x * k + (shift - mean * k)`): the kernel centres first and gives an
    infinity for a recorded NaN.

Not recognised
    A one-pass variance `mean(x^2) - mean^2`, groups cut out one by one.

Source
    Wu, He, Group Normalization (arXiv 1803.08494).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching.answers import ROOTS, finder, places
from topos_core.matching.binding import Found
from topos_core.matching.declared import Form, Term, anchor
from topos_core.matching.facts import CoreFacts
from topos_core.matching.match import Match
from topos_core.matching.pattern import Example, Pattern
from topos_core.matching.summary import core_facts, evaluated
from topos_core.tape.tape import Tape


def formula(x: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    """Normalises `x: [n, g, c, s]` over c and s; scale and shift are [g, c]."""
    centred = x - x.mean((2, 3), keepdims=True)
    return _affine(centred / np.sqrt(anchor((centred * centred).mean((2, 3), keepdims=True)) + epsilon), scale, shift)


def centred_again(x: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    """With the variance of what is centred, which centres it once more."""
    centred = x - x.mean((2, 3), keepdims=True)
    again = centred - centred.mean((2, 3), keepdims=True)
    return _affine(centred / np.sqrt(anchor((again * again).mean((2, 3), keepdims=True)) + epsilon), scale, shift)


def facts(found: Found) -> CoreFacts | None:
    """Gives the facts of a match that has groups of several channels, and vectors along them."""
    labels = found.attempt.labels
    return core_facts(found) if labels["c"] and (labels["g"] or labels["s"]) else None


def evaluate(facts: CoreFacts, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Computes the match's own formula."""
    return evaluated(TERM.holes, facts, arrays, "n g c s", formula)


def work(tape: Tape, match: Match) -> Work:
    """Mean, centre, square and sum, scale: five operations per element, one more for each vector."""
    x, root = tape.type_of(match.bindings["x"]), tape.type_of(match.root)
    vectors = [tape.type_of(match.bindings[name]).bytes for name in ("scale", "shift") if name in match.bindings]
    groups = match.facts.extents["n"] * match.facts.extents["g"]
    return Work((5 + len(vectors)) * root.size + 3 * groups, groups, x.bytes + sum(vectors), root.bytes)


def _affine(y: Any, scale: Any, shift: Any) -> Any:
    y = y if scale is None else y * scale[:, :, None]
    return y if shift is None else y + shift[:, :, None]


TERM = Term(
    formula=Form(formula, silent=True),
    facts=facts,
    holes={"x": "n g c s", "scale": "g c", "shift": "g c"},
    optional=("scale", "shift"),
    least=frozenset(("scale", "shift")),
    constants=("epsilon",),
    family="norm",
    forms=(Form(centred_again, silent=True),),
)


def _by_hand(x: Any, scale: Any, shift: Any) -> Any:
    grouped = x.reshape(2, 3, -1)
    centred = grouped - grouped.mean(-1, keepdims=True)
    normal = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    return normal.reshape(x.shape) * scale[:, None, None] + shift[:, None, None]


def _several_axes(x: Any, scale: Any, shift: Any) -> Any:
    grouped = x.reshape(2, 3, 2, 4, 5)
    normal = (grouped - grouped.mean((2, 3, 4), keepdims=True)) * (grouped.var((2, 3, 4), keepdims=True) + 1e-5) ** -0.5
    return normal.reshape(2, 6, 4, 5) * scale.reshape(1, 6, 1, 1) + shift.reshape(1, 6, 1, 1)


def _outside(x: Any, scale: Any, shift: Any) -> Any:
    grouped = x.reshape(2, 3, -1)
    normal = (grouped - grouped.mean(-1, keepdims=True)) / (grouped.std(-1, keepdims=True) + 1e-5)
    return normal.reshape(x.shape) * scale[:, None, None] + shift[:, None, None]


_IMAGE = {"x": "f32[2,6,4,5]", "scale": "f32[6]", "shift": "f32[6]"}

PATTERN = Pattern(
    identifier="group_norm",
    documentation=__doc__ or "",
    roots=ROOTS,
    find=finder("group_norm"),
    where=places("group_norm"),
    work=work,
    evaluate=evaluate,
    examples=(Example("by hand", _by_hand, _IMAGE), Example("over several axes", _several_axes, _IMAGE)),
    counterexamples=(Example("epsilon outside the root", _outside, _IMAGE),),
    term=TERM,
)
