"""Closure: what lies between a match's root and its bindings, and which part of that is claimed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cache
from itertools import compress
from typing import Final, NamedTuple

from topos_core.errors import InternalError
from topos_core.ops.catalog import definitions
from topos_core.tape.leading import leads_on
from topos_core.tape.tape import Tape

MOVES = frozenset(("movement", "source"))
_SOURCES: Final = frozenset(("input", "parameter"))


class Region(NamedTuple):
    """The values of a match besides its bindings.

    `interior` has everything between root and bindings; `computing` the part of it that carries arithmetic, plus the
    root. Movement and constants belong to nobody.
    """

    interior: frozenset[int]
    computing: frozenset[int]


def live_readers(tape: Tape) -> list[list[int]]:
    """Lists the live readers of every value: an op whose result leads to no observation reads nothing. Linear."""
    readers: list[list[int]] = [[] for _ in tape.ops]
    live = tape.once(leads_on)
    for value in compress(range(len(live)), live):
        for operand in tape.ops[value][1]:
            readers[operand].append(value)
    return readers


def region(tape: Tape, root: int, bindings: Collection[int]) -> Region:
    """Collects a match's values. Costs their number.

    Raises:
        InternalError: An input or parameter is reached that is not bound: the match does not say all that it reads.
    """
    inside = interior(tape, root, bindings)
    return Region(inside, computing(tape, root, inside))


def interior(tape: Tape, root: int, bindings: Collection[int]) -> frozenset[int]:
    """Collects the values between a root and bindings. Costs their number.

    Raises:
        InternalError: As in `region`.
    """
    ops = tape.ops
    seen, inside = set(bindings), []
    stack = list(ops[root].operands)
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        op = ops[value]
        if op[0] in _SOURCES:
            raise InternalError(f"a match at value {root} reads value {value} without binding it")
        inside.append(value)
        stack += op[1]
    return frozenset(inside)


def computing(tape: Tape, root: int, inside: Iterable[int]) -> frozenset[int]:
    """Collects a root and the values of an interior that carry arithmetic."""
    ops, moving = tape.ops, _moving()
    return frozenset(
        [root, *[v for v in inside if (name := ops[v][0]) not in moving and (name != "gather" or computes(tape, v))]]
    )


def computes(tape: Tape, value: int) -> bool:
    """Says whether a value carries arithmetic; a gather by a constant table is movement."""
    op = tape.ops[value]
    if op.name == "gather":
        return tape.ops[op.operands[1]].name != "constant"
    return op.name not in _moving()


@cache
def _moving() -> frozenset[str]:
    return frozenset(name for name, row in definitions().items() if row.kind in MOVES)


def outside_readers(readers: Sequence[Sequence[int]], inside: Collection[int], produced: Collection[int]) -> list[int]:
    """Lists live readers outside of a match of its computing values that it does not produce. Every link counts."""
    return [
        reader
        for value in sorted(inside)
        if value not in produced
        for reader in readers[value]
        if reader not in inside and reader not in produced
    ]


def common_chain(
    tape: Tape, readers: Sequence[Sequence[int]], within: Collection[int], base: int, root: int
) -> list[int]:
    """Follows a base towards the root for as long as one movement op is its only reader there: `[base, ...]`."""
    chain = [base]
    while True:
        row = {reader for reader in readers[chain[-1]] if reader == root or reader in within}
        if len(row) != 1:
            return chain
        (reader,) = row
        if reader == root or computes(tape, reader):
            return chain
        chain.append(reader)
