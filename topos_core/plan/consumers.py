"""The consumers that exist."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from topos_core.kernels.home.manifest import Home
from topos_core.kernels.kernel import Consumer
from topos_core.kernels.stablehlo.manifest import StableHlo


@cache
def consumers() -> Mapping[str, Consumer]:
    """Maps names to consumers, in the order in which their verdicts are listed. No kernel is loaded by planning."""
    return MappingProxyType({consumer.name: consumer for consumer in (Home(), StableHlo())})
