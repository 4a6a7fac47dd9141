"""Microseconds per op of recognition and planning on growing tapes, phase by phase, with and without repeated blocks.

python -m benchmarks.matching [OPS...]
"""

from __future__ import annotations

import gc
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from benchmarks.networks import NETWORKS, recorded
from topos_core.matching.answers import index_of
from topos_core.matching.catalog import patterns
from topos_core.matching.core import Keys
from topos_core.matching.pattern import Pattern
from topos_core.matching.search import Pool, search
from topos_core.matching.template import templates
from topos_core.matching.term import Index, Named, recognise
from topos_core.plan.consumers import consumers
from topos_core.plan.planner import Planner
from topos_core.plan.request import Request
from topos_core.tape.tape import Tape

SIZES: Final = (500, 3000, 10000, 25000, 50000)


@contextmanager
def collector_off() -> Iterator[None]:
    """Keeps the cyclic collector out of a measurement."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def best(action: Callable[[], Any], times: int) -> tuple[float, Any]:
    """Gives the least CPU seconds of several runs, and what the last of them gave; letting go of what one gave is no part of the next."""
    least, result = math.inf, None
    for _ in range(times):
        result = None
        with collector_off():
            start = time.process_time()
            result = action()
            least = min(least, time.process_time() - start)
    return least, result


def anew(tape: Tape, known: Sequence[Pattern]) -> tuple[Tape, Pool]:
    """Searches a tape with nothing remembered of an earlier search, of others or of this one."""
    index_of.cache_clear()
    fresh = replace(tape)
    return fresh, search(fresh, known)


def parts(tape: Tape, known: Sequence[Pattern], times: int) -> tuple[float, float, int]:
    """Gives the seconds of two parts of a search, keys and terms, and how many tries the terms took."""
    terms = [Named(p.identifier, p.term) for p in known if p.term is not None]
    keyed, keys = best(lambda: Keys(replace(tape)), times)
    termed, recognised = best(lambda: recognise(keys, Index(terms)), times)
    return keyed, termed, recognised.tries


def measured(name: str, tape: Tape, times: int) -> None:
    """Prints one line: what each phase costs an op, and one what-if.

    `keys` and `terms` are parts of `search`; `ready` is what a planner works out before its first request, `elected` that
    request, `what-if` a second one that observes a value inside the largest match.
    """
    known = list(patterns().values())
    keyed, termed, tries = parts(tape, known, times)
    searched, (tape, pool) = best(lambda: anew(tape, known), times)
    ready, _ = best(lambda: Planner(tape, pool, consumers()), times)
    planners = [Planner(tape, pool, consumers()) for _ in range(times)]
    first = min(best(lambda: ready_one.plan(Request(machine="reference")), 1)[0] for ready_one in planners)  # noqa: B023
    largest = max(pool.matches, key=lambda match: len(match.computing))
    inner = max(largest.computing - {largest.root}, default=largest.root)
    asked = Request(machine="reference", observe=(inner,))
    again = min(best(lambda: ready_one.plan(asked), 1)[0] for ready_one in planners)  # noqa: B023
    count = len(tape.ops)
    phases = {"keys": keyed, "terms": termed, "search": searched, "ready": ready, "elected": first}
    phases["all"] = searched + ready + first
    told = "  ".join(f"{phase} {seconds / count * 1e6:5.1f}" for phase, seconds in phases.items())
    print(
        f"{name:21s} {count:6d} ops  us/op: {told}  what-if {again * 1e3:6.1f} ms  "
        f"tries/op {tries / count:.2f}  matches {len(pool.matches)}  near misses {len(pool.near_misses)}",
        flush=True,
    )


def main(sizes: list[int]) -> None:
    """Prints the curves."""
    start = time.process_time()
    count = sum(len(templates(p.term)) for p in patterns().values() if p.term is not None)
    print(f"{count} templates traced in {(time.process_time() - start) * 1e3:.0f} ms")
    for repeats in (False, True):
        for name in NETWORKS:
            for least in sizes:
                measured(
                    f"{name}{' repeated' if repeats else ''}",
                    recorded(name, least, repeats),
                    5 if least <= 12000 else 1,
                )


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or list(SIZES))
