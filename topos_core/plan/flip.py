"""The nearest condition under which a region that is declined by cost would be taken, from the terms that declined it."""

from __future__ import annotations

import math

from topos_core.cost.machine import Machine
from topos_core.cost.roofline import kernel_seconds
from topos_core.kernels.kernel import Offer
from topos_core.plan.decision import Flip, Number


def flip(offer: Offer, seconds_before: float, dtype: str, machine: Machine) -> Flip | None:
    """Solves `kernel_seconds` for the one term that has to change least, as a factor, until the offer pays.

    Gives None where no kernel that reaches at most the roofline and starts in more than no time would be faster.
    """
    now = kernel_seconds(offer.work, dtype, machine, offer.efficiency, offer.calls)
    run = max(now.compute_seconds, now.memory_seconds)
    found: list[tuple[float, Flip]] = []
    if run > 0 and (left := seconds_before - now.call_seconds) > 0:
        efficiency = offer.efficiency * run / left
        if efficiency < 1:
            found.append((run / left, Flip("efficiency", _share(offer.efficiency), _share(efficiency))))
    if now.call_seconds > 0 and (left := seconds_before - run) > 0:
        found.append((now.call_seconds / left, Flip("start", _seconds(now.call_seconds), _seconds(left))))
    nearest = min(found, key=lambda each: each[0], default=None)
    return nearest[1] if nearest is not None and math.isfinite(nearest[0]) else None


def _share(value: float) -> Number:
    return Number(value, "share", "modelled")


def _seconds(value: float) -> Number:
    return Number(value, "second", "modelled")
