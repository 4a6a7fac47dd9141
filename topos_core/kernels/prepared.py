"""What an accepted offer becomes: something that runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

import numpy as np

from topos_core.matching.match import Match


class Prepared(Protocol):
    """A match that is ready to run; whatever could be done once (packing, folding, tables) is done.

    Safe to run from several threads at a time.
    """

    def run(self, bindings: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray], threads: int) -> None:
        """Runs it.

        Args:
            bindings: The match's bindings by name, in any strides; never written to.
            out: Arrays to fill: the root under `result` and named results under their own names.
            threads: How many threads may take part, at least 1.
        """
        ...


def known_of(match: Match, constants: Mapping[int, np.ndarray]) -> dict[str, np.ndarray]:
    """Gives the bindings that are known before a run, by name."""
    return {name: constants[value] for name, value in match.bindings.items() if value in constants}


def all_known(
    match: Match, constants: Mapping[int, np.ndarray], names: Collection[str]
) -> dict[str, np.ndarray] | None:
    """Gives the bindings of those names that the match has, where every one of them is known before a run."""
    known = {name: value for name, value in known_of(match, constants).items() if name in names}
    return known if len(known) == len(match.bindings.keys() & set(names)) else None
