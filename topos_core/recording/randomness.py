"""Notices that random numbers are drawn while a function is recorded: what was drawn is frozen on the tape.

Looked at are NumPy's global state, Python's `random`, the generators that the function's file names, and those that
`np.random.default_rng` makes while the function runs. A generator that comes from elsewhere is not noticed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


class RandomStates:
    """The states of all generators that are known, when they were last looked at.

    Args:
        function: What is recorded; the generators among its file's names are looked at.
    """

    __slots__ = ("_generators", "_seen")

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        names = getattr(function, "__globals__", {})
        self._generators = [each for each in names.values() if isinstance(each, np.random.Generator)]
        self._seen = self._states()

    def add(self, generator: np.random.Generator) -> None:
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
        return [_state(), random.getstate(), *(repr(each.bit_generator.state) for each in self._generators)]


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


def _state() -> tuple[bytes, tuple[object, ...]]:
    """Gives the words of the generator, and the rest: where it stands and a kept half of a pair of normals."""
    state = np.random.get_state(legacy=False)
    inner = state["state"]
    if "pos" not in inner:  # another bit generator than the Mersenne Twister: `np.random.set_bit_generator`
        return repr(inner).encode(), (state.get("has_gauss"), state.get("gauss"))
    return inner["key"].tobytes(), (inner["pos"], state["has_gauss"], state["gauss"])
