"""Named scopes: `with tp.scope("layer0"):` names what is recorded inside, besides the names of the functions it runs in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from topos_core.recording.recorder import CURRENT


@contextmanager
def scope(name: str) -> Iterator[None]:
    """Names the ops recorded inside; outside of a trace it does nothing."""
    recorder = CURRENT.get()
    if recorder is None:
        yield
        return
    before = recorder.locator.enter_scope(name)
    try:
        yield
    finally:
        recorder.locator.scope_row = before
