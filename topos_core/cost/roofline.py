"""Roofline: countable work on a machine to predicted seconds."""

from __future__ import annotations

from typing import NamedTuple

from topos_core.cost.machine import Machine
from topos_core.cost.work import Work


class Predicted(NamedTuple):
    """Predicted seconds and what bounds them: compute, memory or the call itself."""

    seconds: float
    compute_seconds: float
    memory_seconds: float
    call_seconds: float

    @property
    def bound(self) -> str:
        """Names the largest term."""
        terms = (
            (self.compute_seconds, "compute"),
            (self.memory_seconds, "memory"),
            (self.call_seconds, "call overhead"),
        )
        return max(terms, key=lambda term: term[0])[1]


def kernel_seconds(work: Work, dtype: str, machine: Machine, efficiency: float = 1.0, calls: float = 1) -> Predicted:
    """Predicts fused kernels: max(compute, memory) / efficiency + calls * overhead.

    Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009. `efficiency` is the fraction of the bound that the
    kernel reaches. A working set of exactly `cache_bytes` still counts as cached.
    """
    compute = work.flops / machine.flops_per_second.get(dtype, machine.flops_per_second["f32"])
    compute += work.transcendentals * machine.transcendental_seconds.get(dtype, machine.transcendental_seconds["f32"])
    moved = work.bytes_moved
    rate = machine.cache_bytes_per_second if moved <= machine.cache_bytes else machine.memory_bytes_per_second
    compute /= efficiency
    memory = moved / rate / efficiency
    call = calls * machine.call_seconds
    return tuple.__new__(Predicted, (max(compute, memory) + call, compute, memory, call))
