"""Every raise by its pattern's identifier: walks this folder, whose files each have `raise_match`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType

import topos_core.emission.raises
from topos_core.emission.builder import Builder, Ssa
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape

Raise = Callable[[Builder, Tape, Match, Mapping[str, Ssa]], Mapping[int, Ssa]]
"""Writes a match from its bindings; gives the root and every producer of a named result."""


@cache
def raises() -> Mapping[str, Raise]:
    """Maps pattern identifiers to raises."""
    found: dict[str, Raise] = {}
    for module in pkgutil.iter_modules(topos_core.emission.raises.__path__):
        file = importlib.import_module(f"topos_core.emission.raises.{module.name}")
        if hasattr(file, "raise_match"):
            found[module.name] = file.raise_match
    return MappingProxyType(found)
