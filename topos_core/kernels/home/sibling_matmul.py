"""`sibling_matmul`: one product with all right operands beside each other, whose columns then go to their results.

Declines: TP205 where bits must equal the recorded ones; TP206 for dtypes that are no floats.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from topos_core.kernels.convolution.engine import Epilogue
from topos_core.kernels.cores.offering import offer_core
from topos_core.kernels.kernel import Decline, Offer, Stages, Terms
from topos_core.kernels.launch import address_of
from topos_core.kernels.prepared import Prepared
from topos_core.kernels.products.engine import Product, Right
from topos_core.kernels.products.offering import is_known, product_cost
from topos_core.kernels.scratch import Read, ReadBeside, Reading, Stage, computed
from topos_core.matching.match import Match
from topos_core.ops.cast import cast_array
from topos_core.tape.tape import Tape
from topos_core.tape.type import numpy_dtype

CALLS: Final = 3.0
"""What starting it costs, in calls of a plain kernel: operands and results are moved by NumPy."""


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs one match.

    Args:
        names: Of right operands and results, in one order.
        columns: Of each.
        product: Of all together.
        right: The right operands, packed, where all are known beforehand.
        read: Reads `x`.
    """

    names: tuple[tuple[str, str], ...]
    columns: tuple[int, ...]
    product: Product
    right: Right | None
    read: Read

    def run(self, bindings: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray], threads: int) -> None:
        """Runs the match; see `Prepared`."""
        product = self.product
        if not product.rows * product.columns:
            return
        x = self.read.array(bindings["x"])
        right = self.right if self.right is not None else Right(_beside(self._weights(bindings), product.dtype), False)
        if not x.shape[1]:  # a sum of nothing
            x, right = (
                np.zeros((product.rows, 1), product.dtype),
                Right(np.zeros((1, product.columns), product.dtype), False),
            )
        together = np.empty((product.rows, product.columns), product.dtype)
        product.run(x, right, 0, address_of(together), product.columns, threads)
        first = 0
        for (_, name), count in zip(self.names, self.columns, strict=True):
            result = out[name]
            result[...] = cast_array(together[:, first : first + count], result.dtype)
            first += count

    def _weights(self, bindings: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        return [bindings[weight] for weight, _ in self.names]


def offer(tape: Tape, match: Match, terms: Terms) -> Offer | Decline:
    """Offers the common product for floats."""
    facts = match.facts
    columns, dtype = sum(facts.columns), tape.ops[match.root].type.dtype
    weights = [value for name, value in match.bindings.items() if name != "x"]
    known = all(is_known(tape, value) for value in weights)
    cost = product_cost(facts.rows, facts.steps, columns, dtype, known)
    elements = facts.rows * columns + (0 if known else facts.steps * columns)
    running = computed(dtype)
    size = numpy_dtype(running).itemsize
    brought = 0 if running == dtype else facts.rows * max(facts.columns) * numpy_dtype(dtype).itemsize

    def stages() -> tuple[Stage, ...]:
        reads: list[tuple[str, Reading]] = [("x", Read(running))]
        if not known:
            names = tuple(name for name in match.bindings if name != "x")
            reads.append((names[0], ReadBeside(running, names, facts.steps * columns * size)))
        return (Stage(tuple(reads), facts.rows * columns * size, brought),)

    return offer_core(
        tape, match, terms, kernel=f"one product of {columns} columns for {len(weights)} results", flops=cost.flops,
        transcendentals=0, efficiency=cost.efficiency,
        between=elements * numpy_dtype(dtype).itemsize,  # the common result, and right operands laid beside each other
        held=0, calls=CALLS, stages=Stages(stages),
    )  # fmt: skip


def prepare(tape: Tape, match: Match, constants: Mapping[int, np.ndarray]) -> Prepared:
    """Packs right operands that are known."""
    facts = match.facts
    dtype = "f64" if tape.ops[match.root].type.dtype == "f64" else "f32"
    product = Product(facts.rows, max(1, facts.steps), sum(facts.columns), dtype, Epilogue())
    names = tuple((f"w{k}", "result" if name == "root" else name) for k, name in enumerate(facts.results))
    known = [constants.get(match.bindings[weight]) for weight, _ in names]
    arrays = [array for array in known if array is not None]
    right = None
    if len(arrays) == len(names) and facts.steps and sum(facts.columns):
        right = product.pack(_beside(arrays, numpy_dtype(dtype)))
    return Runner(names, facts.columns, product, right, Read(dtype))


def _beside(arrays: list[np.ndarray], dtype: np.dtype) -> np.ndarray:
    """Lays right operands beside each other: [steps, all columns], C-contiguous."""
    return np.ascontiguousarray(np.concatenate([cast_array(array, dtype) for array in arrays], axis=1))
