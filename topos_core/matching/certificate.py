"""The algebra certificate: a match's own formula and the recorded ops are one function, over a pair of prime fields.

The formula is recorded as a tape of its own; both tapes are then pulled at sampled and corner elements of the root and of
every named result, with the bindings as random numbers. Nothing is materialised. Agreement at n elements by chance has a
probability below (degree / 2^30)^n, so it is a proof; a difference is one too, unless something on the way has no exact
meaning in the model (a rounded constant, erf, an order), which is then named: the float check is what counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from topos_core.errors import InternalError
from topos_core.matching.catalog import patterns
from topos_core.matching.closure import computes
from topos_core.matching.coordinates import unflattened
from topos_core.matching.field import BAD, FINITE, Element, P, Q
from topos_core.matching.functions import Functions, Unprovable
from topos_core.matching.match import Match
from topos_core.matching.pull import Leaves, Pull, TooLarge, Unbound
from topos_core.recording.spec import InputSpec
from topos_core.recording.trace import trace
from topos_core.tape.tape import Tape

SAMPLES: Final = 32
NEEDED: Final = 8
"""Samples that must say something: those where a square root was asked of no square are drawn again."""
FEWER: Final = 3
"""The same where one element depends on so many others that each is drawn alone, and once all strict rounds are over."""
ROUNDS: Final = 20
STRICT: Final = 12
"""Rounds before roots and logs of no squares get an answer too: a sum of many logs would never say anything else."""
LIMIT: Final = 1 << 25
"""Elements that one pull may hold; where that is not enough there are fewer samples, and twice as much for one."""
CORNERS: Final = 5
"""Axes whose ends are combined: 2^5 corners at most."""

Answer = Literal["true", "false", "not provable"]


@dataclass(frozen=True, slots=True)
class Certificate:
    """What the algebra says of one match.

    Args:
        answer: `true` and `false` are proofs; `not provable` leaves it to the float check.
        reason: Why it is false or not provable; empty where it is true.
        samples: How many elements were compared.
        assumed: Functions and constants without an exact meaning in the model, on the way of either side.
    """

    answer: Answer
    reason: str
    samples: int
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Formula:
    """A match's own formula as a tape: its inputs stand for `leaves` of the recorded one.

    Args:
        tape: One result per produced name.
        produced: The recorded values that each result must equal; a named result may have several producers.
        leaves: By input of the formula, the bound value of the recorded tape.
    """

    tape: Tape
    produced: tuple[tuple[str, tuple[int, ...]], ...]
    leaves: Mapping[int, int]


def certify(tape: Tape, match: Match, seed: int = 0) -> Certificate:
    """Compares a match's own formula with the recorded ops, exactly."""
    try:
        formula = formula_of(tape, match)
    except Unprovable as limit:
        return Certificate("not provable", str(limit), 0)
    assumed: set[str] = set()
    compared = 0
    for name, values, result in _pairs(formula):
        for value in values:
            if tape.ops[value].type.size != formula.tape.ops[result].type.size:
                return Certificate(
                    "false", f"{name} has {formula.tape.ops[result].type}, recorded is {tape.ops[value].type}", 0
                )
            one = _compared(tape, formula, value, result, seed)
            assumed.update(one.assumed)
            compared += one.samples
            if one.answer != "true":
                return Certificate(one.answer, f"{name}: {one.reason}", compared, tuple(sorted(assumed)))
    return Certificate("true", "", compared, tuple(sorted(assumed)))


def formula_of(tape: Tape, match: Match) -> Formula:
    """Records a match's own formula.

    Raises:
        Unprovable: The pattern has no formula.
    """
    evaluate = patterns()[match.pattern].evaluate
    if evaluate is None:
        raise Unprovable(f"{match.pattern} has no formula")
    specs = {name: InputSpec(tape.type_of(value)) for name, value in match.bindings.items()}
    order: list[str] = []

    def recorded(bound: Any) -> Any:
        with np.errstate(all="ignore"):
            answer = dict(evaluate(match.facts, bound))
        order.extend(answer)
        return tuple(answer.values())

    made = trace(recorded, specs)
    produced = {"root": (match.root,), **match.named}
    missing = produced.keys() - set(order)
    if missing:
        raise InternalError(f"the formula of {match.pattern} gives no {', '.join(sorted(missing))}")
    leaves = dict(zip(made.inputs, match.bindings.values(), strict=True))
    return Formula(made, tuple((name, produced.get(name, ())) for name in order), leaves)


def _pairs(formula: Formula) -> Iterator[tuple[str, tuple[int, ...], int]]:
    for (name, values), result in zip(formula.produced, formula.tape.results, strict=True):
        yield name, values, result


def _compared(tape: Tape, formula: Formula, value: int, result: int, seed: int) -> Certificate:
    """Pulls one value on both sides until enough samples have said something."""
    shape, other = tape.ops[value].type.shape, formula.tape.ops[result].type.shape
    if 0 in shape:
        return Certificate("true", "", 0)
    count, compared = SAMPLES, 0
    assumed: set[str] = set()
    bound = {leaf: leaf for leaf in _independent(tape, set(formula.leaves.values()))}
    twins = False
    for attempt in range(ROUNDS):
        salt = seed * ROUNDS + attempt + 1
        functions = Functions(salt, lenient=attempt >= STRICT)
        random = Leaves(tape, salt * 0x9E3779B97F4A7C15)
        limit = LIMIT if count > 1 else 2 * LIMIT
        flat = _chosen(shape, count, np.random.default_rng(salt))
        try:
            recorded = Pull(tape, bound, random.at, functions, limit)
            left = recorded.at(value, unflattened(flat, shape))
            right = Pull(formula.tape, formula.leaves, recorded.at, functions, limit).at(
                result, unflattened(flat, other)
            )
        except Unbound:
            if twins:
                bound = {value: value for value in (*tape.inputs, *tape.parameters)}
            else:  # a value that was computed twice stands for either
                bound, twins = _with_twins(tape, bound), True
            continue
        except Unprovable as limit:
            return Certificate("not provable", str(limit), compared, tuple(sorted(assumed)))
        except TooLarge:
            if count == 1:
                return Certificate("not provable", "one element depends on too many others", compared)
            count = max(count // 4, 1)
            continue
        assumed |= functions.assumed
        if attempt >= STRICT:
            assumed.add("roots and logs of negative numbers")
        firm, equal = _agreement(left, right, flat.size)
        if functions.infinite and _bad(left, flat.size) != _bad(right, flat.size):
            reason = "infinities meet on one side alone"
            return Certificate("not provable", reason, compared, tuple(sorted(assumed)))
        compared += int(firm.sum())
        if not equal[firm].all():
            wrong = int(flat[int(np.flatnonzero(firm & ~equal)[0])])
            at = ", ".join(str(int(k)) for k in unflattened(np.asarray(wrong), shape))
            if assumed:
                reason = f"differs at [{at}], on a way through {', '.join(sorted(assumed))}"
                return Certificate("not provable", reason, compared, tuple(sorted(assumed)))
            return Certificate("false", f"differs at [{at}]", compared)
        if compared >= (NEEDED if attempt != STRICT - 1 and count > 1 else FEWER):
            return Certificate("true", "", compared, tuple(sorted(assumed)))
    return Certificate("not provable", f"only {compared} samples say anything", compared, tuple(sorted(assumed)))


def _independent(tape: Tape, bound: set[int]) -> set[int]:
    """Leaves out bound values that only move others: a residual that is a view of the image, say."""
    kept = set()
    for value in bound:
        todo, moved = [value], False
        while todo and not moved:
            each = todo.pop()
            if not computes(tape, each):
                todo += tape.ops[each].operands
                moved = not bound.isdisjoint(tape.ops[each].operands)
        if not moved:
            kept.add(value)
    return kept


def _with_twins(tape: Tape, bound: Mapping[int, int]) -> dict[int, int]:
    """Adds the values that are computed as a bound one is, op by op; linear in the tape."""
    numbers: list[int] = []
    known: dict[Any, int] = {}
    for value, op in enumerate(tape.ops):
        key: Any = value
        if op.name == "constant" and isinstance(op.attributes["value"], np.generic):
            key = op.name, op.type, op.attributes["value"].tobytes()
        elif op.operands:
            attributes = tuple((name, repr(each)) for name, each in op.attributes.items())
            key = op.name, tuple(numbers[operand] for operand in op.operands), attributes
        numbers.append(known.setdefault(key, len(known)))
    leaves = {numbers[value]: leaf for value, leaf in bound.items()}
    return {value: leaves[number] for value, number in enumerate(numbers) if number in leaves}


def _chosen(shape: tuple[int, ...], count: int, rng: np.random.Generator) -> np.ndarray:
    """Chooses elements: random ones and, while there is room, the corners."""
    size = math.prod(shape)
    if size <= count:
        return np.arange(size, dtype=np.int64)
    ends = sorted(range(len(shape)), key=lambda axis: -shape[axis])[:CORNERS]
    corners = []
    for mask in range(1 << len(ends)):
        flat = 0
        for axis, extent in enumerate(shape):
            flat = flat * extent + (extent - 1 if axis in ends and mask >> ends.index(axis) & 1 else 0)
        corners.append(flat)
    random = rng.integers(0, size, count)
    return np.unique(np.concatenate([random, corners[: count // 2]])).astype(np.int64)


def _bad(one: Element, count: int) -> int:
    """Counts samples outside of the model."""
    return 0 if one.state is None else int(np.broadcast_to(one.state == BAD, count).sum())


def _agreement(left: Element, right: Element, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Says which samples say something, and which of those agree in every lane that both sides know."""
    states = [np.zeros((), np.int8) if one.state is None else one.state for one in (left, right)]
    firm = np.broadcast_to((states[0] != BAD) & (states[1] != BAD), count)
    equal = np.broadcast_to(states[0] == states[1], count)
    finite = np.broadcast_to((states[0] == FINITE) & (states[1] == FINITE), count)
    shared = 0
    for mine, theirs, modulus in ((left.p, right.p, P), (left.q, right.q, Q)):
        if mine is not None and theirs is not None:
            shared += 1
            equal = equal & (((mine - theirs) % modulus == 0) | ~finite)
    return (firm if shared else np.zeros(count, bool)), equal
