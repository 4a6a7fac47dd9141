"""A linear layer from bindings to result: layouts and dtypes at the edges, a known weight packed beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from topos_core.cost.memory import contiguous_strides
from topos_core.kernels.convolution.engine import Epilogue
from topos_core.kernels.cores.shape import memory_order, scattered, vector_of
from topos_core.kernels.launch import address_of
from topos_core.kernels.layouts import arrange
from topos_core.kernels.products.engine import Product, Right
from topos_core.kernels.scratch import Read, Stage, arranged_strides, computed, moved_result
from topos_core.matching.facts import CoreFacts, Layout
from topos_core.ops.cast import cast_array
from topos_core.tape.type import TensorType, numpy_dtype

LABELS = ("b", "n")


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs one match.

    Args:
        facts: Labels b (examples), r (summed over), n (outputs).
        dtype: The recorded dtype; f16 and bf16 are computed in f32 and rounded once.
        product: Does the work in f32 or f64.
        right: The weight, packed, where it is known beforehand.
        bias: The bias where it is known beforehand.
        plain: Which bindings, and `result`, have their labels in the product's order when they are C-contiguous.
        reads: How `x` and `w` are read where they are not.
    """

    facts: CoreFacts
    dtype: np.dtype
    product: Product
    right: Right | None
    bias: np.ndarray | None
    plain: frozenset[str]
    reads: Mapping[str, Read]

    def run(self, bindings: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray], threads: int) -> None:
        """Runs the match; see `Prepared`."""
        result = out["result"]
        if not result.size:
            return
        dtype, product = self.product.dtype, self.product
        x = self._dense(bindings["x"], "x")
        right = self.right if self.right is not None else Right(self._dense(bindings["w"], "w"), False)
        bias = self.bias
        if bias is None and "bias" in bindings:
            bias = self._dense(bindings["bias"], "bias")
        if not self.facts.extents["r"]:  # a sum of nothing
            x, right = np.zeros((product.rows, 1), dtype), Right(np.zeros((1, product.columns), dtype), False)
        target, row = self._target(result)
        at = address_of(bias) if bias is not None else 0
        product.run(x, right, at, address_of(target), row, threads)
        if target is not result:
            result[...] = cast_array(scattered(target, self.facts, LABELS), result.dtype).reshape(result.shape)

    def _dense(self, array: np.ndarray, name: str) -> np.ndarray:
        """Gives a binding's elements densely in the order of its labels, itself where they are."""
        if name in self.plain and array.flags.c_contiguous and array.dtype == self.product.dtype:
            return array
        if name == "bias":
            return vector_of(array, self.facts, name, ("n",), self.product.dtype)
        return self.reads[name].array(array)

    def _target(self, result: np.ndarray) -> tuple[np.ndarray, int]:
        """Gives where the product writes, and the elements between its rows: the root itself, or a temporary."""
        columns = self.product.columns
        if "result" in self.plain and result.flags.c_contiguous and result.dtype == self.product.dtype:
            return result, columns
        if result.dtype == self.product.dtype:
            arranged = arrange(result, self.facts.result, LABELS)
            dense = columns == 1 or arranged.strides[1] == result.itemsize
            if dense and address_of(arranged) == address_of(result) and not arranged.strides[0] % result.itemsize:
                return result, arranged.strides[0] // result.itemsize
        return np.empty(self.product.rows * columns, self.product.dtype), columns


def make_runner(
    facts: CoreFacts, dtype: str, weight: np.ndarray | None, bias: np.ndarray | None, epilogue: Epilogue
) -> Runner:
    """Builds the product and packs what is known."""
    running = numpy_dtype(computed(dtype))
    extents = facts.extents
    product = Product(extents["b"], max(1, extents["r"]), extents["n"], computed(dtype), epilogue)
    right = None
    if weight is not None and weight.size:
        right = product.pack(weight_rows(weight, facts, running))
    known = None if bias is None else vector_of(bias, facts, "bias", ("n",), running)
    layouts = {**facts.layouts, "result": facts.result}
    orders = {"x": ("b", "r"), "w": ("r", "n"), "bias": ("n",), "result": LABELS}
    plain = {name for name, layout in layouts.items() if _in_order(layout, orders[name], facts)}
    return Runner(facts, numpy_dtype(dtype), product, right, known, frozenset(plain), readings(facts, dtype))


def readings(facts: CoreFacts, dtype: str) -> dict[str, Read]:
    """Tells how x and the weight are read: dense rows; a weight that is known is packed beforehand."""
    running = computed(dtype)
    return {
        "x": Read(running, facts.layouts["x"], ("b", "r")),
        "w": Read(running, facts.layouts["w"], ("r", "n"), once=True),
    }


def stage_of(facts: CoreFacts, root: TensorType, x: str | None = "x", weight: str = "w") -> Stage:
    """Tells what a run copies and makes elsewhere.

    Args:
        facts: The layer's.
        root: Its result.
        x, weight: What the match calls them; x is None for memory of a block.
    """
    reads = readings(facts, root.dtype)
    lies = arranged_strides(root.shape, contiguous_strides(root.shape), facts.result, LABELS)
    straight = not lies.copies and (facts.extents["n"] == 1 or lies.strides[1] == 1)
    elsewhere = moved_result(root, straight, facts.result, LABELS)
    bound = () if x is None else ((x, reads["x"]),)
    return Stage((*bound, (weight, reads["w"])), *elsewhere)


def _in_order(layout: Layout, labels: Sequence[str], facts: CoreFacts) -> bool:
    wanted = tuple((label, facts.extents[label]) for label in labels if facts.extents[label] != 1)
    return memory_order(layout) == wanted


def weight_rows(weight: np.ndarray, facts: CoreFacts, dtype: np.dtype) -> np.ndarray:
    """Gives the weight as C-contiguous [r, n]."""
    return np.ascontiguousarray(arrange(weight, facts.layouts["w"], ("r", "n")), dtype)
