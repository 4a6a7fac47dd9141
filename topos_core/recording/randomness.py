"""Notices that NumPy's global random state moves while a function is recorded: what was drawn is frozen on the tape.

Generators of the program's own (`np.random.default_rng`) and Python's `random` are not noticed.
"""

from __future__ import annotations

import numpy as np


class GlobalState:
    """NumPy's global random state when it was last looked at."""

    __slots__ = ("_key", "_position")

    def __init__(self) -> None:
        self._key, self._position = _state()

    def moved(self) -> bool:
        """Tells whether the state is another one than at the last look."""
        key, position = _state()
        same = position == self._position and key == self._key
        self._key, self._position = key, position
        return not same


def _state() -> tuple[bytes, tuple[object, ...]]:
    """Gives the words of the generator, and the rest: where it stands and a kept half of a pair of normals."""
    state = np.random.get_state(legacy=False)
    inner = state["state"]
    if "pos" not in inner:  # another bit generator than the Mersenne Twister: `np.random.set_bit_generator`
        return repr(inner).encode(), (state.get("has_gauss"), state.get("gauss"))
    return inner["key"].tobytes(), (inner["pos"], state["has_gauss"], state["gauss"])
