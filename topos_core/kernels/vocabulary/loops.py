"""Loops written as LLVM IR."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from topos_core.kernels.vocabulary.emitter import INT64


@contextmanager
def ranged(builder: Any, first: Any, end: Any, step: int = 1) -> Iterator[Any]:
    """Emits a loop whose block runs for `first`, `first + step`, ... below `end`, not at all where there is none."""
    before = builder.block
    head, body = builder.append_basic_block("head"), builder.append_basic_block("body")
    after = builder.append_basic_block("after")
    builder.branch(head)
    builder.position_at_end(head)
    number = builder.phi(INT64)
    number.add_incoming(first, before)
    builder.cbranch(builder.icmp_signed("<", number, end), body, after)
    builder.position_at_end(body)
    yield number
    number.add_incoming(builder.add(number, ir.Constant(INT64, step)), builder.block)
    builder.branch(head)
    builder.position_at_end(after)


class Slot:
    """A value that loops change: a place on the stack, which becomes a register."""

    def __init__(self, builder: Any, initial: Any) -> None:
        self.builder = builder
        with builder.goto_entry_block():
            self.place = builder.alloca(initial.type)
        builder.store(initial, self.place)

    def get(self) -> Any:
        """Loads it."""
        return self.builder.load(self.place)

    def set(self, value: Any) -> None:
        """Stores it."""
        self.builder.store(value, self.place)
