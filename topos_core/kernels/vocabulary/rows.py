"""Maps over rows of memory, in whole vector registers with a masked or scalar tail, so that short rows stay fast.

The loop vectoriser would do the same for long rows; image rows are short, and its remainders are scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import LINE
from topos_core.kernels.vocabulary.emitter import INT64, Emitter
from topos_core.kernels.vocabulary.scalar import Scalar
from topos_core.kernels.vocabulary.turning import riffled

Step = Callable[[Emitter, Sequence[Any]], Any]
"""Computes one result from the loaded operands, on a scalar or on a vector register."""


def row_map(
    host: Host,
    scalar: Scalar,
    strides: Sequence[int],
    step: Step,
    values: int = 0,
    *,
    streams: bool = False,
    asks: bool = False,
) -> Any:
    """Makes `map(target, source..., value..., count)`: target[i] = step(source[i * stride]..., value...).

    Args:
        strides: One per source, 1 or 2, in elements.
        step: Emits the computation.
        values: How many operands are the same scalar for the whole row.
        streams: Whether the map takes one argument more: not 0 where results are to be stored past the caches, as far as
            the machine can, from the first cache line on that starts in `target`. The first source is then asked for that many
            bytes early, and whoever calls it ends with `settle`.
        asks: Whether the map takes one argument more: how many bytes early all sources are asked for, or 0.
    """
    lanes = host.lanes(scalar.name)

    def mapped(context: Any, *arguments: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            target, sources, rest = given[0], given[1 : 1 + len(strides)], given[1 + len(strides) :]
            constants, count, early = rest[:values], rest[values], rest[values + 1] if streams or asks else None
            made = _Map(builder, host, scalar, lanes, tuple(strides), step, len(strides) if asks else 1, streams)
            made.write(target, sources, constants, count, early)
            return context.get_dummy_value()

        addresses = (types.int64,) * (1 + len(strides))
        return types.void(*addresses, *(scalar.numba,) * values, *(types.int64,) * (1 + (streams or asks))), generate

    names = ["context", "target", *(f"source{k}" for k in range(len(strides)))]
    names += [*(f"value{k}" for k in range(values)), "count", *(["early"] if streams or asks else [])]
    return with_arity(mapped, names)


def row_pairs(host: Host, scalar: Scalar) -> Any:
    """Makes `pairs(target, first, second, count)`: target[2 i] = first[i], target[2 i + 1] = second[i]."""
    lanes = host.lanes(scalar.name)

    def paired(context: Any, target: Any, first: Any, second: Any, count: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            target, *sources = (builder.inttoptr(address, scalar.llvm.as_pointer()) for address in given[:3])
            count, step, two = given[3], ir.Constant(INT64, lanes), ir.Constant(INT64, 2)
            emitter = Emitter(builder, ir.VectorType(scalar.llvm, lanes))
            whole = builder.mul(builder.sdiv(count, step), step)
            with cgutils.for_range_slice(builder, ir.Constant(INT64, 0), whole, step, inc=True) as (at, _):
                registers = riffled(builder, [emitter.load(builder.gep(source, [at])) for source in sources])
                for k, register in enumerate(registers):
                    place = builder.add(builder.mul(at, two), ir.Constant(INT64, k * lanes))
                    emitter.store(register, builder.gep(target, [place]))
            with cgutils.for_range_slice(builder, whole, count, ir.Constant(INT64, 1), inc=True) as (at, _):
                for k, source in enumerate(sources):
                    place = builder.add(builder.mul(at, two), ir.Constant(INT64, k))
                    builder.store(builder.load(builder.gep(source, [at])), builder.gep(target, [place]))
            return context.get_dummy_value()

        return types.void(*(types.int64,) * 4), generate

    return intrinsic(paired)


def with_arity(function: Any, names: Sequence[str]) -> Any:
    """Makes an intrinsic of a function (context, *arguments) that takes exactly these arguments."""
    function.__signature__ = Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names])
    return intrinsic(function)


def low_bits(builder: Any, count: Any, lanes: int) -> Any:
    """Gives an i64 with so many low bits set, none where the count is negative, `lanes` at most."""
    top, zero = ir.Constant(INT64, lanes), ir.Constant(INT64, 0)
    count = builder.select(builder.icmp_signed(">", count, top), top, count)
    count = builder.select(builder.icmp_signed("<", count, zero), zero, count)
    shifted = builder.lshr(ir.Constant(INT64, -1), builder.sub(ir.Constant(INT64, 64), count))
    return builder.select(builder.icmp_signed("==", count, zero), zero, shifted)


def can_stream(builder: Any, scalar: Scalar, target: Any, streamed: Any) -> Any:
    """Tells whether `streamed` is not 0 and whole elements lead from `target` to a cache line."""
    zero = ir.Constant(INT64, 0)
    off = builder.and_(target, ir.Constant(INT64, scalar.bytes - 1))
    return builder.and_(builder.icmp_signed("!=", streamed, zero), builder.icmp_signed("==", off, zero))


def before_line(builder: Any, scalar: Scalar, target: Any, count: Any) -> Any:
    """Counts the elements of `count` before the first cache line that starts in `target`."""
    before = builder.and_(builder.neg(target), ir.Constant(INT64, LINE - 1))
    before = builder.sdiv(before, ir.Constant(INT64, scalar.bytes))
    return builder.select(builder.icmp_signed("<", before, count), before, count)


class _Map:
    """Writes one map."""

    def __init__(
        self,
        builder: Any,
        host: Host,
        scalar: Scalar,
        lanes: int,
        strides: tuple[int, ...],
        step: Step,
        asked: int,
        streams: bool,
    ) -> None:
        self.builder, self.host, self.scalar, self.lanes = builder, host, scalar, lanes
        self.strides, self.step, self.asked, self.streams = strides, step, asked, streams
        self.vector = Emitter(builder, ir.VectorType(scalar.llvm, lanes))
        self.single = Emitter(builder, scalar.llvm)

    def write(
        self, target: Any, sources: Sequence[Any], constants: Sequence[Any], count: Any, early: Any = None
    ) -> None:
        builder = self.builder
        pointers = [builder.inttoptr(address, self.scalar.llvm.as_pointer()) for address in (target, *sources)]
        splats = [self.vector.splat(value) for value in constants]
        first = ir.Constant(INT64, 0)
        done = cgutils.alloca_once_value(builder, first)
        if early is not None and self.vector.bytes == LINE:
            ahead = builder.sdiv(early, ir.Constant(INT64, self.scalar.bytes))
            with builder.if_else(can_stream(builder, self.scalar, target, early)) as (soon, plain):
                with soon:
                    start = before_line(builder, self.scalar, target, count) if self.streams else first
                    if self.streams:
                        self.masked_tail(pointers, splats, first, start)
                    builder.store(self.registers(pointers, splats, start, count, ahead), done)
                with plain:
                    builder.store(self.registers(pointers, splats, first, count), done)
        else:
            builder.store(self.registers(pointers, splats, first, count), done)
        rest = builder.load(done)
        if self.host.masked:
            self.masked_tail(pointers, splats, rest, count)
        else:
            self.scalar_tail(pointers, constants, rest, count)

    def registers(
        self, pointers: Sequence[Any], splats: Sequence[Any], first: Any, count: Any, ahead: Any = None
    ) -> Any:
        """Runs whole registers; gives what is done. Where `ahead` is given, sources are asked for so early."""
        builder, lanes = self.builder, ir.Constant(INT64, self.lanes)
        # a source of stride 2 is read one element past its last one by a whole register: leave that one to the tail
        spare = 1 if 2 in self.strides else 0
        whole = builder.sub(builder.sub(count, first), ir.Constant(INT64, spare))
        whole = builder.select(builder.icmp_signed("<", whole, ir.Constant(INT64, 0)), ir.Constant(INT64, 0), whole)
        end = builder.add(first, builder.mul(builder.sdiv(whole, lanes), lanes))
        with cgutils.for_range_slice(builder, first, end, lanes, inc=True) as (at, _):
            loaded = [
                self.load(pointer, stride, at) for pointer, stride in zip(pointers[1:], self.strides, strict=True)
            ]
            target, result = builder.gep(pointers[0], [at]), self.step(self.vector, [*loaded, *splats])
            if ahead is not None:
                for pointer in pointers[1 : 1 + self.asked]:
                    self.vector.prefetch(builder.gep(pointer, [builder.add(at, ahead)]))
            (self.vector.stream if ahead is not None and self.streams else self.vector.store)(result, target)
        return end

    def load(self, pointer: Any, stride: int, at: Any) -> Any:
        builder = self.builder
        if stride == 1:
            return self.vector.load(builder.gep(pointer, [at]))
        first = builder.gep(pointer, [builder.mul(at, ir.Constant(INT64, 2))])
        halves = (self.vector.load(first), self.vector.load(builder.gep(first, [ir.Constant(INT64, self.lanes)])))
        return self.even(*halves)

    def even(self, a: Any, b: Any) -> Any:
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [2 * k for k in range(self.lanes)])
        return self.builder.shuffle_vector(a, b, lanes)

    def masked_tail(self, pointers: Sequence[Any], splats: Sequence[Any], whole: Any, count: Any) -> None:
        builder = self.builder
        with cgutils.for_range_slice(builder, whole, count, ir.Constant(INT64, self.lanes), inc=True) as (at, _):
            left = builder.sub(count, at)
            mask = self.vector.mask(low_bits(builder, left, self.lanes))
            loaded = []
            for pointer, stride in zip(pointers[1:], self.strides, strict=True):
                if stride == 1:
                    loaded.append(self.vector.masked_load(builder.gep(pointer, [at]), mask))
                    continue
                first = builder.gep(pointer, [builder.mul(at, ir.Constant(INT64, 2))])
                needed = builder.sub(builder.mul(left, ir.Constant(INT64, 2)), ir.Constant(INT64, 1))
                second = builder.gep(first, [ir.Constant(INT64, self.lanes)])
                rest = builder.sub(needed, ir.Constant(INT64, self.lanes))
                halves = (
                    self.vector.masked_load(first, self.vector.mask(low_bits(builder, needed, self.lanes))),
                    self.vector.masked_load(second, self.vector.mask(low_bits(builder, rest, self.lanes))),
                )
                loaded.append(self.even(*halves))
            self.vector.masked_store(self.step(self.vector, [*loaded, *splats]), builder.gep(pointers[0], [at]), mask)

    def scalar_tail(self, pointers: Sequence[Any], constants: Sequence[Any], whole: Any, count: Any) -> None:
        builder = self.builder
        with cgutils.for_range_slice(builder, whole, count, ir.Constant(INT64, 1), inc=True) as (at, _):
            loaded = []
            for pointer, stride in zip(pointers[1:], self.strides, strict=True):
                place = at if stride == 1 else builder.mul(at, ir.Constant(INT64, stride))
                loaded.append(builder.load(builder.gep(pointer, [place])))
            builder.store(self.step(self.single, [*loaded, *constants]), builder.gep(pointers[0], [at]))
