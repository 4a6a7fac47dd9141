"""What a plan is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from topos_core.kernels.kernel import Dialect, Fidelity

ConsumerName = Literal["home", "stablehlo"]


@dataclass(frozen=True, slots=True)
class Request:
    """One request over one tape and match pool.

    Args:
        consumer: Who elects.
        fidelity: `exact` (bit-identical to the recorded ops) or `fast` (inside a measured envelope).
        machine: A machine profile's name; `reference` never depends on the host.
        cost: `model`, or `always` to elect every legal match.
        observe: Values observed besides the tape's own observations.
        ignore: Rows of `Tape.observations` that are left out (what-if).
        beside: Rows of `Tape.observations` that block nothing: what they read is recomputed beside what hides it (what-if).
        off: Pattern identifiers that are switched off.
        off_at: (pattern identifier, root value) pairs that are switched off.
        dialect: For `stablehlo`: `portable`, `xla` or `iree`.
    """

    consumer: ConsumerName = "home"
    fidelity: Fidelity = "fast"
    machine: str = "host"
    cost: Literal["model", "always"] = "model"
    observe: tuple[int, ...] = ()
    ignore: frozenset[int] = frozenset()
    beside: frozenset[int] = frozenset()
    off: frozenset[str] = frozenset()
    off_at: frozenset[tuple[str, int]] = frozenset()
    dialect: Dialect = "portable"

    @property
    def by_ops(self) -> bool:
        """Says whether most computing ops are elected, rather than most seconds: every legal match is wanted, or it is a raise.

        A raise is a name and costs its target nothing to read, so only home is elected by predicted time.
        """
        return self.cost == "always" or self.consumer != "home"
