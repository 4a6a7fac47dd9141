"""Runs losses: a kernel gives doubles, their sum or mean is the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from topos_core.kernels.cores.shape import memory_order
from topos_core.kernels.launch import Scratch, address_of, launch, spaced, template
from topos_core.kernels.layouts import restore
from topos_core.kernels.library import Kernel, kernel
from topos_core.kernels.scratch import Read, Stage, computed
from topos_core.kernels.vocabulary.blocks import PAIR
from topos_core.matching.facts import CoreFacts
from topos_core.ops.cast import cast_array

Reads = tuple[tuple[str, Read], ...]
CHUNK: Final = 8192
"""Elements per item: what is summed before a double takes over."""


@dataclass(frozen=True, slots=True)
class SquaredDifference:
    """Runs one `mse_loss`; `reads` reads both values in one order."""

    facts: CoreFacts
    reads: Reads
    kernel: Kernel

    def run(self, bindings: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray], threads: int) -> None:
        """Runs the match; see `Prepared`."""
        values = [read.array(bindings[name]) for name, read in self.reads]
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
    """Runs one `cross_entropy`; `reads` reads logits and target."""

    facts: CoreFacts
    reads: Reads
    kernel: Kernel

    def run(self, bindings: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray], threads: int) -> None:
        """Runs the match; see `Prepared`."""
        rows, columns = self.facts.extents["k"], self.facts.extents["n"]
        logits, target = (read.array(bindings[name]) for name, read in self.reads)
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
    return SquaredDifference(facts, squared_reads(facts, dtype), kernel("squared_difference", computed(dtype)))


def squared_reads(facts: CoreFacts, dtype: str) -> Reads:
    """Tells how both values are read: in their own order where it is the same one."""
    order = memory_order(facts.layouts["x"])
    matched = order is not None and order == memory_order(facts.layouts["target"])
    return tuple(
        (name, Read(computed(dtype)) if matched else Read(computed(dtype), facts.layouts[name], ("n",)))
        for name in ("x", "target")
    )


def squared_stage(facts: CoreFacts, dtype: str) -> Stage:
    """Tells what a run copies, and its one double per item."""
    return Stage(squared_reads(facts, dtype), 8 * (facts.extents["n"] // CHUNK + 1))


def cross_entropy(facts: CoreFacts, dtype: str) -> CrossEntropy:
    """Compiles the kernel of a cross entropy."""
    unshifted = facts.options["target"] == "class" and facts.options["shifted"] != "yes"
    variant = "unshifted" if unshifted else facts.options["target"]
    return CrossEntropy(facts, entropy_reads(facts, dtype), kernel("cross_entropy", computed(dtype), variant))


def entropy_reads(facts: CoreFacts, dtype: str) -> Reads:
    """Tells how logits and targets are read: as rows, class numbers as 64-bit integers."""
    running, layouts = computed(dtype), facts.layouts
    if facts.options["target"] == "class":
        target = Read("i64", layouts["target"], ("k",))
    else:
        target = Read(running, layouts["target"], ("k", "n"))
    return (("logits", Read(running, layouts["logits"], ("k", "n"))), ("target", target))


def entropy_stage(facts: CoreFacts, dtype: str) -> Stage:
    """Tells what a run copies, and its one double per row."""
    return Stage(entropy_reads(facts, dtype), 8 * facts.extents["k"])
