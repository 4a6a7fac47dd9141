"""Which values of a tape lead to some of its values: one pass backwards."""

from __future__ import annotations

from collections.abc import Iterable

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
