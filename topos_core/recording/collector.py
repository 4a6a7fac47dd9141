"""The cyclic garbage collector is off while many small objects are made: it costs 0.5 to 1.2 us per recorded op.

It is rare while user code imports and builds: torch and transformers are 640,000 objects that stay, of which it frees none, and
looking at them again and again is a third of their import's time. It is not off there, since what user code throws away may be large.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_RARE: Final = (100_000, 20, 20)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Switches the collector off and back on. Nested and concurrent use always ends with it on, if it was on."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def collector_rare() -> Iterator[None]:
    """Has the collector look once in 100,000 new objects, and never again at those that are there when this ends."""
    before = gc.get_threshold()
    gc.set_threshold(*_RARE)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.freeze()
