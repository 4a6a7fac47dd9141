"""What consumers answer when they are shown a match: an offer, or a reasoned no."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, overload

if TYPE_CHECKING:  # servers read the names below from here, and load no NumPy
    from topos_core.cost.work import Work
    from topos_core.kernels.scratch import Apart, InColumns, Stage
    from topos_core.matching.match import Match
    from topos_core.tape.tape import Tape

Fidelity = Literal["exact", "fast"]
Dialect = Literal["portable", "xla", "iree"]


@dataclass(frozen=True, slots=True)
class Envelope:
    """A fast kernel's measured error against float64 on the pattern's probe set.

    `relative` bounds max|got - f64| / max|f64| per output of a well-conditioned program, and grows with the condition of
    others (`conditioning.py`); `absolute` is added to it. `probe` names the probe set and versions that gave it.
    """

    relative: float
    absolute: float
    probe: str


class Stages(Sequence["Stage"]):
    """What runs one after the other for a match, put together when it is first read: of most matches nobody reads it."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], tuple[Stage, ...]]) -> None:
        self._make = make
        self._made: tuple[Stage, ...] | None = None

    def _read(self) -> tuple[Stage, ...]:
        if self._made is None:
            self._made = self._make()
        return self._made

    @overload
    def __getitem__(self, place: int) -> Stage: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Stage, ...]: ...

    def __getitem__(self, place: int | slice) -> Stage | tuple[Stage, ...]:
        return self._read()[place]

    def __len__(self) -> int:
        return len(self._read())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stages) and self._read() == other._read()

    def __hash__(self) -> int:
        return hash(self._read())

    def __repr__(self) -> str:
        return repr(self._read())


NO_STAGES: Final = Stages(tuple)
"""Of a kernel that copies nothing and holds nothing."""


class Offer(NamedTuple):
    """One consumer's kernel or raise for a match. A NamedTuple because a plan asks for one per match.

    Args:
        kernel: A short name for people: `direct convolution, 8x48 tile`, `stablehlo.convolution`.
        work: What running it costs.
        exact: Whether its result is bit-identical to the recorded ops.
        envelope: Its error where it is not exact.
        efficiency: Fraction of the machine's peak that the kernel reaches (modelled time = work / (peak * efficiency)).
        temporary_bytes: Scratch that the kernel holds from beginning to end, wherever its operands lie.
        calls: What starting it costs, in calls of a plain kernel: vectors that are made ready first count here.
        columns: How the root is written where it may have any order but that of its columns; None for a kernel that does not mind.
        any_order: Whether the root may have any order of axes in memory at no extra cost; else it should be C-contiguous.
        in_place: Bindings that the root may be written over: every element is read where it is written, and nowhere else.
        range: Why it gives numbers where recorded steps overflow: `shift` subtracts the largest exponent first, `f32` keeps the
            steps of f16 ops in f32; None where it overflows as recorded.
        stages: What runs one after the other: each one's copies of operands and scratch of its own.
        apart: How the root is written where its rows stand apart; None where it must be dense.
    """

    kernel: str
    work: Work
    exact: bool
    envelope: Envelope | None = None
    efficiency: float = 1.0
    temporary_bytes: int = 0
    calls: float = 1.0
    any_order: bool = False
    columns: InColumns | None = None
    in_place: tuple[str, ...] = ()
    range: Literal["shift", "f32"] | None = None
    stages: Stages = NO_STAGES
    apart: Apart | None = None

    @property
    def least_temporary_bytes(self) -> int:
        """Counts the scratch of a run whose operands lie as the kernel reads them."""
        return self.temporary_bytes + max((stage.least_bytes for stage in self.stages), default=0)


@dataclass(frozen=True, slots=True)
class Decline:
    """A reasoned no: `code` TP205..TP209, `word` its stable word, `reason` one sentence, `numbers` what decided."""

    code: str
    word: str
    reason: str
    numbers: Mapping[str, float] = field(default_factory=dict)


class Terms(Protocol):
    """What an offer depends on besides the match; `plan.request.Request` has it."""

    @property
    def fidelity(self) -> Fidelity: ...  # noqa: D102

    @property
    def machine(self) -> str: ...  # noqa: D102

    @property
    def dialect(self) -> Dialect: ...  # noqa: D102

    @property
    def off(self) -> frozenset[str]: ...  # noqa: D102


class Consumer(Protocol):
    """Who may act on matches."""

    @property
    def name(self) -> str: ...  # noqa: D102

    def concerns(self, pattern: str, /) -> bool:
        """Says whether a pattern is any of this consumer's business: else its matches get no verdict."""
        ...

    def offer(self, tape: Tape, match: Match, terms: Terms, /) -> Offer | Decline:
        """Says whether and how this consumer would act on the match."""
        ...
