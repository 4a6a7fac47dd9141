"""The measured error of every fast kernel."""

from __future__ import annotations

from functools import cache

from topos_core.kernels.envelope_table import PROBE, RELATIVE
from topos_core.kernels.kernel import Decline, Envelope

SMALLEST = {"f16": 6.1e-5, "bf16": 1.18e-38, "f32": 1.18e-38, "f64": 2.23e-308}
"""Normal numbers: a result of subnormal size is held to no relative error."""


@cache
def envelope(pattern: str, dtype: str) -> Envelope | None:
    """Gives the envelope of a pattern's kernel at a dtype, or None where its error was never measured."""
    relative = RELATIVE.get(pattern, {}).get(dtype)
    return None if relative is None else Envelope(relative, SMALLEST[dtype], PROBE)


def unmeasured(pattern: str, dtype: str) -> Decline:
    """Declines a kernel whose error at a dtype is unknown."""
    return Decline(
        "TP206", "no-kernel", f"home's kernel for {pattern} was never measured at {dtype}; cast to f32 for a fused run"
    )
