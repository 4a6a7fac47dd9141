"""What a batch norm kernel costs, and when there is none."""

from __future__ import annotations

from typing import Final

from topos_core.cost.work import Work
from topos_core.kernels.envelopes import envelope, unmeasured
from topos_core.kernels.kernel import Decline, Offer, Stages, Terms
from topos_core.kernels.norms.shape import NARROW, dense_extents, stage_of
from topos_core.matching.facts import NormFacts
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape
from topos_core.tape.type import FLOATS

# What starting a kernel costs, in calls of a plain one (4 us on the reference core), from programs of one and of five norms
# on small arrays: 10 us where statistics are brought into vectors first, 6 us where they are known, 18 us for the three kernels
# of sums across rows.
_CALLS: Final = 2.5
_CALLS_KNOWN: Final = 1.5
_CALLS_ACROSS: Final = 4.5
_EFFICIENCY_ACROSS: Final = 0.3
CORE_CACHE_BYTES: Final = 1 << 20  # a channel up to this size is read from memory once


def offer_norm(tape: Tape, match: Match, terms: Terms, *, training: bool) -> Offer | Decline:
    """Prices a normalisation kernel."""
    facts: NormFacts = match.facts
    x, root = tape.ops[match.bindings["x"]].type, tape.ops[match.root].type
    if root.dtype not in FLOATS:
        return Decline("TP206", "no-kernel", f"the kernels compute in floats, this batch norm is {root}")
    measured = envelope(match.pattern, root.dtype)
    if measured is None:
        return unmeasured(match.pattern, root.dtype)
    if terms.fidelity == "exact":
        return Decline(
            "TP205",
            "fidelity",
            "a batch norm kernel rounds in other places than the recorded ops, so its bits differ; ask for fidelity fast",
            {"relative_error": measured.relative},
        )
    reads = 1
    if training and facts.channels and x.bytes // facts.channels > CORE_CACHE_BYTES:
        reads = 3
    work = Work(
        flops=(8 if training else 3) * x.size,
        transcendentals=facts.channels,
        bytes_read=reads * x.bytes,
        bytes_written=root.bytes,
    )
    extents = dense_extents(facts)
    across = training and (extents is None or extents.inner < NARROW)
    bound = (value for name, value in match.bindings.items() if name != "x")
    known = not training and all(tape.ops[value].name in ("parameter", "constant") for value in bound)
    return Offer(
        kernel="two-pass statistics and result, channel by channel" if training else "scale and shift per channel",
        work=work,
        exact=False,
        envelope=measured,
        efficiency=_EFFICIENCY_ACROSS if across else 0.5 if training else 0.8,
        stages=Stages(lambda: (stage_of(facts, root, training),)),
        calls=_CALLS_ACROSS if across else _CALLS_KNOWN if known else _CALLS,
    )
