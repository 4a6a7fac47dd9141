"""A consumer's verdict on a match, with the numbers that decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from topos_core.kernels.kernel import Offer
from topos_core.matching.match import Match

NOTHING: Final[Mapping[int, tuple[int, ...]]] = MappingProxyType({})

Basis = Literal["counted", "modelled", "measured"]
Verdict = Literal["taken", "declined", "blocked"]


@dataclass(frozen=True, slots=True)
class Number:
    """One figure: never without a unit and a basis."""

    value: float
    unit: str
    basis: Basis


class Flip(NamedTuple):
    """One term of an offer's predicted time, and its value where kernel and recorded ops take equally long, all else equal.

    Args:
        of: `efficiency`, the fraction of the roofline that the kernel reaches: the region is taken above `at`; `start`, the
            seconds that starting it takes: taken below `at`.
        now: Its value.
        at: Its value at break-even.
    """

    of: Literal["efficiency", "start"]
    now: Number
    at: Number


class Firm(NamedTuple):
    """Why no one term of an offer's predicted time flips a decline by cost.

    Args:
        why: `slow`, no one term makes its kernel faster than the recorded ops; `observed`, an observation of what it never
            makes would block it; `rival`, what is taken on its ops saves more than it could, or goes first whatever it
            saves; `itself`, it would have to run before itself; `cycle`, regions would wait for each other, of which the one
            that saves least is refused.
        numbers: `slow`: seconds at the whole roofline, seconds when started in no time, seconds of the recorded ops;
            `rival`: seconds that it would have to save, seconds that it could save, or nothing where no saving is enough.
        value: The value that is observed.
        row: The observation's row among the request's.
        rival: The match id of the greatest pick in its way.
    """

    why: Literal["slow", "observed", "rival", "itself", "cycle"]
    numbers: tuple[Number, ...] = ()
    value: int = -1
    row: int = -1
    rival: str | None = None


class Outbid(NamedTuple):
    """Why a match that may run and pays was not chosen.

    Args:
        by: `ops`, those in its place cover more; `seconds`, they save more; `even`, they cover as many and save more; `order`, they
            are worth as much and end earlier; `listed`, one covers the same ops and is listed earlier; `aside`, one that
            does, and alone stands for election, has lost to them; `first`, they are chosen before it; `cycle`, it and the
            winner would wait for each other, and it is worth no more.
        regions: How many are chosen in its place, the winner among them.
        theirs, own: What they and it cover or save.
    """

    by: Literal["ops", "seconds", "even", "order", "listed", "aside", "first", "cycle"]
    regions: int
    theirs: Number | None = None
    own: Number | None = None


class Decision(NamedTuple):
    """A consumer's verdict on a match. A NamedTuple because a plan builds one per match.

    Args:
        match: What was recognised.
        verdict: taken, declined or blocked.
        code: The TP code of a decline or a block, else None.
        word: The decline's stable word (`cost`, `shared-interior`, `covered-by`, `fidelity`, `no-kernel`, `guard`,
            `switched-off`, `unknown-extent`), `observed` for a block, else None.
        numbers: Figures by name: flops, bytes before and after, calls saved, seconds before and after, benefit; of a block its
            price, and `beside`: the seconds of the recorded ops that would make what is observed again beside the match.
        readers: Ops outside that read a computing interior (`shared-interior`).
        observations: Rows of the request's observations that block.
        paths: Per blocking observation, the values between the interior value and the reader.
        would_block: Of a decline, the rows of observations of what it never makes, with their paths as above: each would block
            it if what declines it fell.
        winner: The match id that covers this one (`covered-by`).
        outbid: What decided between it and the winner, where there is one; else None.
        parent: The match id of a larger blocked match around this one.
        contains: Match ids inside this taken one, uncounted.
        nearest_free: The value nearest to the observed one whose observation costs nothing.
        kernel: What runs it (home) or what it becomes (stablehlo), where taken.
        offer: What the consumer offered, where it offered something.
        flip: What alone would have it taken, or why nothing alone would, where cost declines it; else None.
        reason: What the consumer gave for declining it; empty where its code and the rest say why, in the document's words.
    """

    match: Match
    verdict: Verdict
    code: str | None
    word: str | None
    numbers: Mapping[str, Number] = MappingProxyType({})
    readers: tuple[int, ...] = ()
    observations: tuple[int, ...] = ()
    paths: tuple[tuple[int, ...], ...] = ()
    would_block: Mapping[int, tuple[int, ...]] = NOTHING
    winner: str | None = None
    parent: str | None = None
    contains: tuple[str, ...] = ()
    nearest_free: int | None = None
    kernel: str | None = None
    offer: Offer | None = None
    flip: Flip | Firm | None = None
    outbid: Outbid | None = None
    reason: str = ""
