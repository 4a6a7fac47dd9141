"""`layer_norm`: statistics and result of a row while it is in the cache, summed in f64 across runs, or of columns side by side.

Declines: TP205 where bits must equal the recorded ones; TP206 for dtypes that are no floats.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from topos_core.kernels.cores.offering import offer_core
from topos_core.kernels.cores.rows import copies, make_runner, stage_of
from topos_core.kernels.kernel import Decline, Offer, Stages, Terms
from topos_core.kernels.prepared import Prepared, known_of
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape


def offer(tape: Tape, match: Match, terms: Terms) -> Offer | Decline:
    """Offers the cached kernel for floats."""
    root = tape.ops[match.root].type
    copied = copies(match.facts, ("n",), columns=True)
    return offer_core(
        tape, match, terms, kernel="two passes over a row in the cache", flops=9 * root.size,
        transcendentals=match.facts.extents["k"], efficiency=0.5, copied=copied,
        stages=Stages(lambda: (stage_of(match.facts, tape.ops[match.root].type, ("k", "n"), copied),)),
    )  # fmt: skip


def prepare(tape: Tape, match: Match, constants: Mapping[int, np.ndarray]) -> Prepared:
    """Chooses the layout."""
    dtype, known = tape.ops[match.root].type.dtype, known_of(match, constants)
    return make_runner(match.facts, dtype, "norm", ("layer",), columns=True, lead=2, known=known)
