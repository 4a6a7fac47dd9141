"""Runs losses: a kernel gives doubles, their sum or mean is the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from topos_core.kernels.cores.shape import memory_order
from topos_core.kernels.launch import Scratch, address_of, launch, spaced, template
from topos_core.kernels.layouts import arrange, restore
from topos_core.kernels.library import Kernel, kernel
from topos_core.kernels.vocabulary.blocks import PAIR
from topos_core.matching.facts import CoreFacts
from topos_core.ops.cast import cast_array
from topos_core.tape.type import numpy_dtype

CHUNK: Final = 8192
"""Elements per item: what is summed before a double takes over."""


@dataclass(frozen=True, slots=True)
class SquaredDifference:
    """Runs one `mse_loss`; `matched` says that both values have their elements in one order."""

    facts: CoreFacts
    dtype: np.dtype
    kernel: Kernel
    matched: bool

    @property
    def scratch_bytes(self) -> int:
        """Counts one double per item."""
        return 8 * (self.facts.extents["n"] // CHUNK + 1)

    def run(self, bindings: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray], threads: int) -> None:
        """Runs the match; see `Prepared`."""
        values = []
        for name in ("x", "target"):
            array = bindings[name]
            if not self.matched:
                array = arrange(array, self.facts.layouts[name], ("n",))
            values.append(np.ascontiguousarray(array, self.dtype))
        count = values[0].size
        items = -(-count // CHUNK)
        totals = np.zeros(items)
        if items:
            words = {
                "items": items, "count": count, "chunk": CHUNK, "x": address_of(values[0]),
                "other": address_of(values[1]), "totals": address_of(totals),
            }  # fmt: skip
            launch(self.kernel, template(PAIR, words), min(threads, items))
        with np.errstate(all="ignore"):
            total = totals.sum()
            mean = np.divide(total, count) if self.facts.options["reduction"] == "mean" else total
        out["result"][...] = cast_array(np.asarray(mean), out["result"].dtype)


@dataclass(frozen=True, slots=True)
class CrossEntropy:
    """Runs one `cross_entropy`."""

    facts: CoreFacts
    dtype: np.dtype
    kernel: Kernel

    @property
    def scratch_bytes(self) -> int:
        """Counts one double per row, and three per worker."""
        return 8 * self.facts.extents["k"] + 64

    def run(self, bindings: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray], threads: int) -> None:
        """Runs the match; see `Prepared`."""
        rows, columns = self.facts.extents["k"], self.facts.extents["n"]
        by_class = self.facts.options["target"] == "class"
        logits = np.ascontiguousarray(arrange(bindings["logits"], self.facts.layouts["logits"], ("k", "n")), self.dtype)
        labels: Sequence[str] = ("k",) if by_class else ("k", "n")
        target = arrange(bindings["target"], self.facts.layouts["target"], labels)
        target = np.ascontiguousarray(target, np.int64 if by_class else self.dtype)
        losses = np.empty(rows)
        if rows and columns:
            chunk = max(1, CHUNK // columns)
            threads = min(threads, -(-rows // chunk))
            slot = spaced(64, threads)
            scratch = Scratch(slot * threads)
            words = {
                "items": -(-rows // chunk), "count": rows, "columns": columns, "chunk": chunk, "x": address_of(logits),
                "other": address_of(target), "totals": address_of(losses), "scratch": scratch.address, "slot_bytes": slot,
            }  # fmt: skip
            launch(self.kernel, template(PAIR, words), threads)
        self._deliver(losses, out["result"])

    def _deliver(self, losses: np.ndarray, result: np.ndarray) -> None:
        with np.errstate(all="ignore"):
            match self.facts.options["reduction"]:
                case "none":
                    shaped = restore(losses, self.facts.result, ("k",))
                    result[...] = cast_array(shaped, result.dtype).reshape(result.shape)
                case "sum":
                    result[...] = cast_array(np.asarray(losses.sum()), result.dtype)
                case _:
                    result[...] = cast_array(np.asarray(np.divide(losses.sum(), losses.size)), result.dtype)


def squared_difference(facts: CoreFacts, dtype: str) -> SquaredDifference:
    """Compiles the kernel of a mean squared error."""
    computed = "f64" if dtype == "f64" else "f32"
    order = memory_order(facts.layouts["x"])
    matched = order is not None and order == memory_order(facts.layouts["target"])
    return SquaredDifference(facts, numpy_dtype(computed), kernel("squared_difference", computed), matched)


def cross_entropy(facts: CoreFacts, dtype: str) -> CrossEntropy:
    """Compiles the kernel of a cross entropy."""
    computed = "f64" if dtype == "f64" else "f32"
    unshifted = facts.options["target"] == "class" and facts.options["shifted"] == "no"
    variant = "unshifted" if unshifted else facts.options["target"]
    return CrossEntropy(facts, numpy_dtype(computed), kernel("cross_entropy", computed, variant))
