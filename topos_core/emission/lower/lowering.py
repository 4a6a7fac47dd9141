"""What a lowering is, and the table of all: walks this folder, whose family files each have `LOWERINGS`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType

import topos_core.emission.lower
from topos_core.emission.builder import Builder, Ssa
from topos_core.tape.op import Op

Lower = Callable[[Builder, Op, Sequence[Ssa]], Ssa]
"""Writes one op and gives its result, which may be an operand where the op changes nothing."""


@cache
def lowerings() -> Mapping[str, Lower]:
    """Maps every op but input and parameter, which are arguments, to its lowering."""
    found: dict[str, Lower] = {}
    for module in pkgutil.iter_modules(topos_core.emission.lower.__path__):
        family = importlib.import_module(f"topos_core.emission.lower.{module.name}")
        found.update(getattr(family, "LOWERINGS", {}))
    return MappingProxyType(found)
