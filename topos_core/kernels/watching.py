"""Sees which kernels are asked for and how they are started, for whoever shows them; nobody watches a usual run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Start:
    """One start of a kernel: the words of its block, and how many threads might take part."""

    name: str
    variant: tuple[str, ...]
    words: tuple[int, ...]
    threads: int


@dataclass(slots=True)
class Watch:
    """What was seen, in order.

    Args:
        asked: Kernels by name and variant, each once.
        started: Every start.
    """

    asked: dict[tuple[str, tuple[str, ...]], None] = field(default_factory=dict)
    started: list[Start] = field(default_factory=list)


_WATCH: ContextVar[Watch | None] = ContextVar("topos_kernel_watch", default=None)


def watch() -> Watch | None:
    """Gives the watch of this context, if there is one."""
    return _WATCH.get()


@contextmanager
def watching() -> Iterator[Watch]:
    """Watches kernels in this context."""
    seen = Watch()
    token = _WATCH.set(seen)
    try:
        yield seen
    finally:
        _WATCH.reset(token)
