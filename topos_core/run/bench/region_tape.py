"""A part of a program as a program of its own: the ops of one region between its bindings and what it gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from topos_core.matching.match import Match
from topos_core.tape.op import Op
from topos_core.tape.tape import Observation, Structure, Tape


def known_values(tape: Tape) -> frozenset[int]:
    """Lists the values that no input reaches: parameters, constants and what is made of them alone."""
    known: set[int] = set()
    for value, op in enumerate(tape.ops):
        if op.name in ("parameter", "constant", "iota") or (op.operands and known.issuperset(op.operands)):
            known.add(value)
    return frozenset(known)


def region_results(match: Match) -> tuple[int, ...]:
    """Lists what a region gives: its root, then the first producer of each named result."""
    return (match.root, *(values[0] for values in match.named.values()))


def region_tape(tape: Tape, match: Match, values: Mapping[int, np.ndarray], known: frozenset[int]) -> Tape:
    """Cuts a region out.

    A binding that no input reaches becomes a parameter with its value, any other an input; constants stay constants.

    Args:
        tape: The program.
        match: The region.
        values: The values of its bindings.
        known: What `known_values` gives for the tape.
    """
    bindings = {value for value in match.bindings.values() if tape.ops[value].name != "constant"}
    results = region_results(match)
    numbers: dict[int, int] = {}
    ops: list[Op] = []
    defaults: dict[int, np.ndarray] = {}
    for value in sorted(_needed(tape, results, bindings)):
        op = tape.ops[value]
        numbers[value] = len(ops)
        if value in bindings:
            name = "parameter" if value in known else "input"
            if name == "parameter":
                defaults[len(ops)] = values[value]
            ops.append(Op(name, (), {"type": op.type}, op.type, op.location))
        else:
            ops.append(Op(op.name, tuple(numbers[o] for o in op.operands), op.attributes, op.type, op.location))
    given = tuple(numbers[value] for value in results)
    leaves = tuple(Structure("leaf", index=at) for at in range(len(given)))
    return Tape(
        ops=tuple(ops),
        inputs=tuple(at for at, op in enumerate(ops) if op.name == "input"),
        parameters=tuple(at for at, op in enumerate(ops) if op.name == "parameter"),
        results=given,
        structure=Structure("tuple", leaves),
        names={numbers[value]: name for name, value in match.bindings.items() if value in bindings},
        observations=tuple(Observation(value, "output", None, ops[value].location) for value in given),
        locations=tape.locations,
        sources={},
        defaults=defaults,
        ranges={numbers[value]: bounds for value, bounds in tape.ranges.items() if value in bindings},
    )


def region_inputs(
    tape: Tape, match: Match, values: Mapping[int, np.ndarray], known: frozenset[int]
) -> list[np.ndarray]:
    """Gives the arrays of a region's inputs, in its tape's order."""
    bindings = {value for value in match.bindings.values() if tape.ops[value].name != "constant"}
    needed = _needed(tape, region_results(match), bindings)
    return [values[value] for value in sorted(bindings & needed) if value not in known]


def _needed(tape: Tape, results: Iterable[int], bindings: set[int]) -> set[int]:
    needed: set[int] = set()
    waiting = list(results)
    while waiting:
        value = waiting.pop()
        if value not in needed:
            needed.add(value)
            waiting.extend(() if value in bindings else tape.ops[value].operands)
    return needed
