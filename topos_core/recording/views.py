"""Operations whose result shares memory with its operand in NumPy: the raw movement, plus the bookkeeping of that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

from topos_core.recording import formulas, indexing, movement, windows
from topos_core.recording.value import Value

_PRUNE_AT = 32


def shared(base: Value, result: Value) -> Value:
    """Notes that two handles would share memory; a movement that changes nothing gives `base` itself."""
    if result is base:
        return base
    memory = base.memory
    if memory is None:
        memory = base.memory = [ref(base)]
    elif len(memory) >= _PRUNE_AT and not len(memory) & (len(memory) - 1):  # at powers of two: linear in all views made
        memory[:] = [each for each in memory if each() is not None]
    memory.append(ref(result))
    result.memory = memory
    return result


def _viewing(function: Callable[..., Value]) -> Callable[..., Value]:
    def view(x: Value, *arguments: Any, **keywords: Any) -> Value:
        return shared(x, function(x, *arguments, **keywords))

    view.__name__ = function.__name__
    view.__doc__ = function.__doc__
    return view


transpose = _viewing(movement.transpose)
matrix_transpose = _viewing(movement.matrix_transpose)
swapaxes = _viewing(movement.swapaxes)
moveaxis = _viewing(movement.moveaxis)
rollaxis = _viewing(movement.rollaxis)
expand_dims = _viewing(movement.expand_dims)
squeeze = _viewing(movement.squeeze)
broadcast_to = _viewing(movement.broadcast_to)
flip = _viewing(movement.flip)
fliplr = _viewing(movement.fliplr)
flipud = _viewing(movement.flipud)
rot90 = _viewing(movement.rot90)
diagonal = _viewing(movement.diagonal)
sliding_window_view = _viewing(windows.sliding_window_view)


def reshape(x: Value, shape: Any, order: str | None = "C", *, copy: bool | None = None) -> Value:
    """Gives the same elements under another shape; a copy only where asked for."""
    result = movement.reshape(x, shape, order)
    return formulas.fresh(result) if copy else shared(x, result)


def getitem(x: Value, key: Any) -> Value:
    """Indexes: a view for slices and integers, a copy for index arrays."""
    result, copied = indexing.getitem(x, key)
    return result if copied else shared(x, result)
