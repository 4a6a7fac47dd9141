"""The consumers that exist, each loaded when it is first asked."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final

from topos_core.kernels.kernel import Consumer, Decline, Offer, Terms
from topos_core.matching.match import Match
from topos_core.plan.request import ConsumerName
from topos_core.tape.tape import Tape

_MANIFESTS: Final[Mapping[ConsumerName, tuple[str, str]]] = {
    "home": ("topos_core.kernels.home.manifest", "Home"),
    "stablehlo": ("topos_core.kernels.stablehlo.manifest", "StableHlo"),
}


@dataclass(frozen=True, slots=True)
class Manifest:
    """A consumer by its module and class; planning for one never loads another."""

    name: str
    module: str
    kind: str

    def offer(self, tape: Tape, match: Match, terms: Terms, /) -> Offer | Decline:
        """Asks the manifest."""
        consumer: Consumer = getattr(importlib.import_module(self.module), self.kind)()
        return consumer.offer(tape, match, terms)


@cache
def consumers() -> Mapping[str, Consumer]:
    """Maps names to consumers, in the order in which their verdicts are listed."""
    return MappingProxyType({name: Manifest(name, *place) for name, place in _MANIFESTS.items()})
