"""The table of primitives, from every file of `primitives/`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from topos_core.importers.jax_jaxpr import primitives
from topos_core.importers.jax_jaxpr.equation import Translate


@cache
def translations() -> Mapping[str, Translate]:
    """Maps primitives to their translations."""
    table: dict[str, Translate] = {}
    for module in pkgutil.iter_modules(primitives.__path__):
        rows = importlib.import_module(f"{primitives.__name__}.{module.name}").PRIMITIVES
        twice = table.keys() & rows.keys()
        if twice:
            raise ValueError(f"two translations of {sorted(twice)}")
        table.update(rows)
    return MappingProxyType(table)
