"""What people can do about a verdict, worded once: actions, and the titles of fixes. As in `phrases`: lower case, no full stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from topos_core.document.phrases import listed

if TYPE_CHECKING:  # servers say these sentences, and load no NumPy
    from topos_core.tape.tape import ObservationKind


def read_instead(kind: ObservationKind, value: str, place: str | None) -> str:
    """Proposes the nearest value that may be read for nothing; `place` where its name does not tell it."""
    verb = "observe" if kind == "observe" else "read"
    return f"{verb} {value}{f' at {place}' if place else ''} instead: that costs nothing"


def stop_reading(kind: ObservationKind, *, asked: bool = False) -> str:
    """Proposes to remove the reader."""
    if asked:
        return "do not observe it, or accept that the region runs as recorded"
    what = "leave it out of what is returned" if kind == "output" else "remove the reader"
    return f"{what}, or accept that the region runs as recorded"


def use_border(op: str) -> str:
    """Proposes how to end a shared interior."""
    return f"compute what {op} needs from the region's result or inputs, or accept that the ops run as recorded"


def take_anyway() -> str:
    """Proposes to override the cost model."""
    return "take it anyway with `--cost always`"


def bind_extent() -> str:
    """Proposes to bind an unknown extent."""
    return "bind the dimension with `--dim NAME=SIZE`"


def allow_fast() -> str:
    """Proposes the other fidelity."""
    return "`--fidelity fast` allows a kernel inside its measured error"


def fix_move(name: str) -> str:
    """Titles the edit that observes a free value instead."""
    return f"observe `{name}` instead"


def fix_remove(name: str | None) -> str:
    """Titles the edit that removes a reader."""
    return f"stop observing `{name}`" if name else "remove this reader"


def fix_stop(names: Sequence[str], *, observes: bool) -> str:
    """Titles the what-if in which nobody reads what a region would not make."""
    return f"stop {_reading(observes)} {listed(names)}"


def fix_instead(value: str, *, observes: bool) -> str:
    """Titles the what-if that reads the nearest free value."""
    return f"{'observe' if observes else 'read'} {value} instead"


def fix_beside(names: Sequence[str], *, observes: bool) -> str:
    """Titles the what-if that has the region run, and what is read made once more by recorded ops."""
    return f"keep {_reading(observes)} {listed(names)} and recompute {'it' if len(names) == 1 else 'them'} on the side"


def fix_debug(names: Sequence[str], *, observes: bool) -> str:
    """Titles the what-if of a run without debugging, and the edit that makes one of it."""
    return f"{'observe' if observes else 'read'} {listed(names)} only in debug runs"


def _reading(observes: bool) -> str:
    return "observing" if observes else "reading"
