"""How far a formula carries the rounding of what goes in: an error that no kernel can be held to.

A sum that cancels, or the spread of values far from 0, has few digits left however it is computed: rounding every binding
once already moves the result by more than any kernel is off. So an envelope is stated for programs that are well
conditioned, and grows in proportion for others:

    condition = max(1, moved / (WELL * u))

`moved` is by how much max |f64| the exact result moves where every element of every binding moves by half an ulp, up or
down; u is half an ulp of the result's dtype, relative to 1. See Higham, Accuracy and Stability of Numerical Algorithms
(2002), section 1.6: the forward error is at most the condition number times the backward error.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from topos_core.kernels.probes import Measured, Probe, arrays_of, by_formula, widened
from topos_core.kernels.rounding import HALF_ULP, TRIALS, moved

WELL: Final = 4.0
"""A result that moves by so many half ulps is well conditioned: an elementwise formula of three operands moves by three."""
STEPS: Final = {"f64": 2.0**10}
"""Half ulps of f64 are lost where the reference is float64 itself: many are made, and divided out."""


def inside(probe: Probe, measured: Measured, relative: float) -> bool:
    """Says whether an error is within an envelope, which grows with the condition of the program and its values."""
    return measured.relative <= relative or measured.relative <= relative * condition(probe)


def conditioned(probe: Probe, measured: Measured, least: float = 0.0) -> float:
    """Gives an error as that of a well-conditioned program; what is no larger than `least` stays as it is."""
    return measured.relative if measured.relative <= least else measured.relative / condition(probe)


def condition(probe: Probe) -> float:
    """Gives a probe's condition: 1 where the result moves no further than `WELL` half ulps."""
    tape, match = probe.tape, probe.match
    dtype = tape.ops[match.root].type.dtype
    steps = STEPS.get(dtype, 1.0)
    wide = widened(probe, arrays_of(probe))
    random = np.random.default_rng(0)
    largest = 0.0
    with np.errstate(all="ignore"):
        exact = by_formula(probe, wide)
        for _ in range(TRIALS):
            made: dict[int, np.ndarray] = {}  # a value that is bound twice moves once
            for name, value in match.bindings.items():
                if value not in made:
                    made[value] = moved(wide[name], steps * HALF_ULP.get(tape.ops[value].type.dtype, 0.0), random)
            found = by_formula(probe, {name: made[value] for name, value in match.bindings.items()})
            largest = max(largest, *(_movement(exact[name], found[name]) for name in exact))
    return max(1.0, largest / (WELL * steps * HALF_ULP[dtype]))


def _movement(exact: np.ndarray, found: np.ndarray) -> float:
    """Gives the largest movement relative to the largest magnitude, as the error is measured."""
    if exact.dtype.kind in "iub":
        return 0.0
    fine = np.isfinite(exact) & np.isfinite(found)
    largest = float(np.abs(exact[fine]).max(initial=0.0))
    moved = float(np.abs(found[fine] - exact[fine]).max(initial=0.0))
    return moved / largest if math.isfinite(largest) and largest else 0.0
