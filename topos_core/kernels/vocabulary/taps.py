"""Sums over the taps of a window in vector registers: `target[p] = finish(sum over k of weight[k] * source[p + offset[k]])`.

One channel of one image has no reuse but what neighbouring rows share: rows of a window of known size are summed together, so
that a row of the image is read once for all of them. Any other window is summed tap by tap. What lies outside of the image
is left out by masks, where the machine has masked loads.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.emitter import INT64, Emitter
from topos_core.kernels.vocabulary.rows import with_arity
from topos_core.kernels.vocabulary.scalar import Scalar
from topos_core.kernels.vocabulary.transcendental import activation


def window_sums(host: Host, scalar: Scalar, vectors: int, name: str, masked: bool) -> Any:
    """Makes `sums(target, source, offsets, weights, taps, masks, scale, shift, low, high)` of some registers.

    Args:
        vectors: Registers that one call fills.
        name: The activation that follows scale, shift and limits, or `none`.
        masked: Whether `masks` holds i64[vectors, taps]; else it is not looked at.
    """
    lanes = host.lanes(scalar.name)

    def sums(context: Any, *_: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            _Sums(builder, scalar, lanes, vectors, name, masked).write(given)
            return context.get_dummy_value()

        return types.void(*(types.int64,) * 6, *(scalar.numba,) * 4), generate

    words = ("target", "source", "offsets", "weights", "taps", "masks", "scale", "shift", "low", "high")
    return with_arity(sums, ("context", *words))


def window_rows(host: Host, scalar: Scalar, rows: int, size: tuple[int, int], name: str) -> Any:
    """Makes `sums(target, source, pitch, weights, masks, row, height, scale, shift, low, high)`: a register of several rows.

    Needs a machine with masked loads. `target` and `source` have one pitch; source is the first tap of the first row, which
    is the image's `row`, and rows outside of `height` are 0.

    Args:
        rows: Of the result.
        size: Of the window.
        name: The activation that follows scale, shift and limits, or `none`.
    """
    lanes = host.lanes(scalar.name)

    def sums(context: Any, *_: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            _Rows(builder, scalar, lanes, rows, size, name).write(given)
            return context.get_dummy_value()

        return types.void(*(types.int64,) * 7, *(scalar.numba,) * 4), generate

    words = ("target", "source", "pitch", "weights", "masks", "row", "height", "scale", "shift", "low", "high")
    return with_arity(sums, ("context", *words))


class _Rows:
    """Writes one such sum; `masks` holds i64[columns of the window] of what may be read, then what is stored."""

    def __init__(self, builder: Any, scalar: Scalar, lanes: int, rows: int, size: tuple[int, int], name: str) -> None:
        self.builder, self.scalar, self.rows, self.size, self.name = builder, scalar, rows, size, name
        self.emitter = Emitter(builder, ir.VectorType(scalar.llvm, lanes))

    def write(self, given: Any) -> None:
        builder, emitter = self.builder, self.emitter
        target, source, pitch, weights, masks, row, height, scale, shift, low, high = given
        down, across = self.size
        target, source, weights = (
            builder.inttoptr(address, self.scalar.llvm.as_pointer()) for address in (target, source, weights)
        )
        masks = builder.inttoptr(masks, INT64.as_pointer())
        bits = [builder.load(builder.gep(masks, [self.number(j)])) for j in range(across + 1)]
        factors = [emitter.splat(builder.load(builder.gep(weights, [self.number(k)]))) for k in range(down * across)]
        totals: list[Any] = [None] * self.rows
        for i in range(self.rows + down - 1):
            at = builder.add(row, self.number(i))
            inside = builder.icmp_unsigned("<", at, height)  # a row above the image is a large number
            line = builder.gep(source, [builder.mul(pitch, self.number(i))])
            for j in range(across):
                mask = emitter.mask(builder.select(inside, bits[j], self.number(0)))
                value = emitter.masked_load(builder.gep(line, [self.number(j)]), mask)
                for r in range(max(0, i - down + 1), min(self.rows, i + 1)):
                    factor = factors[(i - r) * across + j]
                    total = totals[r]
                    totals[r] = emitter.mul(factor, value) if total is None else emitter.fma(factor, value, total)
        limits = [emitter.splat(value) for value in (scale, shift, low, high)]
        stored = emitter.mask(bits[across])
        for r, total in enumerate(totals):
            place = builder.gep(target, [builder.mul(pitch, self.number(r))])
            emitter.masked_store(finished(emitter, self.name, total, *limits), place, stored)

    def number(self, value: int) -> Any:
        return ir.Constant(INT64, value)


def finished(emitter: Emitter, name: str, total: Any, scale: Any, shift: Any, low: Any, high: Any) -> Any:
    """Emits scale, shift, limits and the activation `name`."""
    total = emitter.at_most(emitter.at_least(emitter.fma(total, scale, shift), low), high)
    return total if name == "none" else activation(emitter, name, total)


class _Sums:
    """Writes one such sum."""

    def __init__(self, builder: Any, scalar: Scalar, lanes: int, vectors: int, name: str, masked: bool) -> None:
        self.builder, self.scalar, self.lanes, self.vectors = builder, scalar, lanes, vectors
        self.name, self.masked = name, masked
        self.emitter = Emitter(builder, ir.VectorType(scalar.llvm, lanes))

    def write(self, given: Any) -> None:
        builder, emitter = self.builder, self.emitter
        target, source, offsets, weights, taps, masks, scale, shift, low, high = given
        target, source, weights = (
            builder.inttoptr(address, self.scalar.llvm.as_pointer()) for address in (target, source, weights)
        )
        offsets, masks = (builder.inttoptr(address, INT64.as_pointer()) for address in (offsets, masks))
        slots = [cgutils.alloca_once(builder, emitter.type) for _ in range(self.vectors)]  # they become registers
        for slot in slots:
            builder.store(emitter.constant(0.0), slot)
        with cgutils.for_range_slice(builder, self.number(0), taps, self.number(1), inc=True) as (tap, _):
            lane = builder.gep(source, [builder.load(builder.gep(offsets, [tap]))])
            weight = emitter.splat(builder.load(builder.gep(weights, [tap])))
            for v, slot in enumerate(slots):
                place = builder.gep(lane, [self.number(v * self.lanes)])
                value = self.load(place, builder.gep(masks, [builder.add(tap, builder.mul(taps, self.number(v)))]))
                builder.store(emitter.fma(weight, value, builder.load(slot)), slot)
        limits = [emitter.splat(value) for value in (scale, shift, low, high)]
        for v, slot in enumerate(slots):
            total = finished(emitter, self.name, builder.load(slot), *limits)
            emitter.store(total, builder.gep(target, [self.number(v * self.lanes)]))

    def load(self, place: Any, mask: Any) -> Any:
        if not self.masked:
            return self.emitter.load(place)
        return self.emitter.masked_load(place, self.emitter.mask(self.builder.load(mask)))

    def number(self, value: int) -> Any:
        return ir.Constant(INT64, value)
