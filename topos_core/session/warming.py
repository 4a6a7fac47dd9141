"""Frameworks that traces import, imported once in the warm process, so that the next fork has them.

torch and what an export of it loads are 2.6 s of processor time, of which every trace would pay its own. A worker that has
imported them says which modules they were; the warm process imports the same ones, a module at a time between its other duties.
Only modules of known frameworks are taken, and only such as are installed: the project's folders are not on its path.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from topos_core.session.places import FRAMEWORKS

_MOST: Final = 8192


def loaded() -> list[str]:
    """Lists the modules of frameworks that this process has imported, in the order of their import."""
    return [name for name in list(sys.modules) if _is_framework(name)][:_MOST]


@dataclass(slots=True)
class Warming:
    """What is still to be imported."""

    pending: deque[str] = field(default_factory=deque)

    def add(self, names: Iterable[object]) -> None:
        """Takes names of modules; what is no framework's, or is there already, is left out."""
        found = [name for name in names if isinstance(name, str) and _is_framework(name) and name not in sys.modules]
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


def _is_framework(name: str) -> bool:
    return name.partition(".")[0] in FRAMEWORKS
