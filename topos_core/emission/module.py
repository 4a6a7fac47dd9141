"""Writes a tape as one StableHLO module: recorded ops as they are, and at a taken match's root the match's raise."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from topos_core.emission.builder import Builder, Ssa
from topos_core.emission.lower.lowering import lowerings
from topos_core.emission.raises.catalog import Raise, raises
from topos_core.emission.syntax import string, tensor
from topos_core.errors import InternalError
from topos_core.matching.match import Match
from topos_core.tape.span import UNKNOWN
from topos_core.tape.tape import Tape

Taken = Mapping[int, tuple[Match, Raise]]
"""Root value to the match that was taken there and the function that writes it."""


@dataclass(frozen=True, slots=True)
class _Unit:
    """What is written in one piece: a recorded op or a taken match. `position` is its value or root."""

    position: int
    reads: frozenset[int]
    match: tuple[Match, Raise] | None


def emit_matches(
    tape: Tape,
    matches: Iterable[Match],
    observed: Sequence[int] = (),
    *,
    locations: bool = True,
    paths: Callable[[str], str] = str,
) -> str:
    """Emits a tape with these matches taken, each by its pattern's own raise."""
    known = raises()
    taken = {match.root: (match, known[match.pattern]) for match in matches}
    return emit(tape, taken, observed, locations=locations, paths=paths)


def emit(
    tape: Tape,
    taken: Taken | None = None,
    observed: Sequence[int] = (),
    *,
    locations: bool = True,
    paths: Callable[[str], str] = str,
) -> str:
    """Gives the module's text.

    Arguments are the inputs in the tape's order, then the parameters. Results are the tape's results, then the observed
    values that are not among them (`emitted_results`). Only what they need is written.

    Args:
        tape: A verified tape.
        taken: The matches to raise.
        observed: Further values to return; none may be an unnamed interior of a taken match.
        locations: Ends every line with the span that it comes from.
        paths: Gives a file's path as the text should name it.

    Raises:
        ConfigurationError: A foreign op is needed (TP507).
    """
    builder = Builder(locations=locations, paths=paths)
    arguments = (*tape.inputs, *tape.parameters)
    names = {value: Ssa(f"%arg{k}", tape.ops[value].type) for k, value in enumerate(arguments)}
    results = emitted_results(tape, observed)
    known = lowerings()
    for unit in _ordered(_needed(tape, taken or {}, results, names)):
        builder.at(unit.position, tape.location_of(unit.position).span)
        if unit.match is None:
            op = tape.ops[unit.position]
            names[unit.position] = known[op.name](builder, op, [names[operand] for operand in op.operands])
        else:
            match, write = unit.match
            bindings = {name: names[value] for name, value in match.bindings.items()}
            names.update(write(builder, tape, match, bindings))
        _check_type(tape, unit, names)
    builder.span = UNKNOWN
    types = ", ".join(tensor(tape.ops[value].type) for value in results)
    head = ", ".join(_argument(tape, value, names[value], locations) for value in arguments)
    returned = f"return {', '.join(names[value].name for value in results)} : {types}" if results else "return"
    return "\n".join(
        [
            "module @topos {",
            f"  func.func @main({head}) -> ({types}) {{",
            *builder.lines,
            f"    {returned}",
            "  }",
            "}",
            "",
        ]
    )


def emitted_results(tape: Tape, observed: Sequence[int] = ()) -> tuple[int, ...]:
    """Lists the values that an emitted module returns, in order."""
    returned = set(tape.results)
    return (*tape.results, *(value for value in dict.fromkeys(observed) if value not in returned))


def _argument(tape: Tape, value: int, name: Ssa, locations: bool) -> str:
    called = f" loc({string(tape.names[value])})" if locations and value in tape.names else ""
    return f"{name.name}: {tensor(name.type)}{called}"


def _needed(tape: Tape, taken: Taken, results: Sequence[int], given: Mapping[int, Ssa]) -> dict[int, _Unit]:
    """Reads backwards from the results, through matches; maps every needed value to the unit that makes it."""
    producer = {value: pair for pair in taken.values() for value in pair[0].produced}
    made: dict[int, _Unit] = {}
    waiting = list(results)
    while waiting:
        value = waiting.pop()
        if value in made or value in given:
            continue
        if value in producer:
            match = producer[value][0]
            unit = _Unit(match.root, frozenset(match.bindings.values()), producer[value])
            made.update(dict.fromkeys(match.produced, unit))
        else:
            unit = made[value] = _Unit(value, frozenset(tape.ops[value].operands), None)
        waiting.extend(unit.reads)
    return made


def _ordered(made: Mapping[int, _Unit]) -> list[_Unit]:
    """Sorts units so that each comes after what it reads, else in tape order.

    Tape order alone does not do: a named result may be read before its match's root.
    """
    units = {unit.position: unit for unit in made.values()}
    missing = {
        unit.position: {made[value].position for value in unit.reads if value in made} for unit in units.values()
    }
    readers: dict[int, list[int]] = {position: [] for position in units}
    for position, reads in missing.items():
        for read in reads:
            readers[read].append(position)
    ready = [position for position, reads in missing.items() if not reads]
    heapq.heapify(ready)
    order: list[_Unit] = []
    while ready:
        position = heapq.heappop(ready)
        order.append(units[position])
        for reader in readers[position]:
            missing[reader].discard(position)
            if not missing[reader]:
                heapq.heappush(ready, reader)
    if len(order) != len(units):
        raise InternalError("the taken matches read each other's results in a circle")
    return order


def _check_type(tape: Tape, unit: _Unit, names: Mapping[int, Ssa]) -> None:
    """A raise that names a value wrongly must not become text that somebody runs."""
    for value in unit.match[0].produced if unit.match else (unit.position,):
        if value not in names or names[value].type != tape.ops[value].type:
            have = names[value].type if value in names else "nothing"
            raise InternalError(f"%{value} is {tape.ops[value].type}, what was written for it is {have}")
