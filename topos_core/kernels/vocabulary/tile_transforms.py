"""Winograd's transforms of F(side x side, 3x3): image tiles to products' operands, and sums to results; sides of 4 and 2.

A tile of side 4 has 6x6 elements, as many products and 4x4 results; one of side 2 has 4x4 and 2x2. Each lane is a tile:
neighbours along an image row, `side` columns apart, so rows are taken apart by as many on the way in and put together on the
way out. Points 0, 1, -1, infinity, and 2, -2 for side 4: A. Lavin, S. Gray, Fast Algorithms for Convolutional Neural
Networks, 2016.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import OVERLAP
from topos_core.kernels.vocabulary.emitter import INT64, Emitter
from topos_core.kernels.vocabulary.rows import low_bits, with_arity
from topos_core.kernels.vocabulary.scalar import Scalar


def forward(host: Host, scalar: Scalar, side: int, parts: int = 1) -> Any:
    """Makes `forward(source..., row..., target..., pitch, height, zeros, masks, apart)`: a register of tiles of an image.

    Operand k of every tile goes to `target` + k * `apart` bytes. `source` is the tiles' first row, which is the image's `row`; rows
    outside of `height` are read at `zeros` instead. Rows stand `pitch` elements apart. `masks` is the address of
    i64[side / parts + 1]: which columns exist, of as many registers of columns, where the machine has masked loads. With two
    parts, each gives half a register of tiles; the second target stands at most half a register behind the first.
    """
    numbered = [f"{name}{part}" for name in ("source", "row", "target") for part in range(parts)]
    names = [*numbered, "pitch", "height", "zeros", "masks", "apart"]

    def transform(context: Any, *_: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            _Transform(builder, host, scalar, side).forward(dict(zip(names, arguments, strict=True)), parts)
            return context.get_dummy_value()

        return types.void(*(types.int64,) * len(names)), generate

    return with_arity(transform, ["context", *names])


def blank(host: Host, scalar: Scalar, side: int) -> Any:
    """Makes `blank(target, apart)`: zeros as a register of every operand, the k-th at `target` + k * `apart` bytes."""

    def transform(context: Any, target: Any, apart: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            target, apart = arguments
            writer = _Transform(builder, host, scalar, side)
            for number in range(writer.tile * writer.tile):
                writer.store_at(writer.emitter.constant(0.0), target, writer.times(apart, number))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    return intrinsic(transform)


def backward(host: Host, scalar: Scalar, side: int) -> Any:
    """Makes `backward(source, apart, target, pitch, tiles, checks)`: results of a register of tiles, rows `pitch` apart.

    Sum k of every tile stands at `source` + k * `apart` bytes. `checks` is a register's memory: lanes of the `tiles` tiles
    that exist turn NaN there where a result is not finite.
    """

    def transform(context: Any, source: Any, apart: Any, target: Any, pitch: Any, tiles: Any, checks: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            source, apart, target, pitch, tiles, checks = arguments
            writer = _Transform(builder, host, scalar, side)
            rows = writer.results((source,), apart, tiles, checks)
            for number, row in enumerate(rows):
                writer.store(row, writer.element(target, writer.times(pitch, number)))
            return context.get_dummy_value()

        return types.void(*(types.int64,) * 6), generate

    return intrinsic(transform)


def finishing(host: Host, scalar: Scalar, side: int, parts: int = 1) -> Any:
    """Makes `finishing(source..., out..., rows..., residual..., apart, pitch, tiles, checks, columns, factor, ...)`.

    Like `backward`, and scaled by `factor`, shifted by `summand`, with a residual added (laid out as `out`; address 0 for
    none), limited to `low` and `high`, and stored to the `rows` rows and `columns` columns that exist. With two parts, each
    gives half a register of tiles. Needs a machine with masked stores.
    """
    numbered = [f"{name}{part}" for name in ("source", "out", "rows", "residual") for part in range(parts)]
    words = [*numbered, "apart", "pitch", "tiles", "checks", "columns"]
    names = [*words, "factor", "summand", "low", "high"]

    def transform(context: Any, *_: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            given = dict(zip(names, arguments, strict=True))
            writer = _Transform(builder, host, scalar, side)
            sources = [given[f"source{part}"] for part in range(parts)]
            lines = writer.results(sources, given["apart"], given["tiles"], given["checks"])
            writer.finish(lines, given, parts)
            return context.get_dummy_value()

        return types.void(*(types.int64,) * len(words), *(scalar.numba,) * 4), generate

    return with_arity(transform, ["context", *names])


class _Transform:
    """Writes one transform of a register of tiles."""

    def __init__(self, builder: Any, host: Host, scalar: Scalar, side: int) -> None:
        self.side, self.tile = side, side + OVERLAP
        self.builder, self.scalar, self.lanes = builder, scalar, host.lanes(scalar.name)
        self.masked = host.masked
        self.emitter = Emitter(builder, ir.VectorType(scalar.llvm, self.lanes))
        self.half = Emitter(builder, ir.VectorType(scalar.llvm, self.lanes // 2))

    def forward(self, given: Mapping[str, Any], parts: int) -> None:
        pitch, apart = given["pitch"], given["apart"]
        sources, rows, targets = ([given[f"{name}{k}"] for k in range(parts)] for name in ("source", "row", "target"))
        masks = self._masks(given["masks"], self.side // parts + 1)
        lines = []
        for k in range(self.tile):
            places = []
            for source, row in zip(sources, rows, strict=True):
                inside = self.builder.icmp_unsigned("<", self.builder.add(row, self._number(k)), given["height"])
                place = self.builder.add(
                    source, self.builder.mul(self.times(pitch, k), self._number(self.scalar.bytes))
                )
                places.append(self._pointer(self.builder.select(inside, place, given["zeros"])))
            lines.append(self._taken_apart(places, masks))
        across = [self._operands(line) for line in lines]
        for column in range(self.tile):
            for row, value in enumerate(self._operands([each[column] for each in across])):
                away = self.times(apart, self.tile * row + column)
                self.store_at(value, targets[0], away)
                if parts == 2:
                    upper = self._shuffle(value, value, range(self.lanes // 2, self.lanes))
                    self.half.store(upper, self._pointer(self.builder.add(targets[1], away)))

    def _masks(self, address: Any, count: int) -> list[Any]:
        """Loads flags of columns; None each on a machine without masked loads, whose images lie in planes."""
        if not self.masked:
            return [None] * count
        words = self.builder.inttoptr(address, INT64.as_pointer())
        loads = [self.builder.load(self.builder.gep(words, [self._number(k)])) for k in range(count)]
        return [self.emitter.mask(bits) for bits in loads]

    def results(self, sources: Sequence[Any], apart: Any, tiles: Any, checks: Any) -> list[list[Any]]:
        """Gives the rows of results, each as registers of columns in order."""
        sums = [
            [self._sum(sources, self.times(apart, self.tile * row + column)) for row in range(self.tile)]
            for column in range(self.tile)
        ]
        down = [self._results(column) for column in sums]
        rows = [self._results([column[row] for column in down]) for row in range(self.side)]
        self._check([value for row in rows for value in row], tiles, checks, len(sources))
        return [self._put_together(row) for row in rows]

    def _sum(self, sources: Sequence[Any], away: Any) -> Any:
        places = [self._pointer(self.builder.add(source, away)) for source in sources]
        if len(places) == 1:
            return self.emitter.load(places[0])
        halves = [self.half.load(place) for place in places]
        return self._shuffle(halves[0], halves[1], range(self.lanes))

    def store_at(self, value: Any, target: Any, away: Any) -> None:
        self.emitter.store(value, self._pointer(self.builder.add(target, away)))

    def store(self, row: Sequence[Any], place: Any) -> None:
        for k, value in enumerate(row):
            self.emitter.store(value, self.builder.gep(place, [self._number(k * self.lanes)]))

    def finish(self, lines: Sequence[Sequence[Any]], given: Mapping[str, Any], parts: int) -> None:
        builder, emitter = self.builder, self.emitter
        factor, summand, low, high = (emitter.splat(given[name]) for name in ("factor", "summand", "low", "high"))
        registers = self.side // parts
        masks = []
        for k in range(registers):
            left = builder.sub(given["columns"], self._number(k * self.lanes))
            masks.append(emitter.mask(low_bits(builder, left, self.lanes)))
        for part in range(parts):
            out, residual, rows = (given[f"{name}{part}"] for name in ("out", "residual", "rows"))
            added = builder.icmp_signed("!=", residual, self._number(0))
            for number, line in enumerate(lines):
                with builder.if_then(builder.icmp_signed("<", self._number(number), rows)):
                    start = self.times(given["pitch"], number)
                    place, other = self.element(out, start), self.element(residual, start)
                    for k, value in enumerate(line[part * registers : (part + 1) * registers]):
                        at = [self._number(k * self.lanes)]
                        total = emitter.fma(value, factor, summand)
                        before = builder.block
                        with builder.if_then(added):
                            more = emitter.add(total, emitter.masked_load(builder.gep(other, at), masks[k]))
                            inside = builder.block
                        summed = builder.phi(emitter.type)
                        summed.add_incoming(total, before)
                        summed.add_incoming(more, inside)
                        limited = emitter.at_most(emitter.at_least(summed, low), high)
                        emitter.masked_store(limited, builder.gep(place, at), masks[k])

    def _check(self, values: Sequence[Any], tiles: Any, checks: Any, parts: int) -> None:
        builder, emitter = self.builder, self.emitter
        zero = emitter.constant(0.0)
        total = zero
        for value in values:
            total = emitter.fma(value, zero, total)
        word = ir.VectorType(ir.IntType(32), self.lanes)
        numbers = ir.Constant(word, [lane % (self.lanes // parts) for lane in range(self.lanes)])
        undefined = ir.Constant(word, ir.Undefined)
        count = builder.insert_element(undefined, builder.trunc(tiles, ir.IntType(32)), ir.Constant(ir.IntType(32), 0))
        count = builder.shuffle_vector(count, undefined, ir.Constant(word, [0] * self.lanes))
        total = builder.select(builder.icmp_signed("<", numbers, count), total, zero)
        place = self._pointer(checks)
        emitter.store(emitter.add(emitter.load(place), total), place)

    def _operands(self, d: Sequence[Any]) -> list[Any]:
        """Transforms a tile's elements along one axis."""
        e = self.emitter
        if self.side == 2:
            return [e.sub(d[0], d[2]), e.add(d[1], d[2]), e.sub(d[2], d[1]), e.sub(d[1], d[3])]
        times = self._scaled
        a, b = times(-4.0, d[2], d[4]), times(-4.0, d[1], d[3])
        c, f = e.sub(d[4], d[2]), e.sub(d[3], d[1])
        return [
            times(4.0, d[0], times(-5.0, d[2], d[4])), e.add(a, b), e.sub(a, b), times(2.0, f, c), times(-2.0, f, c),
            times(4.0, d[1], times(-5.0, d[3], d[5])),
        ]  # fmt: skip

    def _results(self, m: Sequence[Any]) -> list[Any]:
        """Transforms a tile's sums along one axis."""
        e = self.emitter
        if self.side == 2:
            return [e.add(e.add(m[0], m[1]), m[2]), e.sub(e.sub(m[1], m[2]), m[3])]
        times = self._scaled
        p, q, r, s = e.add(m[1], m[2]), e.sub(m[1], m[2]), e.add(m[3], m[4]), e.sub(m[3], m[4])
        return [e.add(e.add(m[0], p), r), times(2.0, s, q), times(4.0, r, p), e.add(times(8.0, s, q), m[5])]

    def _scaled(self, factor: float, x: Any, y: Any) -> Any:
        return self.emitter.fma(self.emitter.constant(factor), x, y)

    def _taken_apart(self, rows: Sequence[Any], masks: Sequence[Any]) -> list[Any]:
        """Loads columns side * lane + j of a row for j of a tile; of two rows, each fills half of the lanes."""
        each = self.side // len(rows)
        read = [[self._columns(row, k, masks[k]) for k in range(each + 1)] for row in rows]
        loads = [value for line in read for value in line[:each]]
        even, odd = (
            [self._every_second(loads[k], loads[k + 1], first) for k in range(0, self.side, 2)] for first in range(2)
        )
        found = [even[0], odd[0]]
        if self.side == 4:
            found = [self._every_second(half[0], half[1], first) for first in range(2) for half in (even, odd)]
        return found + [self._next(found[j], [line[each] for line in read], j) for j in range(OVERLAP)]

    def _columns(self, row: Any, k: int, mask: Any) -> Any:
        place = self.builder.gep(row, [self._number(k * self.lanes)])
        return self.emitter.load(place) if mask is None else self.emitter.masked_load(place, mask)

    def _next(self, values: Any, behind: Sequence[Any], column: int) -> Any:
        """Moves lanes on by one tile; the last lane of each row is that column of what the row has behind it."""
        places = list(range(1, self.lanes + 1))
        places[-1] = self.lanes + column
        last = behind[0]
        if len(behind) == 2:
            last = self._shuffle(behind[0], behind[1], [column, self.lanes + column, *(column,) * (self.lanes - 2)])
            places[self.lanes // 2 - 1], places[-1] = self.lanes, self.lanes + 1
        return self._shuffle(values, last, places)

    def _put_together(self, values: Sequence[Any]) -> list[Any]:
        """Orders as many registers as a tile has columns, one column of every tile each, as columns."""
        if self.side == 2:
            return self._alternating(values[0], values[1])
        even, odd = self._alternating(values[0], values[2]), self._alternating(values[1], values[3])
        return [each for low, high in zip(even, odd, strict=True) for each in self._alternating(low, high)]

    def _every_second(self, a: Any, b: Any, first: int) -> Any:
        return self._shuffle(a, b, range(first, 2 * self.lanes, 2))

    def _alternating(self, a: Any, b: Any) -> list[Any]:
        pairs = [place for k in range(self.lanes) for place in (k, self.lanes + k)]
        return [self._shuffle(a, b, pairs[: self.lanes]), self._shuffle(a, b, pairs[self.lanes :])]

    def _shuffle(self, a: Any, b: Any, places: Sequence[int]) -> Any:
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), list(places))
        return self.builder.shuffle_vector(a, b, lanes)

    def element(self, address: Any, index: Any) -> Any:
        return self.builder.gep(self._pointer(address), [index])

    def _pointer(self, address: Any) -> Any:
        return self.builder.inttoptr(address, self.scalar.llvm.as_pointer())

    def times(self, value: Any, factor: int) -> Any:
        return self.builder.mul(value, self._number(factor))

    def _number(self, value: int) -> Any:
        return ir.Constant(INT64, value)
