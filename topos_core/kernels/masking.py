"""Whether kernels mask lanes on the machine that a plan is for."""

from __future__ import annotations

from topos_core.cost.profiles import machine
from topos_core.kernels.host import host


def masked_on(profile: str) -> bool:
    """Tells whether kernels mask lanes on the machine of a profile's name, as `Host.masked` does for the machine that runs them."""
    told = machine(profile).masked
    return host().masked if told is None else told
