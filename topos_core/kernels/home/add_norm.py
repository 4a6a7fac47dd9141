"""`add_norm`: the sum is written back as recorded, then normalised a row at a time while it is in the cache.

Declines: TP205 where bits must equal the recorded ones; TP206 for dtypes that are no floats.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from topos_core.kernels.cores.offering import offer_core
from topos_core.kernels.cores.rows import Runner, copies, make_runner
from topos_core.kernels.kernel import Decline, Offer, Terms
from topos_core.kernels.prepared import Prepared
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape

NORMS: Final = {"layer_norm": "layer", "rms_norm": "rms"}


@dataclass(frozen=True, slots=True)
class AddNorm:
    """Runs one match: NumPy's sum, then the norm's kernel."""

    norm: Runner

    @property
    def scratch_bytes(self) -> int:
        """Counts the norm's."""
        return self.norm.scratch_bytes

    @property
    def any_order(self) -> bool:
        """Tells that the root should be C-contiguous."""
        return False

    def run(self, bindings: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray], threads: int) -> None:
        """Runs the match; see `Prepared`."""
        with np.errstate(all="ignore"):
            np.add(bindings["x"], bindings["residual"], out=out["sum"])
        inner = {name: array for name, array in bindings.items() if name != "residual"} | {"x": out["sum"]}
        self.norm.run(inner, {"result": out["result"]}, threads)


def offer(tape: Tape, match: Match, terms: Terms) -> Offer | Decline:
    """Offers the sum and the cached kernel for floats."""
    root = tape.ops[match.root].type
    return offer_core(
        tape, match, terms, kernel="a sum, and two passes over a row in the cache", flops=10 * root.size,
        transcendentals=match.facts.extents["k"], efficiency=0.4, copied=copies(match.facts, ("n",), columns=False),
    )  # fmt: skip


def prepare(tape: Tape, match: Match, constants: Mapping[int, np.ndarray]) -> Prepared:
    """Chooses the norm and its layout."""
    dtype = tape.ops[match.root].type.dtype
    kind = NORMS[match.facts.options["norm"]]
    return AddNorm(make_runner(match.facts, dtype, "norm", (kind,), columns=False))
