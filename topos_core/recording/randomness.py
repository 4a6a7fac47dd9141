"""Notices that random numbers are drawn while a function is recorded: what was drawn is frozen on the tape.

Looked at are NumPy's global state, Python's `random`, the generators that a module of the program names, that the function closes over or
its object holds, and those that `np.random.default_rng` makes while the function runs. A generator that stands in a container
or in an object's object is not noticed.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final, TypeAlias

import numpy as np

from topos_core.recording.location import role_of_path

Generator: TypeAlias = np.random.Generator | np.random.RandomState | random.Random
_KINDS: Final = (np.random.Generator, np.random.RandomState, random.Random)


class RandomStates:
    """The states of all generators that are known, when they were last looked at.

    Args:
        function: What is recorded; the generators that it closes over, or that its object holds, are looked at too.
    """

    __slots__ = ("_generators", "_seen")

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        held = {id(each): each for each in _held(function) if isinstance(each, _KINDS)}
        self._generators = list(held.values())
        self._seen = self._states()

    def add(self, generator: Generator) -> None:
        """Looks at one more generator, as it is now."""
        self._generators.append(generator)
        self._seen = self._states()

    def moved(self) -> bool:
        """Tells whether one of the states is another one than at the last look."""
        seen = self._states()
        same = seen == self._seen
        self._seen = seen
        return not same

    def _states(self) -> list[Any]:
        return [_state(), random.getstate(), *map(_state_of, self._generators)]


@contextmanager
def generators_noted(states: RandomStates) -> Iterator[None]:
    """Looks at every generator that `np.random.default_rng` makes inside."""
    made = np.random.default_rng

    def noting(*arguments: Any, **keywords: Any) -> np.random.Generator:
        generator = made(*arguments, **keywords)
        states.add(generator)
        return generator

    np.random.default_rng = noting
    try:
        yield
    finally:
        np.random.default_rng = made


def _held(function: Any) -> Iterator[Any]:
    """Gives what the program's own modules name (an installed package may draw for itself), and what a function and its object hold."""
    for name, module in list(sys.modules.items()):
        file = vars(module).get("__file__") if isinstance(module, ModuleType) else None
        if isinstance(file, str) and role_of_path(file) == "user" and name.partition(".")[0] != "topos_core":
            yield from list(vars(module).values())
    for each in (function, getattr(function, "__func__", None), vars(type(function)).get("__call__")):
        yield from _contents(getattr(each, "__closure__", None) or ())
        yield from (
            *(getattr(each, "__defaults__", None) or ()),
            *(getattr(each, "__kwdefaults__", None) or {}).values(),
        )
        yield from getattr(each, "__globals__", {}).values()
    for each in (function, getattr(function, "__self__", None)):
        yield from getattr(each, "__dict__", {}).values()


def _contents(cells: Iterable[Any]) -> Iterator[Any]:
    for cell in cells:
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            continue


def _state_of(generator: Generator) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return repr(generator.get_state(legacy=False))
    return repr(generator.bit_generator.state)


def _state() -> tuple[bytes, tuple[object, ...]]:
    """Gives the words of the generator, and the rest: where it stands and a kept half of a pair of normals."""
    state = np.random.get_state(legacy=False)
    inner = state["state"]
    if "pos" not in inner:  # another bit generator than the Mersenne Twister: `np.random.set_bit_generator`
        return repr(inner).encode(), (state.get("has_gauss"), state.get("gauss"))
    return inner["key"].tobytes(), (inner["pos"], state["has_gauss"], state["gauss"])
