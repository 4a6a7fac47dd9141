"""Every op by name: walks the family files of this folder, each of which has `DEFINITIONS`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

import topos_core.ops
from topos_core.errors import InternalError
from topos_core.ops.definition import OpDefinition


@cache
def definitions() -> Mapping[str, OpDefinition]:
    """Maps every op's name to its definition, families in the order of their file names."""
    found: dict[str, OpDefinition] = {}
    for module in pkgutil.iter_modules(topos_core.ops.__path__):
        family = importlib.import_module(f"topos_core.ops.{module.name}")
        for row in getattr(family, "DEFINITIONS", ()):
            if row.name in found:
                raise InternalError(f"op {row.name} is defined twice; the second time in {family.__name__}")
            found[row.name] = row
    return MappingProxyType(found)


def definition(name: str) -> OpDefinition:
    """Gives one op's definition.

    Raises:
        KeyError: No op has that name.
    """
    return definitions()[name]
