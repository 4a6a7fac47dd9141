"""Batches of products from bindings to result: operands that do not lie behind each other are copied first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from topos_core.cost.memory import contiguous_strides, is_contiguous
from topos_core.kernels.convolution.engine import Epilogue
from topos_core.kernels.cores.shape import scattered
from topos_core.kernels.launch import address_of
from topos_core.kernels.layouts import arrange
from topos_core.kernels.products.engine import Product, Right
from topos_core.kernels.scratch import Read, Stage, arranged_strides, computed, moved_result
from topos_core.matching.facts import CoreFacts
from topos_core.ops.cast import cast_array
from topos_core.tape.type import TensorType

LABELS = {"x": ("t", "b", "r"), "w": ("t", "r", "n"), "result": ("t", "b", "n")}


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs one `matmul`: labels t (batches), b (rows), r (summed over), n (columns)."""

    facts: CoreFacts
    product: Product
    reads: tuple[tuple[str, Read], ...]

    def run(self, bindings: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray], threads: int) -> None:
        """Runs the match; see `Prepared`."""
        result, product = out["result"], self.product
        if not result.size:
            return
        x, w = (read.array(bindings[name]) for name, read in self.reads)
        if not self.facts.extents["r"]:  # a sum of nothing
            x = np.zeros((product.batch, product.rows, 1), product.dtype)
            w = np.zeros((product.batch, 1, product.columns), product.dtype)
        target = self._target(result)
        product.run(x, Right(w, False), 0, address_of(target), product.columns, threads)
        if target is not result:
            result[...] = cast_array(scattered(target, self.facts, LABELS["result"]), result.dtype).reshape(
                result.shape
            )

    def _target(self, result: np.ndarray) -> np.ndarray:
        """Gives where the product writes: the root itself where its batches, rows and columns lie so, or a temporary."""
        product = self.product
        if result.dtype == product.dtype and result.flags.c_contiguous:
            arranged = arrange(result, self.facts.result, LABELS["result"])
            if arranged.flags.c_contiguous and address_of(arranged) == address_of(result):
                return result
        return np.empty(product.batch * product.rows * product.columns, product.dtype)


def make_batched(facts: CoreFacts, dtype: str) -> Runner:
    """Builds the product."""
    t, b, r, n = (facts.extents[label] for label in ("t", "b", "r", "n"))
    product = Product(b, max(1, r), n, computed(dtype), Epilogue(), t)
    return Runner(facts, product, _reads(facts, dtype))


def stage_of(facts: CoreFacts, root: TensorType) -> Stage:
    """Tells what a run copies and makes elsewhere."""
    lies = arranged_strides(root.shape, contiguous_strides(root.shape), facts.result, LABELS["result"])
    straight = not lies.copies and is_contiguous(lies.shape, lies.strides)
    return Stage(_reads(facts, root.dtype), *moved_result(root, straight, facts.result, LABELS["result"]))


def _reads(facts: CoreFacts, dtype: str) -> tuple[tuple[str, Read], ...]:
    return tuple((name, Read(computed(dtype), facts.layouts[name], LABELS[name])) for name in ("x", "w"))


def moved(shape: Sequence[int], roles: Sequence[str], labels: Sequence[str]) -> bool:
    """Tells whether axes longer than 1 stand in another order than the labels: such an operand is copied."""
    places = [labels.index(role) for role, extent in zip(roles, shape, strict=True) if extent != 1]
    return places != sorted(places)
