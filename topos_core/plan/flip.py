"""The nearest condition under which a region that is declined by cost would be taken, from the terms that declined it."""

from __future__ import annotations

import math

from topos_core.cost.roofline import Predicted
from topos_core.kernels.kernel import Offer
from topos_core.plan.decision import Flip, Number


def flip(offer: Offer, seconds: float, now: Predicted) -> Flip | None:
    """Solves `kernel_seconds`, which says `now`, for the one term that has to change least, as a factor, until a kernel takes so
    many seconds.

    Gives None where neither a kernel that reaches the roofline nor one that starts in no time would take less.
    """
    run = _running(now)
    found: list[tuple[float, Flip]] = []
    if run > 0 and (left := seconds - now.call_seconds) > 0:
        efficiency = offer.efficiency * run / left
        if efficiency < 1:
            found.append((run / left, Flip("efficiency", _share(offer.efficiency), _share(efficiency))))
    if now.call_seconds > 0 and (left := seconds - run) > 0:
        found.append((now.call_seconds / left, Flip("start", predicted(now.call_seconds), predicted(left))))
    nearest = min(found, key=lambda each: each[0], default=None)
    return nearest[1] if nearest is not None and math.isfinite(nearest[0]) else None


def at_best(offer: Offer, now: Predicted) -> tuple[float, float]:
    """Predicts how many seconds a kernel would take at the whole roofline, and how many if it started in no time."""
    run = _running(now)
    return min(offer.efficiency, 1.0) * run + now.call_seconds, run


def predicted(seconds: float) -> Number:
    """Makes a predicted time a figure."""
    return Number(seconds, "second", "modelled")


def _share(value: float) -> Number:
    return Number(value, "share", "modelled")


def _running(now: Predicted) -> float:
    return max(now.compute_seconds, now.memory_seconds)
