"""Runs a convolution: planes of the image, then register tiles with the epilogue inside."""

from __future__ import annotations

from array import array
from copy import copy
from dataclasses import dataclass
from typing import Final

import numpy as np

from topos_core.kernels.convolution.geometry import (
    Problem,
    image_offsets,
    planes,
    reads_in_place,
)
from topos_core.kernels.host import host
from topos_core.kernels.launch import Scratch, address_of, aligned, launch, template
from topos_core.kernels.layouts import Axis
from topos_core.kernels.library import Kernel, kernel
from topos_core.kernels.tiles import Tiles, tiles
from topos_core.kernels.vocabulary.blocks import CONTRACTION, FINISH, PLANES, TILE
from topos_core.tape.type import numpy_dtype

CACHE_BYTES: Final = 256 << 10  # of the right operand per chunk: a part of every core's second-level cache
UNBOUNDED: Final = 1 << 62
NO_LIMITS: Final = (-np.inf, np.inf)

_C: Final = {name: place for place, name in enumerate(CONTRACTION)}
_P: Final = {name: place for place, name in enumerate(PLANES)}


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What happens to a sum after scale, shift and residual: limits, activation; `residual_last` adds it behind them."""

    limits: tuple[float, float] = NO_LIMITS
    activation: Kernel | None = None
    residual_last: bool = False


class Engine:
    """A convolution of one shape and dtype (f32 or f64), ready to run; safe to run from several threads.

    `out` has axes (batch, group, row, depth, height, width), described by their strides in elements.
    """

    def __init__(self, convolution: Problem, dtype: str, out: tuple[Axis, ...], epilogue: Epilogue) -> None:
        self.problem = convolution
        self.dtype = numpy_dtype(dtype)
        self.lanes = host().lanes(dtype)
        self.tiles: Tiles = tiles(host())
        self.kernel = kernel("contraction", dtype)
        self.copier = kernel("planes", dtype)
        self.planes = planes(convolution)
        self.tables = _tile_table(dtype, self.tiles)
        self.residues = np.array([r for axis in self.planes.residues for r in axis], np.int64)
        self.limits = np.array(epilogue.limits, self.dtype)
        self.in_place = reads_in_place(convolution)
        self.activation = epilogue.activation
        self.residual_last = epilogue.residual_last
        self.copied_offsets = np.arange(convolution.steps, dtype=np.int64) * (self.tiles.widest * self.lanes)
        self.copy_block = self._copy_block()
        self.block = self._block(out)
        self.plane_bytes = self._plane_bytes()

    def with_out(self, out: tuple[Axis, ...]) -> Engine:
        """Gives the same engine with another layout of the result."""
        other = copy(self)
        other.block = other._block(out)
        return other

    def scratch_bytes(self, threads: int = 1) -> int:
        """Counts what one run needs beside its operands and result."""
        return self.plane_bytes + threads * self._slot_bytes(self._chunk_vectors(threads), False)

    def run(
        self,
        x: np.ndarray,
        left: np.ndarray,
        scale: np.ndarray,
        shift: np.ndarray,
        residual: int,
        out: int,
        threads: int,
    ) -> None:
        """Runs it.

        Args:
            x: [batch, groups * channels, depth, height, width], any strides.
            left: [groups * rows, steps], C-contiguous.
            scale, shift: [groups * rows].
            residual: Address of what is added, laid out as `out`; 0 for nothing.
            out: Address of the result's first element.
            threads: How many workers may take part.
        """
        in_place = self.in_place and self._can_read(x)
        vectors = self._chunk_vectors(threads)
        slot = self._slot_bytes(vectors, in_place)
        scratch = Scratch(slot * threads + (0 if in_place else self.plane_bytes))
        block = array("q", self.block)
        if in_place:
            offsets = self._read_image(block, x)
        else:
            planes_at = scratch.address + slot * threads
            offsets = self.planes.offsets
            self._fill_planes(x, planes_at, threads)
            block[_C["right"]] = planes_at
        self._cut(block, vectors, threads)
        for name, value in (
            ("left", address_of(left)), ("scale", address_of(scale)), ("shift", address_of(shift)), ("out", out),
            ("residual", residual), ("offsets", address_of(offsets)), ("scratch", scratch.address),
            ("slot_bytes", slot),
        ):  # fmt: skip
            block[_C[name]] = value
        launch(self.kernel, block, _C["counter"], threads)

    def _block(self, out: tuple[Axis, ...]) -> array[int]:
        convolution, laid = self.problem, self.planes
        channels = convolution.groups * convolution.channels
        axes = dict(zip(("batch", "group", "row", "depth", "height", "width"), out, strict=True))
        runs = aligned(8 * len(TILE))
        return template(CONTRACTION, {
            "groups": convolution.groups, "rows": convolution.rows, "steps": convolution.steps,
            "tiles": address_of(self.tables), "right_batch": channels * laid.channel,
            "right_group": convolution.channels * laid.channel, "right_depth": laid.slice, "right_size": UNBOUNDED,
            "copied_offsets": address_of(self.copied_offsets), "copied_pitch": self.tiles.widest * self.lanes,
            "limits": address_of(self.limits), "activation": self.activation.address if self.activation else 0,
            "residual_last": int(self.residual_last), "runs_at": runs, "pitch": laid.pitch,
            **{f"out_{name}": axis.stride for name, axis in axes.items()},
        })  # fmt: skip

    def _cut(self, block: array[int], vectors: int, threads: int) -> None:
        """Cuts the work into items; a dense result is one long row."""
        convolution = self.problem
        depth, height, width = convolution.result
        pitch = block[_C["pitch"]]
        step = block[_C["out_width"]]
        if pitch == width and block[_C["out_height"]] == step * width:
            width, height = width * height, 1
            if depth > 1 and block[_C["right_depth"]] == width and block[_C["out_depth"]] == step * width:
                width, depth = width * depth, 1
        if height == 1:
            pitch = width
        positions = (height - 1) * pitch + width
        chunk = vectors * self.lanes
        chunks = -(-positions // chunk)
        rows = convolution.rows
        splits = 1
        items = convolution.batch * convolution.groups * depth * chunks
        while items * splits < 4 * threads and threads > 1 and rows > splits * self.tiles.tall:
            splits *= 2
        part = -(-rows // splits)
        part += -part % self.tiles.tall if splits > 1 else 0
        splits = -(-rows // part)
        sums_at = aligned(block[_C["runs_at"]] + 32 * (vectors + self.tiles.widest))
        for name, value in (
            ("items", items * splits), ("splits", splits), ("split_rows", part), ("chunks", chunks), ("depth", depth),
            ("positions", positions), ("chunk_positions", chunk), ("pitch", pitch), ("width", width),
            ("sums_at", sums_at), ("copied_at", sums_at + self._sums_bytes()),
        ):  # fmt: skip
            block[_C[name]] = value

    def _chunk_vectors(self, threads: int) -> int:
        """Chooses how many registers of positions an item holds: cached for all rows, and enough items for everybody."""
        convolution = self.problem
        height, width = convolution.result[1:]
        positions = (height - 1) * self.planes.pitch + width
        whole = -(-positions // self.lanes)
        unit = self.tiles.tall_vectors if convolution.rows > self.tiles.short else self.tiles.widest
        unit = self.tiles.short_vectors if 1 < convolution.rows <= self.tiles.short else unit
        cached = CACHE_BYTES // (convolution.channels * len(self.residues) * self.lanes * self.dtype.itemsize + 1)
        vectors = max(unit, min(whole, max(cached, 2 * unit)))
        slices = convolution.batch * convolution.groups * convolution.result[0]
        while threads > 1 and vectors > unit and slices * -(-whole // vectors) < 4 * threads:
            vectors = max(unit, vectors // 2)
        return -(-vectors // unit) * unit

    def _sums_bytes(self) -> int:
        tallest = max(
            self.tiles.tall * self.tiles.tall_vectors, self.tiles.short * self.tiles.short_vectors,
            self.tiles.flat_vectors,
        )  # fmt: skip
        return aligned(tallest * self.lanes * self.dtype.itemsize)

    def _slot_bytes(self, vectors: int, in_place: bool) -> int:
        runs = aligned(8 * len(TILE)) + aligned(32 * (vectors + self.tiles.widest))
        copied = self.problem.steps * self.tiles.widest * self.lanes * self.dtype.itemsize if in_place else 0
        return aligned(runs + self._sums_bytes() + copied) + 64

    def _can_read(self, x: np.ndarray) -> bool:
        """Tells whether rows lie densely enough in memory to be read as flat positions."""
        size = self.dtype.itemsize
        height, width = x.strides[3] // size, x.strides[4] // size
        if self.problem.image[2] > 1 and width != 1:
            return False
        if any(stride < 0 or stride % size for stride in x.strides):
            return False
        return self.problem.result[1] == 1 or self.problem.result[2] <= height <= 2 * self.problem.result[2]

    def _read_image(self, block: array[int], x: np.ndarray) -> np.ndarray:
        batch, channel, depth, height, width = (stride // self.dtype.itemsize for stride in x.strides)
        result = self.problem.result
        offsets = image_offsets(self.problem, channel, depth, height, width)
        last = sum(
            (extent - 1) * stride // self.dtype.itemsize for extent, stride in zip(x.shape, x.strides, strict=True)
        )
        for name, value in (
            ("right", address_of(x)), ("right_batch", batch), ("right_group", channel * self.problem.channels),
            ("right_depth", depth), ("right_size", last + 1), ("reach", int(offsets[-1])),
            ("pitch", height if result[1] > 1 else result[2]),
        ):  # fmt: skip
            block[_C[name]] = value
        return offsets

    def _plane_bytes(self) -> int:
        channels = self.problem.batch * self.problem.groups * self.problem.channels
        slack = self.tiles.widest * self.lanes  # the last tile reads whole registers
        return aligned((channels * self.planes.channel + slack) * self.dtype.itemsize)

    def _copy_block(self) -> array[int]:
        convolution, laid = self.problem, self.planes
        names = ("depth", "height", "width")
        values = {
            "items": convolution.batch * convolution.groups * convolution.channels,
            "channels": convolution.groups * convolution.channels, "residues": address_of(self.residues),
            "pitch": laid.pitch, "slice": laid.slice, "phase": laid.phase, "tail": laid.tail,
        }  # fmt: skip
        for axis, name in enumerate(names):
            window = convolution.windows[axis]
            values[name] = convolution.image[axis]
            values[f"{name}_low"] = window.low
            values[f"{name}_stride"] = window.stride
            values[f"{name}_base"] = window.base_dilation
            values[f"{name}_phases"] = len(laid.residues[axis])
            values[f"plane_{name}"] = laid.extents[axis]
        return template(PLANES, values)

    def _fill_planes(self, x: np.ndarray, target: int, threads: int) -> None:
        block = array("q", self.copy_block)
        size = self.dtype.itemsize
        names = ("x_batch", "x_channel", "x_depth", "x_height", "x_width")
        for name, stride in zip(names, x.strides, strict=True):
            block[_P[name]] = stride // size
        block[_P["x"]] = address_of(x)
        block[_P["planes"]] = target
        launch(self.copier, block, _P["counter"], threads)


def _tile_table(dtype: str, shapes: Tiles) -> np.ndarray:
    """Collects the addresses of the tiles: 16 * kind + registers per row, then the two epilogues."""
    table = np.zeros(FINISH + 2, np.int64)
    kinds = (
        (shapes.tall, (1, 2, 3)), (shapes.short, (1, 3, shapes.short_vectors)), (1, (1, 4, shapes.flat_vectors)),
    )  # fmt: skip
    for kind, (rows, widths) in enumerate(kinds):
        for vectors in widths:
            table[16 * kind + vectors] = kernel("tile", dtype, f"{rows}x{vectors}").address
    if host().masked:
        table[FINISH] = kernel("tile", dtype, "finish").address
    table[FINISH + 1] = kernel("spread", dtype).address
    return table
