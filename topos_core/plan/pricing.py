"""What a match costs as recorded and as offered: figures by name, each with a unit and a basis."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from topos_core.cost.estimate import recorded_op
from topos_core.cost.machine import Machine
from topos_core.cost.roofline import kernel_seconds
from topos_core.cost.work import Work
from topos_core.kernels.kernel import Decline, Offer
from topos_core.matching.match import Match
from topos_core.matching.tuples import new_tuple
from topos_core.ops.catalog import definitions
from topos_core.plan.decision import Basis, Number
from topos_core.plan.kinds import Kinds
from topos_core.plan.reading import Boundary
from topos_core.plan.request import ConsumerName
from topos_core.plan.schedule import SOURCES
from topos_core.tape.tape import Tape

FEMTOSECONDS: Final = 1e15  # weights are whole femtoseconds, so that sums are exact and ties are ties


class Figures(Mapping[str, Number]):
    """Figures by name, put together when they are first read: of most matches nobody reads them."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], Mapping[str, Number]]) -> None:
        self._make = make
        self._made: Mapping[str, Number] | None = None

    def _read(self) -> Mapping[str, Number]:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __getitem__(self, name: str) -> Number:
        return self._read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def __repr__(self) -> str:
        return repr(self._read())


class Price(NamedTuple):
    """What one op costs when it runs by itself; nothing where its value exists before the run.

    Args:
        flops, transcendentals, bytes_read, bytes_written: Its work, its copies included.
        calls: 0 where it is a view.
        seconds: As predicted.
        allocated_bytes: The new buffer's size.
    """

    flops: int
    transcendentals: int
    bytes_read: int
    bytes_written: int
    calls: int
    seconds: float
    allocated_bytes: int


NOTHING: Final = Price(0, 0, 0, 0, 0, 0.0, 0)
"""What exists before the run."""


def price_recorded(tape: Tape, kinds: Kinds, machine: Machine, consumer: ConsumerName) -> list[Price]:
    """Prices every op as recorded: in NumPy for `home`, as a kernel of its own for a compiler target. Linear."""
    rows = definitions()
    prices: list[Price] = []
    for value, placement in zip(kinds.examples, kinds.placements, strict=True):
        op = tape.ops[value]
        if op.name in SOURCES:
            prices.append(NOTHING)
            continue
        row = rows[op.name]
        operands = [tape.ops[o].type for o in op.operands]
        estimate = recorded_op(op, operands, row.kind, row.work(operands, op.attributes, op.type), placement, machine)
        seconds = estimate.seconds
        if consumer != "home":
            # The target has no interpreter: its views are free and its kernels run at the roofline.
            seconds = kernel_seconds(estimate.work, op.type.dtype, machine).seconds if estimate.calls else 0.0
        prices.append(new_tuple(Price, (*estimate.work, estimate.calls, seconds, placement.allocated_bytes)))
    return [prices[kind] for kind in kinds.of]


class Before(NamedTuple):
    """What the recorded ops of a match cost; shared movement counts by its share of readers."""

    work: Work
    calls: int
    seconds: float
    interior_bytes: int


def price_before(
    users: Sequence[Sequence[int]],
    alive: Sequence[int],
    prices: Sequence[Price],
    match: Match,
    border: Boundary,
) -> Before:
    """Adds up the recorded ops that the match stands for.

    Movement that other live readers share counts with the part of its readers that are inside: two convolutions of one
    window matrix save it together, and each is credited with half.
    """
    interior, claims, owned = match.interior, border.claims, border.owned
    share: dict[int, float] = {}  # of movement that is not owned; what is counts as a whole
    flops = transcendentals = read = written = calls = inner_bytes = 0.0
    seconds = 0.0
    for value in sorted(border.inside, reverse=True):
        price = prices[value]
        if price is NOTHING:
            continue
        f, t, r, w, made, alone, allocated = price
        if value not in claims and value not in owned:
            readers = users[value]
            if len(readers) == 1:
                (sole,) = readers
                part = (1.0 if sole in claims or sole in owned else share.get(sole, 0.0)) if alive[sole] else 0.0
            else:
                readers = [u for u in readers if alive[u]]
                inside = [1.0 if u in claims or u in owned else share.get(u, 0.0) for u in readers]
                part = sum(inside) / len(readers) if readers else 0.0
            share[value] = part
            if part != 1.0:
                seconds += part * alone
                if made:
                    calls += part * made
                    flops += part * f
                    transcendentals += part * t
                    read += part * r
                    written += part * w
                    inner_bytes += part * allocated
                continue
        seconds += alone
        if made:
            calls += made
            flops += f
            transcendentals += t
            read += r
            written += w
            if value in interior:
                inner_bytes += allocated
    whole = new_tuple(Work, (round(flops), round(transcendentals), round(read), round(written)))
    return new_tuple(Before, (whole, round(calls), seconds, round(inner_bytes)))


def offered_seconds(offer: Offer, dtype: str, machine: Machine) -> float:
    """Predicts what an offer takes."""
    return kernel_seconds(offer.work, dtype, machine, offer.efficiency, offer.calls).seconds


def price_after(offer: Offer, before: Before, seconds: float) -> dict[str, Number]:
    """Puts the recorded ops and the offered kernel, which runs so many seconds, side by side."""
    figures: dict[str, Number] = {
        "flops_before": Number(before.work.flops, "flop", "counted"),
        "flops_after": Number(offer.work.flops, "flop", "counted"),
        "bytes_before": Number(before.work.bytes_moved, "byte", "counted"),
        "bytes_after": Number(offer.work.bytes_moved, "byte", "counted"),
        "bytes_read_before": Number(before.work.bytes_read, "byte", "counted"),
        "bytes_read_after": Number(offer.work.bytes_read, "byte", "counted"),
        "bytes_written_before": Number(before.work.bytes_written, "byte", "counted"),
        "bytes_written_after": Number(offer.work.bytes_written, "byte", "counted"),
        "calls_before": Number(before.calls, "call", "counted"),
        "calls_after": Number(1, "call", "counted"),
        "interior_bytes": Number(before.interior_bytes, "byte", "counted"),
        "temporary_bytes": Number(offer.least_temporary_bytes, "byte", "counted"),
        "seconds_before": Number(before.seconds, "second", "modelled"),
        "seconds_after": Number(seconds, "second", "modelled"),
        "benefit": Number(before.seconds - seconds, "second", "modelled"),
    }
    extra = offer.work.flops - before.work.flops
    if extra > 0:
        figures["recompute"] = Number(extra, "flop", "counted")
    return figures


def price_declined(before: Before) -> dict[str, Number]:
    """Tells what the recorded ops cost where there is no kernel to compare with."""
    return {
        "flops_before": Number(before.work.flops, "flop", "counted"),
        "bytes_before": Number(before.work.bytes_moved, "byte", "counted"),
        "calls_before": Number(before.calls, "call", "counted"),
        "interior_bytes": Number(before.interior_bytes, "byte", "counted"),
        "seconds_before": Number(before.seconds, "second", "modelled"),
    }


def stated(decline: Decline) -> dict[str, Number]:
    """Gives a consumer's own figures their unit and basis, by their names' last word; errors are measured on a probe set."""
    units = {"seconds": "second", "bytes": "byte", "flops": "flop", "error": "share", "ratio": "share"}
    found = {}
    for name, value in decline.numbers.items():
        unit = units.get(name.rpartition("_")[2], "value")
        basis: Basis = "measured" if unit == "share" else "modelled" if unit == "second" else "counted"
        found[name] = Number(value, unit, basis)
    return found


def pressure(tape: Tape, match: Match, machine: Machine) -> dict[str, Number]:
    """Counts the temporaries of a fused loop against the registers, and on an accelerator its occupancy.

    A temporary is a computed inner value with as many elements as the root; those that live at once are counted along
    the tape. Occupancy is the root's elements against the elements that the machine works on at once.
    """
    size = tape.ops[match.root].type.size
    temporaries = [v for v in match.computing if v != match.root and tape.ops[v].type.size == size]
    last: dict[int, int] = {}
    for value in sorted(match.interior | {match.root}):
        for operand in tape.ops[value].operands:
            last[operand] = value
    events = sorted((point, step) for v in temporaries for point, step in ((v, 1), (last.get(v, v), -1)))
    live = most = 0
    for _, step in events:
        live += step
        most = max(most, live)
    figures = {
        "live_temporaries": Number(most, "value", "counted"),
        "register_cap": Number(machine.vector_registers, "value", "counted"),
    }
    if machine.planning_only:
        figures["occupancy"] = Number(min(1.0, size / machine.lanes), "share", "modelled")
    return figures


def weight(benefit: float, claims: int, *, by_ops: bool) -> int:
    """Turns a benefit into what the election adds up.

    By cost: femtoseconds saved. Where every legal match is wanted (`cost="always"`, and raises, which cost nothing):
    most computing ops first, then fewest regions, then the benefit.
    """
    ten_seconds = 10**16
    saved = round(benefit * FEMTOSECONDS) if math.isfinite(benefit) else -ten_seconds
    if not by_ops:
        return saved
    return claims * 10**18 - 10**17 + max(-ten_seconds, min(saved, ten_seconds))
