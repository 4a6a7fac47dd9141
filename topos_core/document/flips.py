"""Under which one condition a region that is declined by cost would be taken, or why no one condition is one.

Worded like all of `phrases`: lower case, no full stop, display-ready arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from topos_core.document.figures import basis, figure, percent

if TYPE_CHECKING:  # servers say these sentences, and load no NumPy
    from topos_core.plan.decision import Number


def by(of: Literal["efficiency", "start"], now: Number, at: Number, machine: str) -> str:
    """Says under which condition, all else equal, a region that is declined by cost would be taken."""
    if of == "efficiency":
        need, have = f"reached more than {percent(at.value)} of the roofline", percent(now.value)
    else:
        need, have = f"took less than {figure(at)} to start", figure(now)
    return f"flips if its kernel {need}, now {have} ({basis(at, machine)})"


def never(at_roofline: Number, at_once: Number, before: Number, machine: str) -> str:
    """Says that neither term of a kernel's predicted time makes it faster than the recorded ops."""
    return (
        f"nothing alone flips it: its kernel would take {figure(at_roofline)} at the whole roofline and {figure(at_once)} if it"
        f" started at once, the recorded ops {figure(before)} ({basis(before, machine)})"
    )


def not_observed(value: str, by: str) -> str:
    """Says that an observation would block a region that is declined by cost."""
    return f"no faster kernel alone flips it: {value} is read by {by}, and it never computes that"


def not_itself() -> str:
    """Says that a region that is declined by cost would have to run before itself."""
    return "no faster kernel flips it: what reads one of its results feeds it again"


def not_cycle() -> str:
    """Says that with a region that is declined by cost others could not all be taken."""
    return "no faster kernel alone flips it: regions here would wait for each other, and the one that saves least is not taken"


def not_covered(winner: str, place: str) -> str:
    """Says that another region goes first, whatever one that is declined by cost would save."""
    return f"no faster kernel flips it: {winner} at {place} claims some of its ops and goes first"


def not_outbid(winner: str, place: str, needed: Number, most: Number, machine: str) -> str:
    """Says that a region that is declined by cost would have to save more than its kernel could."""
    return (
        f"nothing alone flips it: it would have to save more than {figure(needed)}, since {winner} at {place} claims some of"
        f" its ops, and its kernel could save {figure(most)} ({basis(needed, machine)})"
    )
