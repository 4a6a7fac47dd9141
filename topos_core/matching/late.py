"""Attributes that few ask for, where millions of objects are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Late:
    """An attribute that is worked out where somebody asks for it first, and plain from then on.

    Unlike `__getattr__` it costs the other attributes nothing, and unlike `functools.cached_property` no lock.
    """

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        made = instance.__dict__[self._name] = self._make(instance)
        return made
