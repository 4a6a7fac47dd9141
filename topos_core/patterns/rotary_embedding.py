"""Rotary position embedding: pairs of features turned by an angle that grows with the position.

Recognises
    `x * cos + turned(x) * sin`, where `turned` is `concat(-x2, x1)` of both halves or its interleaved kin (even and odd
    features), and `concat(x1 * cos - x2 * sin, x2 * cos + x1 * sin)` with one cosine and sine per pair; by minus the angle
    too, with the sign on the other half (`direction`: backwards); in any rank and layout, the tables given or constant,
    broadcast over batch and heads.

Why it pays
    One kernel reads x once and writes once; the recorded ops read and write it about six times.

Declines when
    Nothing beside the common rules.

Not recognised
    Complex multiplication, products with 2x2 matrices, a turn by `roll` and a table of signs, angles that are computed inside, a turn of a part of the
    features (the part alone is), minus a whole turn (`turned(x) * sin - x * cos`).

Source
    Su et al., RoFormer (arXiv 2104.09864).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching.answers import keys_of
from topos_core.matching.binding import found
from topos_core.matching.declared import Term
from topos_core.matching.facts import CoreFacts
from topos_core.matching.match import Match
from topos_core.matching.pattern import Example, Pattern
from topos_core.matching.rotary import Turn, attempt_of, read_turn
from topos_core.matching.summary import core_facts, evaluated
from topos_core.matching.template import templates
from topos_core.tape.tape import Tape

if TYPE_CHECKING:
    from topos_core.matching.context import Context

IDENTIFIER = "rotary_embedding"
ROOTS = frozenset(("add", "sub", "concat"))


def formula(x: Any, cos: Any, sin: Any) -> Any:
    """Turns `x: [k, p, h]`, whose p counts the two halves of each pair."""
    return x * cos + np.stack([-x[:, 1], x[:, 0]], 1) * sin


def backwards(x: Any, cos: Any, sin: Any) -> Any:
    """Turns `x: [k, p, h]` by minus the angle."""
    return x * cos + np.stack([x[:, 1], -x[:, 0]], 1) * sin


def blended(x: Any, cos: Any, sin: Any) -> Any:
    """What a match binds; the turn itself is read by `matching.rotary`."""
    return x * cos + x * sin


def find(context: Context, root: int, /) -> Match | None:
    """Gives the rotary embedding that ends at `root`."""
    turn = context.once(_turns).get(root)
    if turn is None:
        return None
    keys = keys_of(context)
    template = templates(CARRIER)[0]
    attempt = attempt_of(turn, template, keys.funcs[root], keys)
    match = None if attempt is None else found(IDENTIFIER, keys, template, root, attempt)
    options = {"direction": "backwards"} if turn.backwards else {}
    facts = None if match is None else core_facts(match, **options)
    if match is None or facts is None:
        return None
    return Match(IDENTIFIER, root, dict(match.bindings), match.interior, match.computing, {}, facts)


def evaluate(facts: CoreFacts, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Computes the match's own formula."""
    return evaluated(CARRIER.holes, facts, arrays, "k p h", backwards if _is_backwards(facts) else formula)


def _is_backwards(facts: CoreFacts) -> bool:
    """Says whether pairs are turned by minus the angle."""
    return facts.options.get("direction") == "backwards"


def work(tape: Tape, match: Match) -> Work:
    """Two products and a sum per element."""
    root = tape.type_of(match.root)
    return Work(3 * root.size, 0, sum(tape.type_of(value).bytes for value in match.bindings.values()), root.bytes)


def _turns(context: Context) -> dict[int, Turn]:
    keys = keys_of(context)
    turns: dict[int, Turn] = {}
    for value, func in enumerate(keys.funcs):
        if func.kind == "sum" or func.name == "stack":
            turn = read_turn(func)
            before = keys.coefficients[value]  # a sum's sign stands in front where its first operand is subtracted
            if turn is not None and isinstance(before, float) and _makes(keys, value):
                turns[value] = turn._replace(factor=before * turn.factor)
    return turns


def _makes(keys: Any, value: int) -> bool:
    """Says whether a value is where a function first stands: a sum, or the op that puts halves side by side."""
    return keys.tape.ops[value].name in ROOTS


def _places(context: Context) -> Collection[int]:
    return context.once(_turns)


CARRIER = Term(
    formula=blended,
    facts=core_facts,
    holes={"x": "k p h", "cos": "k p h", "sin": "k p h"},
    free=frozenset(("cos", "sin")),
)


def _halves_turned(x: Any, cos: Any, sin: Any) -> Any:
    turned = np.concatenate([-x[..., 4:], x[..., :4]], -1)
    return x * cos + turned * sin


def _half_by_half(x: Any, cos: Any, sin: Any) -> Any:
    first, second = x[..., :4], x[..., 4:]
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], -1)


def _by_minus_the_angle(x: Any, cos: Any, sin: Any) -> Any:
    turned = np.concatenate([-x[..., 4:], x[..., :4]], -1)
    return x * cos - turned * sin


def _wrong_sign(x: Any, cos: Any, sin: Any) -> Any:
    turned = np.concatenate([x[..., 4:], x[..., :4]], -1)
    return x * cos + turned * sin


_X = {"x": "f32[2,3,5,8]", "cos": "f32[5,8]", "sin": "f32[5,8]"}

PATTERN = Pattern(
    identifier=IDENTIFIER,
    documentation=__doc__ or "",
    roots=ROOTS,
    find=find,
    where=_places,
    work=work,
    evaluate=evaluate,
    examples=(
        Example("halves turned", _halves_turned, _X),
        Example("by minus the angle", _by_minus_the_angle, _X),
        Example("half by half", _half_by_half, {"x": "f32[2,3,5,8]", "cos": "f32[5,4]", "sin": "f32[5,4]"}),
    ),
    counterexamples=(Example("no sign", _wrong_sign, _X),),
)
