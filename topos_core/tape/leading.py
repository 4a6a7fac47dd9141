"""Which values of a tape lead to some of its values: one pass backwards."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress

from topos_core.tape.tape import Tape


def leading(tape: Tape, ends: Iterable[int]) -> bytearray:
    """Marks the values that lead to some values, themselves included: 1 per value that does. Linear."""
    ops = tape.ops
    marks = bytearray(len(ops))
    for value in ends:
        marks[value] = 1
    for value in range(len(ops) - 1, -1, -1):
        if marks[value]:
            for operand in ops[value][1]:
                marks[operand] = 1
    return marks


def leads_out(tape: Tape) -> bytearray:
    """Marks the values that lead to a result."""
    return leading(tape, tape.results)


def leads_on(tape: Tape) -> bytearray:
    """Marks the values that lead to a result or an observation."""
    own = tape.once(leads_out)
    rest = [observation.value for observation in tape.observations if not own[observation.value]]
    return leading(tape, (*tape.results, *rest)) if rest else own


def live(tape: Tape) -> frozenset[int]:
    """Collects the values that a result or an observation needs."""
    marks = tape.once(leads_on)
    return frozenset(compress(range(len(marks)), marks))
