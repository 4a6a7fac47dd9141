"""Modules that traces import, imported once in the warm process, so that the next fork has them.

torch and what an export of it loads are 2.6 s of processor time, the kernels and importers of topos that a plan asks 20 ms, and
every trace would pay its own. A worker that has imported such modules says which; the warm process imports the same ones, a module
at a time between its other duties. Only modules of NumPy, of topos and of known frameworks are taken, and only such as are
installed: the project's folders are not on its path. Of topos none are where numba came with them, whose threads no fork survives.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections import deque
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Final

from topos_core.session.places import FRAMEWORKS

_MOST: Final = 8192
_OURS: Final = "topos_core"
_TAKEN: Final = FRAMEWORKS | {"numpy", _OURS}


def imported(before: Container[str] = ()) -> list[str]:
    """Lists the modules worth warming that this process has imported, but for those before, in the order of their import."""
    numba = "numba" in sys.modules
    return [
        name
        for name in list(sys.modules)
        if name not in before and _is_taken(name) and not (numba and name.partition(".")[0] == _OURS)
    ][:_MOST]


@dataclass(slots=True)
class Warming:
    """What is still to be imported."""

    pending: deque[str] = field(default_factory=deque)

    def add(self, names: Iterable[object]) -> None:
        """Takes names of modules; what is not worth it, or is there already, is left out."""
        found = [name for name in names if isinstance(name, str) and _is_taken(name) and name not in sys.modules]
        self.pending.extend(found[:_MOST])

    def step(self) -> None:
        """Imports the next module. One that fails is left to the traces, which tell why."""
        try:
            importlib.import_module(self.pending.popleft())
        except (Exception, SystemExit):
            return
        finally:
            if not self.pending:
                gc.collect()
                gc.freeze()


def _is_taken(name: str) -> bool:
    return name.partition(".")[0] in _TAKEN
