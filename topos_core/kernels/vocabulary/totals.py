"""Sums and extremes along a row of memory, in vector registers, and maps that sum what they store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.emitter import INT64, Emitter
from topos_core.kernels.vocabulary.rows import low_bits, with_arity
from topos_core.kernels.vocabulary.scalar import Scalar

Terms = Callable[[Emitter, Sequence[Any], Any], Sequence[Any]]
"""Computes the summands of one element of each source and the row's value, on a scalar or on a vector register."""

UNROLLED = 4  # independent chains, so that additions overlap


def row_totals(
    host: Host, scalar: Scalar, terms: Terms, count: int, sources: int = 1, *, stores: bool = False, ahead: int = 0
) -> Any:
    """Makes `totals(target, source..., value, length)`: target[k] += sum of the k-th term, for `count` terms.

    With `stores` it is `totals(stored, target, ...)`, and the first term of every element is stored. `target` is f64. A call adds in the row's dtype; callers keep rows to a few thousand elements, so that no chain of
    additions is long. Where `ahead` is not 0, sources are asked for that many bytes early.
    """

    def totals(context: Any, *_: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            stored, given = (arguments[0], arguments[1:]) if stores else (None, arguments)
            target, *read, value, length = given
            _Totals(builder, host, scalar, terms, count, stored, ahead).write(target, read, value, length)
            return context.get_dummy_value()

        addresses = (types.int64,) * (1 + sources + stores)
        return types.void(*addresses, scalar.numba, types.int64), generate

    names = [
        "context",
        *(["stored"] if stores else []),
        "target",
        *(f"source{k}" for k in range(sources)),
        "value",
        "length",
    ]
    return with_arity(totals, names)


def row_map_total(host: Host, scalar: Scalar, step: Callable[..., Any], values: int = 1) -> Any:
    """Makes `map(stored, target, source, value..., length)`: stored[i] = step(source[i], value...); target[0] += their sum."""

    def mapped(context: Any, *_: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            stored, target, source, *given, length = arguments

            def terms(emitter: Emitter, elements: Sequence[Any], given: Any) -> Sequence[Any]:
                return (step(emitter, elements[0], *given),)

            _Totals(builder, host, scalar, terms, 1, stored).write(target, [source], tuple(given), length)
            return context.get_dummy_value()

        return types.void(*(types.int64,) * 3, *(scalar.numba,) * values, types.int64), generate

    names = ["context", "stored", "target", "source", *(f"value{k}" for k in range(values)), "length"]
    return with_arity(mapped, names)


def row_maximum(host: Host, scalar: Scalar) -> Any:
    """Makes `maximum(source, length) -> value`: the largest number of a row of at least one; NaN is passed over."""

    def maximum(context: Any, source: Any, length: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return _maximum(builder, host, scalar, *arguments)

        return scalar.numba(types.int64, types.int64), generate

    return intrinsic(maximum)


class _Totals:
    """Writes one row of sums."""

    def __init__(
        self, builder: Any, host: Host, scalar: Scalar, terms: Terms, count: int, stored: Any, ahead: int = 0
    ) -> None:
        self.ahead = ahead // scalar.bytes
        self.builder, self.host, self.scalar, self.terms, self.count = builder, host, scalar, terms, count
        self.lanes = host.lanes(scalar.name)
        self.vector = Emitter(builder, ir.VectorType(scalar.llvm, self.lanes))
        self.single = Emitter(builder, scalar.llvm)
        self.stored = None if stored is None else builder.inttoptr(stored, scalar.llvm.as_pointer())

    def write(self, target: Any, read: Sequence[Any], value: Any, length: Any) -> None:
        builder = self.builder
        self.sources = [builder.inttoptr(source, self.scalar.llvm.as_pointer()) for source in read]
        target = builder.inttoptr(target, ir.DoubleType().as_pointer())
        splat = tuple(map(self.vector.splat, value)) if isinstance(value, tuple) else self.vector.splat(value)
        # stack slots become registers
        chains = [[self.slot(self.vector) for _ in range(self.count)] for _ in range(UNROLLED)]
        rest = [self.slot(self.single) for _ in range(self.count)]
        done = self.loop(splat, chains, ir.Constant(INT64, 0), length, UNROLLED)
        done = self.loop(splat, chains[:1], done, length, 1)
        if self.host.masked:
            with builder.if_then(builder.icmp_signed("<", done, length)):
                self.masked_tail(splat, chains[1], done, length)
        else:
            self.scalar_tail(value, rest, done, length)
        for k in range(self.count):
            total = builder.load(chains[0][k])
            for chain in chains[1:]:
                total = self.vector.add(total, builder.load(chain[k]))
            summed = self.single.add(across_lanes(builder, total, builder.fadd), builder.load(rest[k]))
            place = builder.gep(target, [ir.Constant(INT64, k)])
            wide = builder.fpext(summed, ir.DoubleType()) if self.scalar.bytes == 4 else summed
            builder.store(builder.fadd(builder.load(place), wide), place)

    def slot(self, emitter: Emitter) -> Any:
        slot = cgutils.alloca_once(self.builder, emitter.type)
        self.builder.store(emitter.constant(0.0), slot)
        return slot

    def loop(self, splat: Any, chains: Sequence[Any], first: Any, length: Any, unrolled: int) -> Any:
        builder = self.builder
        step = ir.Constant(INT64, self.lanes * unrolled)
        end = builder.add(first, builder.mul(builder.sdiv(builder.sub(length, first), step), step))
        with cgutils.for_range_slice(builder, first, end, step, inc=True) as (at, _):
            for u, chain in enumerate(chains):
                place = builder.add(at, ir.Constant(INT64, u * self.lanes))
                elements = [self.vector.load(builder.gep(source, [place])) for source in self.sources]
                if self.ahead:
                    soon = builder.add(place, ir.Constant(INT64, self.ahead))
                    for source in self.sources:
                        self.vector.prefetch(builder.gep(source, [soon]))
                terms = self.terms(self.vector, elements, splat)
                if self.stored is not None:
                    self.vector.store(terms[0], builder.gep(self.stored, [place]))
                for slot, term in zip(chain, terms, strict=True):
                    builder.store(self.vector.add(builder.load(slot), term), slot)
        return end

    def masked_tail(self, splat: Any, chain: Sequence[Any], done: Any, length: Any) -> None:
        builder = self.builder
        left = builder.sub(length, done)
        mask = self.vector.mask(low_bits(builder, left, self.lanes))
        elements = [self.vector.masked_load(builder.gep(source, [done]), mask) for source in self.sources]
        terms = self.terms(self.vector, elements, splat)
        if self.stored is not None:
            self.vector.masked_store(terms[0], builder.gep(self.stored, [done]), mask)
        for slot, term in zip(chain, terms, strict=True):
            kept = builder.select(mask, term, self.vector.constant(0.0))
            builder.store(self.vector.add(builder.load(slot), kept), slot)

    def scalar_tail(self, value: Any, rest: Sequence[Any], done: Any, length: Any) -> None:
        builder = self.builder
        with cgutils.for_range_slice(builder, done, length, ir.Constant(INT64, 1), inc=True) as (at, _):
            elements = [builder.load(builder.gep(source, [at])) for source in self.sources]
            terms = self.terms(self.single, elements, value)
            if self.stored is not None:
                builder.store(terms[0], builder.gep(self.stored, [at]))
            for slot, term in zip(rest, terms, strict=True):
                builder.store(self.single.add(builder.load(slot), term), slot)


def across_lanes(builder: Any, total: Any, combine: Callable[[Any, Any], Any]) -> Any:
    """Combines the lanes of a register pairwise."""
    lanes = total.type.count
    while lanes > 1:
        lanes //= 2
        low = ir.Constant(ir.VectorType(ir.IntType(32), lanes), list(range(lanes)))
        high = ir.Constant(ir.VectorType(ir.IntType(32), lanes), list(range(lanes, 2 * lanes)))
        undefined = ir.Constant(total.type, ir.Undefined)
        total = combine(
            builder.shuffle_vector(total, undefined, low), builder.shuffle_vector(total, undefined, high)
        )  # fmt: skip
    return builder.extract_element(total, ir.Constant(ir.IntType(32), 0))


def _maximum(builder: Any, host: Host, scalar: Scalar, source: Any, length: Any) -> Any:
    lanes = host.lanes(scalar.name)
    vector, single = Emitter(builder, ir.VectorType(scalar.llvm, lanes)), Emitter(builder, scalar.llvm)
    source = builder.inttoptr(source, scalar.llvm.as_pointer())
    lowest = float("-inf")
    slots = [cgutils.alloca_once(builder, vector.type) for _ in range(UNROLLED)]
    for slot in slots:
        builder.store(vector.constant(lowest), slot)
    rest = cgutils.alloca_once(builder, scalar.llvm)
    builder.store(single.constant(lowest), rest)

    def larger(
        a: Any, b: Any
    ) -> Any:  # the machine's own maximum: b where either is NaN, so a NaN in `a` is passed over
        return builder.select(builder.fcmp_ordered(">", a, b), a, b)

    done = ir.Constant(INT64, 0)
    for unrolled in (UNROLLED, 1):
        step = ir.Constant(INT64, lanes * unrolled)
        end = builder.add(done, builder.mul(builder.sdiv(builder.sub(length, done), step), step))
        with cgutils.for_range_slice(builder, done, end, step, inc=True) as (at, _):
            for u, slot in enumerate(slots[:unrolled]):
                place = builder.add(at, ir.Constant(INT64, u * lanes))
                builder.store(larger(vector.load(builder.gep(source, [place])), builder.load(slot)), slot)
        done = end
    if host.masked:
        with builder.if_then(builder.icmp_signed("<", done, length)):
            mask = vector.mask(low_bits(builder, builder.sub(length, done), lanes))
            left = vector.masked_load(builder.gep(source, [done]), mask)
            left = builder.select(mask, left, vector.constant(lowest))
            builder.store(larger(left, builder.load(slots[1])), slots[1])
    else:
        with cgutils.for_range_slice(builder, done, length, ir.Constant(INT64, 1), inc=True) as (at, _):
            builder.store(larger(builder.load(builder.gep(source, [at])), builder.load(rest)), rest)
    total = builder.load(slots[0])
    for slot in slots[1:]:
        total = larger(total, builder.load(slot))
    return larger(across_lanes(builder, total, larger), builder.load(rest))
