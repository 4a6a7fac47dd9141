"""What a scalar core's kernel costs, and when there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from topos_core.cost.work import Work
from topos_core.kernels.envelopes import envelope, unmeasured
from topos_core.kernels.kernel import NO_STAGES, Decline, Offer, Stages, Terms
from topos_core.matching.match import Match
from topos_core.matching.tuples import new_tuple
from topos_core.tape.tape import Tape
from topos_core.tape.type import FLOATS


class Cost(NamedTuple):
    """Work of one kernel, and the share of the machine's peak that it reaches."""

    flops: int
    efficiency: float


def blended(costs: Sequence[Cost]) -> Cost:
    """Gives the cost of kernels that run one after the other."""
    flops = sum(cost.flops for cost in costs)
    spent = sum(cost.flops / cost.efficiency for cost in costs)
    return Cost(flops, flops / spent if flops else 1.0)


def offer_core(
    tape: Tape,
    match: Match,
    terms: Terms,
    *,
    kernel: str,
    flops: int,
    transcendentals: int,
    efficiency: float,
    copied: bool = False,
    between: int = 0,
    held: int | None = None,
    stages: Stages = NO_STAGES,
    calls: float = 1.0,
) -> Offer | Decline:
    """Prices a kernel that reads its bindings once and writes the root.

    Args:
        flops, transcendentals: Of the whole region.
        copied: Whether x and the result are moved to another layout and back.
        between: Bytes that one of several kernels writes and the next one reads.
        held: Bytes of scratch for that; as many by default, none where it is a named result.
        stages: The kernels' copies and scratch.
        calls: Of kernels.
    """
    root = tape.ops[match.root].type
    if root.dtype not in FLOATS:
        return Decline("TP206", "no-kernel", f"the kernels compute in floats, this {match.pattern} is {root}")
    measured = envelope(match.pattern, root.dtype)
    if measured is None:
        return unmeasured(match.pattern, root.dtype)
    if terms.fidelity == "exact":
        return Decline(
            "TP205",
            "fidelity",
            f"the kernel for {match.pattern} rounds in other places than the recorded ops, so its bits differ;"
            " ask for fidelity fast",
            {"relative_error": measured.relative},
        )
    read = 0
    for value in dict.fromkeys(match.bindings.values()):
        read += tape.ops[value].type.bytes
    # a strided copy moves elements one by one: it costs as much as several dense ones
    moved = between + (8 * root.bytes if copied else 0)
    work = new_tuple(Work, (flops, transcendentals, read + moved, root.bytes + moved))
    return Offer(
        kernel=kernel, work=work, exact=False, envelope=measured, efficiency=efficiency,
        temporary_bytes=between if held is None else held, calls=calls, stages=stages,
    )  # fmt: skip
