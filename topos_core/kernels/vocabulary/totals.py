"""Sums along a row of memory, in vector registers, added to a double at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.emitter import INT64, Emitter
from topos_core.kernels.vocabulary.scalar import Scalar

Terms = Callable[[Emitter, Any, Any], Sequence[Any]]
"""Computes the summands of one element and the row's value, on a scalar or on a vector register."""

UNROLLED = 4  # independent chains, so that additions overlap


def row_totals(host: Host, scalar: Scalar, terms: Terms, count: int) -> Any:
    """Makes `totals(target, source, value, length)`: target[k] += sum of the k-th term, for `count` terms.

    `target` is f64. A call adds in the row's dtype; callers keep rows to a few thousand elements, so that no chain of
    additions is long.
    """

    def totals(context: Any, target: Any, source: Any, value: Any, length: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            _Totals(builder, host, scalar, terms, count).write(*arguments)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, scalar.numba, types.int64), generate

    return intrinsic(totals)


class _Totals:
    """Writes one row of sums."""

    def __init__(self, builder: Any, host: Host, scalar: Scalar, terms: Terms, count: int) -> None:
        self.builder, self.scalar, self.terms, self.count = builder, scalar, terms, count
        self.lanes = host.lanes(scalar.name)
        self.vector = Emitter(builder, ir.VectorType(scalar.llvm, self.lanes))
        self.single = Emitter(builder, scalar.llvm)

    def write(self, target: Any, source: Any, value: Any, length: Any) -> None:
        builder = self.builder
        source = builder.inttoptr(source, self.scalar.llvm.as_pointer())
        target = builder.inttoptr(target, ir.DoubleType().as_pointer())
        splat = self.vector.splat(value)
        chains = [
            [self.slot(self.vector) for _ in range(self.count)] for _ in range(UNROLLED)
        ]  # stack slots become registers
        rest = [self.slot(self.single) for _ in range(self.count)]
        done = self.loop(source, splat, chains, ir.Constant(INT64, 0), length, UNROLLED)
        done = self.loop(source, splat, chains[:1], done, length, 1)
        with cgutils.for_range_slice(builder, done, length, ir.Constant(INT64, 1), inc=True) as (at, _):
            element = builder.load(builder.gep(source, [at]))
            for slot, term in zip(rest, self.terms(self.single, element, value), strict=True):
                builder.store(self.single.add(builder.load(slot), term), slot)
        for k in range(self.count):
            total = builder.load(chains[0][k])
            for chain in chains[1:]:
                total = self.vector.add(total, builder.load(chain[k]))
            summed = self.single.add(self.across(total), builder.load(rest[k]))
            place = builder.gep(target, [ir.Constant(INT64, k)])
            wide = builder.fpext(summed, ir.DoubleType()) if self.scalar.bytes == 4 else summed
            builder.store(builder.fadd(builder.load(place), wide), place)

    def slot(self, emitter: Emitter) -> Any:
        slot = cgutils.alloca_once(self.builder, emitter.type)
        self.builder.store(emitter.constant(0.0), slot)
        return slot

    def loop(self, source: Any, splat: Any, chains: Sequence[Any], first: Any, length: Any, unrolled: int) -> Any:
        builder = self.builder
        step = ir.Constant(INT64, self.lanes * unrolled)
        end = builder.add(first, builder.mul(builder.sdiv(builder.sub(length, first), step), step))
        with cgutils.for_range_slice(builder, first, end, step, inc=True) as (at, _):
            for u, chain in enumerate(chains):
                place = builder.add(at, ir.Constant(INT64, u * self.lanes))
                element = self.vector.load(builder.gep(source, [place]))
                for slot, term in zip(chain, self.terms(self.vector, element, splat), strict=True):
                    builder.store(self.vector.add(builder.load(slot), term), slot)
        return end

    def across(self, total: Any) -> Any:
        """Adds the lanes pairwise."""
        builder, lanes = self.builder, self.lanes
        while lanes > 1:
            lanes //= 2
            low = ir.Constant(ir.VectorType(ir.IntType(32), lanes), list(range(lanes)))
            high = ir.Constant(ir.VectorType(ir.IntType(32), lanes), list(range(lanes, 2 * lanes)))
            undefined = ir.Constant(total.type, ir.Undefined)
            total = builder.fadd(
                builder.shuffle_vector(total, undefined, low), builder.shuffle_vector(total, undefined, high)
            )
        return builder.extract_element(total, ir.Constant(ir.IntType(32), 0))
