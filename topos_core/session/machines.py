"""The machine profiles that a request may name, for front ends that offer the choice."""

from __future__ import annotations


def machines() -> tuple[str, ...]:
    """Names the shipped profiles; `reference` is among them and prices alike on every host."""
    from topos_core.cost.profiles import machine_names

    return machine_names()
