"""Keys of inputs, parameters, constants and casts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from topos_core.matching.core import FACTOR, Key, Keys, Rule, applied
from topos_core.matching.symbol import Symbol
from topos_core.tape.op import Op
from topos_core.tape.type import numpy_dtype


def _source(keys: Keys, value: int, op: Op) -> Key | None:
    hole = keys.hole(value)
    if hole is None:
        return keys.unknown(value)
    func = keys.table.leaf("hole", hole, value, tuple(extent for extent in op.type.shape if extent != 1))
    return Symbol.named(f"{FACTOR}{hole}"), keys.leaf_view(func, op.type.shape)


def _constant(keys: Keys, value: int, op: Op) -> Key | None:
    content = op.attributes["value"]
    if isinstance(content, np.ndarray) and content.ndim:
        first = content.flat[0]
        if content.dtype == bool or not (content == first).all():
            return None
        content = first
    return keys.splat(keys.number(content, op.type.dtype), op.type.shape)


def _cast(keys: Keys, value: int, op: Op) -> Key | None:
    """A cast keeps its place, except on a number; a template goes back to its own dtype without a word."""
    operand = op.operands[0]
    if keys.is_template and op.type.dtype == "f64":
        return keys.coefficients[operand], keys.views[operand]
    coefficient = keys.coefficients[operand]
    if keys.is_one(operand) and isinstance(coefficient, float):
        content = np.asarray(coefficient).astype(numpy_dtype(keys.tape.ops[operand].type.dtype))
        with np.errstate(all="ignore"):
            content = content.astype(numpy_dtype(op.type.dtype))
        return keys.splat(keys.number(content[()], op.type.dtype), op.type.shape)
    return applied(keys, value, op)


RULES: Final[Mapping[str, Rule]] = {"input": _source, "parameter": _source, "constant": _constant, "cast": _cast}
