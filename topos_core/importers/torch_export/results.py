"""What a module returns: taken apart before torch.export sees it, and put together again around recorded values.

Export knows the classes of results that are registered with it: not a dataclass, not the cache that a decoder returns. Here
a dataclass, a named tuple or a `ModelOutput` is a record of its fields, and an object of another class is one of those of
its attributes that lead to tensors.
"""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

_DEEPEST: Final = 16
_UNSEEN: Final = object()
_PLAIN: Final = (str, bytes, int, float, bool, complex, type(None))


class Place(NamedTuple):
    """Where a tensor stood: its number among the results."""

    number: int


class Record(NamedTuple):
    """Fields by name; named tuples themselves cannot say that they are one of ours."""

    names: tuple[str, ...]
    fields: tuple[Any, ...]


class Results:
    """The result of the last call of one module."""

    def __init__(self) -> None:
        self._shape: Any = _UNSEEN

    def take_apart(self, module: Any, arguments: Any, result: Any) -> tuple[Any, ...]:
        """Keeps how a result nests and gives its tensors: a forward hook of the module that is exported."""
        tensors: list[Any] = []
        self._shape = _shape(result, tensors, _DEEPEST)
        return tuple(tensors)

    def around(self, values: Sequence[Any], spec: Any) -> Any:
        """Gives the result with a value in the place of every tensor; records are named tuples.

        Where no hook ran, as in a module that was exported before, the export's own `spec` says how it nests.
        """
        if self._shape is _UNSEEN:
            from torch.utils import _pytree as pytree

            return pytree.tree_unflatten(list(values), spec)
        return _filled(self._shape, values)


def _shape(result: Any, tensors: list[Any], depth: int) -> Any:
    import torch

    if isinstance(result, torch.Tensor):
        tensors.append(result)
        return Place(len(tensors) - 1)
    if isinstance(result, _PLAIN) or depth == 0:
        return result
    if isinstance(result, Mapping):
        fields = {str(key): _shape(each, tensors, depth - 1) for key, each in result.items()}
        return Record(tuple(fields), tuple(fields.values())) if dataclasses.is_dataclass(result) else fields
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return Record(result._fields, tuple(_shape(each, tensors, depth - 1) for each in result))
    if isinstance(result, (list, tuple)):
        inner = [_shape(each, tensors, depth - 1) for each in result]
        return tuple(inner) if isinstance(result, tuple) else inner
    return _object(result, tensors, depth)


def _object(result: Any, tensors: list[Any], depth: int) -> Any:
    """Takes a dataclass apart by its fields, another object by what of it leads to tensors."""
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        held = {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
    else:
        held = {
            name: each for name, each in getattr(result, "__dict__", {}).items() if _leads_to_tensors(each, depth - 1)
        }
    if not held:
        return result
    return Record(tuple(held), tuple(_shape(each, tensors, depth - 1) for each in held.values()))


def _leads_to_tensors(held: Any, depth: int) -> bool:
    import torch

    if isinstance(held, torch.Tensor):
        return True
    if isinstance(held, (torch.nn.Module, type, *_PLAIN)) or depth <= 0:
        return False
    inner = held.values() if isinstance(held, Mapping) else held if isinstance(held, (list, tuple)) else None
    if inner is None:
        inner = getattr(held, "__dict__", {}).values()
    return any(_leads_to_tensors(each, depth - 1) for each in inner)


def _filled(shape: Any, values: Sequence[Any]) -> Any:
    if isinstance(shape, Place):
        return values[shape.number]
    if isinstance(shape, Record):
        return namedtuple("Record", shape.names, rename=True)(*(_filled(each, values) for each in shape.fields))
    if isinstance(shape, dict):
        return {key: _filled(each, values) for key, each in shape.items()}
    if isinstance(shape, (list, tuple)):
        inner = [_filled(each, values) for each in shape]
        return tuple(inner) if isinstance(shape, tuple) else inner
    return shape
