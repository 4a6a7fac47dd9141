"""Runs a function of one value, element by element."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from topos_core.kernels.cores.shape import gathered, same_order, scattered
from topos_core.kernels.launch import address_of, launch, streamed, template
from topos_core.kernels.library import Kernel, kernel
from topos_core.kernels.vocabulary.blocks import MAP
from topos_core.matching.facts import CoreFacts
from topos_core.ops.cast import cast_array
from topos_core.tape.type import numpy_dtype

CHUNK: Final = 8192
"""Elements per item."""


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs one match; `aligned` says that x and the root have their elements in one order."""

    facts: CoreFacts
    dtype: np.dtype
    kernel: Kernel
    aligned: bool

    @property
    def scratch_bytes(self) -> int:
        """Counts nothing: chunks stay in registers."""
        return 0

    def run(self, bindings: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray], threads: int) -> None:
        """Runs the match; see `Prepared`."""
        result, x = out["result"], bindings["x"]
        if not result.size:
            return
        if not self.aligned:
            x = gathered(x, self.facts, ("k",))
        x = np.ascontiguousarray(x, self.dtype)
        straight = self.aligned and result.flags.c_contiguous and result.dtype == self.dtype
        target = result if straight else np.empty(x.size, self.dtype)
        items = -(-x.size // CHUNK)
        words = {
            "items": items, "count": x.size, "chunk": CHUNK, "x": address_of(x), "out": address_of(target),
            "streamed": streamed(target.nbytes),
        }  # fmt: skip
        launch(self.kernel, template(MAP, words), min(threads, items))
        if not straight:
            shaped = target if self.aligned else scattered(target, self.facts, ("k",))
            result[...] = cast_array(shaped.reshape(result.shape), result.dtype)


def make_runner(facts: CoreFacts, dtype: str, function: str) -> Runner:
    """Compiles the function's kernel."""
    computed = "f64" if dtype == "f64" else "f32"
    return Runner(facts, numpy_dtype(computed), kernel("unary", computed, function), same_order(facts) is not None)
