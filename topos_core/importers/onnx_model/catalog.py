"""The table of operators, from every file of `operators/`; contributed ones are named `domain:Operator`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from topos_core.importers.onnx_model import operators
from topos_core.importers.onnx_model.node import Translate


@cache
def translations() -> Mapping[str, Translate]:
    """Maps operators to their formulas."""
    table: dict[str, Translate] = {}
    for module in pkgutil.iter_modules(operators.__path__):
        rows = importlib.import_module(f"{operators.__name__}.{module.name}").OPERATORS
        twice = table.keys() & rows.keys()
        if twice:
            raise ValueError(f"two formulas for {sorted(twice)}")
        table.update(rows)
    return MappingProxyType(table)


def key_of(domain: str, op_type: str) -> str:
    """Gives an operator's name in the table."""
    return op_type if domain in ("", "ai.onnx") else f"{domain}:{op_type}"
