"""Every formula by the ATen op's name: walks the files of `aten/`, each of which has `TABLE`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from topos_core.errors import InternalError
from topos_core.importers.torch_export import aten
from topos_core.importers.torch_export.call import Handler


@cache
def formulas() -> Mapping[str, Handler]:
    """Maps `conv2d`, or `max.dim` where an overload has a formula of its own, to formulas."""
    found: dict[str, Handler] = {}
    for module in pkgutil.iter_modules(aten.__path__):
        family = importlib.import_module(f"{aten.__name__}.{module.name}")
        for name, handler in getattr(family, "TABLE", {}).items():
            if name in found:
                raise InternalError(f"aten {name} has two formulas; the second one in {family.__name__}")
            found[name] = handler
    return MappingProxyType(found)


def formula_of(name: str, overload: str) -> Handler | None:
    """Gives the formula of an op."""
    known = formulas()
    return known.get(f"{name}.{overload}") or known.get(name)
