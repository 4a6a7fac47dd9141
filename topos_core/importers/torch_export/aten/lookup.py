"""Lookups by index: embedding, index_select, index, and what writes by index. Only `index` counts from the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from topos_core.importers.torch_export.call import Call, NoFormula, Table
from topos_core.recording import elementwise, lookup, movement
from topos_core.recording.value import Value


def _embedding(call: Call, weight: Value, indices: Value, *rest: Any) -> Any:
    return lookup.gather(weight, indices, 0, from_end=False)


def _select(call: Call, x: Value, dim: int, index: Value) -> Any:
    return lookup.gather(x, index, dim % x.ndim, from_end=False)


def _index(call: Call, x: Value, indices: Sequence[Any]) -> Any:
    """`x[i, :, j]`: integer indices only; a mask gives as many rows as the data holds."""
    given = [each for each in indices if each is not None]
    if any(each.type.dtype in ("bool", "u8") for each in given):
        raise NoFormula("a mask as index")
    key = tuple(slice(None) if each is None else each for each in indices)
    if len(given) == 1:
        axis = next(at for at, each in enumerate(indices) if each is not None)
        return lookup.gather(x, given[0], axis)
    return x[key]


def _index_put(call: Call, x: Value, indices: Sequence[Any], values: Value, accumulate: bool = False) -> Any:
    """Adds rows by an index on the first axis; what replaces has no formula."""
    given = [each for each in indices if each is not None]
    if len(given) == 1 and given[0].type.dtype == "bool" and values.size == 1 and not accumulate:
        mask = given[0]
        at = next(at for at, each in enumerate(indices) if each is not None)
        if at == 0:
            wide = movement.reshape(mask, (*mask.type.shape, *(1,) * (x.ndim - mask.ndim)))
            return elementwise.select(wide, movement.reshape(call.cast(values), ()), x)
    if not accumulate or len(given) != 1 or indices[0] is None:
        raise NoFormula("it replaces elements by index")
    return _added(call, x, 0, lookup.counted(given[0], x.type.shape[0]), values)


def _index_add(call: Call, x: Value, dim: int, index: Value, source: Value, alpha: Any = 1) -> Any:
    axis = dim % x.ndim
    rows = call.cast(source) if alpha == 1 else call.cast(source) * alpha
    return _added(call, x, axis, lookup.counted(index, x.type.shape[axis], from_end=False), rows)


def _added(call: Call, x: Value, axis: int, index: Value, rows: Value) -> Value:
    shape = (*x.type.shape[:axis], *index.type.shape, *x.type.shape[axis + 1 :])
    operands = (x, index, movement.spread(call.cast(rows), shape))
    return x.recorder.record("scatter_add", operands, {"axis": axis})


TABLE: Final[Table] = {
    "embedding": _embedding, "index_select": _select, "index": _index, "index_put": _index_put,
    "index_add": _index_add,
}  # fmt: skip
