"""Runs attention with its projections: sides in one piece of memory, heads read and written where they lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from topos_core.kernels.attention import runner as attention
from topos_core.kernels.attention.offering import LABELS
from topos_core.kernels.launch import carved
from topos_core.kernels.layouts import restore
from topos_core.kernels.products.projections import Layer, Projections
from topos_core.matching.facts import CoreFacts

SIDES = {"query": "q", "key": "k", "value": "v"}


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs one match.

    Args:
        projections: Of query, key and value.
        attention: Reads heads out of them; writes them to where the output projection reads examples.
        output: The projection behind it.
        facts: The output projection's: b examples, r features of all heads.
    """

    projections: Projections
    attention: attention.Runner
    output: Layer
    facts: CoreFacts

    def run(self, bindings: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray], threads: int) -> None:
        """Runs the match; see `Prepared`."""
        if not out["result"].size:
            return
        *projected, memory = carved(self.attention.dtype, self._sizes())
        sides = self.projections.run(bindings, projected, threads)
        given = {SIDES[name]: array for name, array in sides.items()}
        given |= {name: bindings[name] for name in LABELS if name in bindings}
        rows = memory.reshape(self.facts.extents["b"], self.facts.extents["r"])
        seen = restore(rows, self.facts.layouts["x"], ("b", "r"))
        self.attention.run(given, {"result": seen}, threads)
        self.output.run(bindings, seen, out["result"], threads)

    def _sizes(self) -> list[int]:
        return [*self.projections.sizes, self.facts.extents["b"] * self.facts.extents["r"]]
