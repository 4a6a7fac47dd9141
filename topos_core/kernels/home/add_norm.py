"""`add_norm`: a row is added, written back as recorded, and normalised while it is in the cache.

Where a row's mean is large beside its spread, what rounding its sum lost takes part: else digits of the result would be gone.

Declines: TP205 where bits must equal the recorded ones; TP206 for dtypes that are no floats.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from topos_core.kernels.cores.offering import offer_core
from topos_core.kernels.cores.rows import copies, make_runner, stage_of
from topos_core.kernels.kernel import Decline, Offer, Stages, Terms
from topos_core.kernels.prepared import Prepared, known_of
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape

NORMS: Final = {"layer_norm": "layer", "rms_norm": "rms"}


def offer(tape: Tape, match: Match, terms: Terms) -> Offer | Decline:
    """Offers the sum and the cached kernel for floats."""
    root = tape.ops[match.root].type
    copied = copies(match.facts, ("n",), columns=False)
    return offer_core(
        tape, match, terms, kernel="a sum and two passes over a row in the cache", flops=10 * root.size,
        transcendentals=match.facts.extents["k"], efficiency=0.5, copied=copied,
        stages=Stages(lambda: (stage_of(match.facts, root, ("k", "n"), copied, "residual"),)),
    )  # fmt: skip


def prepare(tape: Tape, match: Match, constants: Mapping[int, np.ndarray]) -> Prepared:
    """Chooses the norm and its layout."""
    dtype = tape.ops[match.root].type.dtype
    kind = NORMS[match.facts.options["norm"]]
    known = known_of(match, constants)
    return make_runner(
        match.facts, dtype, "norm", (kind, "sum"), columns=False, residual="residual", lead=2, known=known
    )
