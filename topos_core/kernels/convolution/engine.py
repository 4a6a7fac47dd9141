"""Runs a convolution: planes of the image, then register tiles with the epilogue inside.

Whatever depends on the number of threads and on the image's strides alone is worked out once and kept as a `Cut`; a run
copies two argument blocks and fills in addresses.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from topos_core.kernels.convolution.geometry import Problem, image_offsets, lies_densely, planes, reads_in_place
from topos_core.kernels.convolution.plane_copy import copy_block, residues_of
from topos_core.kernels.convolution.tables import tile_table
from topos_core.kernels.host import host
from topos_core.kernels.known import Known
from topos_core.kernels.launch import Scratch, address_of, aligned, launch, spaced, template
from topos_core.kernels.library import kernel
from topos_core.kernels.margins import Margins
from topos_core.kernels.tiles import Tiles, tiles
from topos_core.kernels.vocabulary.blocks import ACROSS, CONTRACTION, LANES, LINE, PLANES, RUNS, TILE
from topos_core.tape.type import numpy_dtype

CACHE_BYTES: Final = 256 << 10
"""Of the right operand per item: a part of every core's second-level cache."""
COPIED_ROWS: Final = 24
"""Rows of an item from which on its panel of the right operand is copied first, where a copy is read faster."""
KEPT_ROWS: Final = 48
"""Rows from which on the first tile of a panel keeps what it reads, where far rows come late: 32 take 3 % more, 64 up to 2 % less."""
PAGE_BYTES: Final = 4096
FAR_BYTES: Final = 1 << 20
"""Of a group's left operand, an image or a result: from here on it lies behind the second-level cache, and is asked for ahead."""
ITEMS_PER_THREAD: Final = 4
"""How finely work is cut, so that a late worker costs little."""
THREAD_FLOPS: Final = 400_000
"""Work below which another thread costs more than it does."""
UNBOUNDED: Final = 1 << 62
NO_LIMITS: Final = (-np.inf, np.inf)

_C: Final = {name: place for place, name in enumerate(CONTRACTION)}
_P: Final = {name: place for place, name in enumerate(PLANES)}
_AXES: Final = ("batch", "group", "row", "depth", "height", "width")


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What happens to a sum after scale and shift: residual, limits, activation; `residual_last` puts those two first."""

    limits: tuple[float, float] = NO_LIMITS
    activation: str = "none"
    residual: bool = False
    residual_last: bool = False


class Operands(NamedTuple):
    """Addresses: `left` [groups * rows, steps], `scale` and `shift` [groups * rows], all dense; residual 0 for nothing.

    The last ones are those of a depthwise convolution in front: `taps` [channels, taps], its scale and its shift, and, where it
    takes steps, `steps` [channels, times, 3] and how many.
    """

    x: int
    left: int
    scale: int
    shift: int
    residual: int
    out: int
    taps: int = 0
    taps_scale: int = 0
    taps_shift: int = 0
    steps: int = 0
    times: int = 0


def asks_to_write(result_bytes: int) -> bool:
    """Tells whether tiles ask for the lines that they will write: a small result is in the second-level cache already."""
    return host().waits_for_lines and result_bytes >= FAR_BYTES


class Cut(NamedTuple):
    """One way to do the work.

    Args:
        threads: Workers that may take part.
        block: The contraction's words, addresses of operands and scratch missing.
        offsets: What each tap reads; the block points at it.
        copy: The words of the copy into planes, or None where the image is read in place.
        slot_bytes: Scratch per worker.
        scratch_bytes: Scratch in all.
        produced: The words of a producer of tiles, addresses of operands missing.
        keep: What those point at.
    """

    threads: int
    block: array[int]
    offsets: np.ndarray
    copy: array[int] | None
    slot_bytes: int
    scratch_bytes: int
    produced: array[int] | None = None
    keep: tuple[np.ndarray, ...] = ()


class Engine:
    """A convolution of one shape and dtype (f32 or f64), ready to run; safe to run from several threads.

    `source` is the problem whose image is read, where that is another one.
    """

    def __init__(self, convolution: Problem, dtype: str, epilogue: Epilogue, source: Problem | None = None) -> None:
        self.problem = convolution
        self.source = source or convolution
        self.name, self.dtype = dtype, numpy_dtype(dtype)
        self.lanes = host().lanes(dtype)
        self.tiles: Tiles = tiles(host())
        self.kernel = kernel("contraction", dtype)
        self.copier = kernel("planes", dtype)
        self.planes = planes(self.source)
        self.keeps = host().waits_for_rows and convolution.taps == 1 and convolution.rows >= KEPT_ROWS
        self.table = tile_table(dtype, epilogue.activation, self.keeps)
        self.spreading = kernel("activation", dtype, epilogue.activation) if epilogue.activation != "none" else None
        self.residues = residues_of(self.planes)
        self.limits = np.array(epilogue.limits, self.dtype)
        self.copied_pitch = self._unit() * self.lanes
        self.copied_offsets = np.arange(convolution.steps, dtype=np.int64) * self.copied_pitch
        self.epilogue = epilogue
        self.cuts: Known[tuple[int, tuple[int, ...], tuple[int, ...]], Cut] = Known()

    def run(
        self, image: tuple[int, ...], out: tuple[int, ...], operands: Operands, threads: int, planes: int = 0
    ) -> None:
        """Runs it.

        Args:
            image: Strides in elements of batch, channel, depth, height, width.
            out: Strides in elements of batch, group, row, depth, height, width.
            operands: Addresses.
            threads: How many workers may take part.
            planes: Address of the image's planes where it lies in such (`reads_planes`); 0 where it does not.
        """
        cut = self.cuts.get((threads, image, out)) or self._remember(threads, image, out)
        block = array("q", cut.block)
        scratch = Scratch(cut.slot_bytes * cut.threads if planes else cut.scratch_bytes)
        block[_C["right"]] = planes or operands.x
        if cut.copy is not None and not planes:
            copy = array("q", cut.copy)
            copy[_P["x"]] = operands.x
            block[_C["right"]] = copy[_P["planes"]] = scratch.address + cut.slot_bytes * cut.threads
            launch(self.copier, copy, cut.threads)
        block[_C["left"]] = operands.left
        block[_C["scale"]] = operands.scale
        block[_C["shift"]] = operands.shift
        block[_C["residual"]] = operands.residual
        block[_C["out"]] = operands.out
        block[_C["scratch"]] = scratch.address
        produced = self._producing(cut, operands)
        if produced is not None:
            block[_C["produced"]] = produced.buffer_info()[0]
        launch(self.kernel, block, cut.threads)

    def reads_planes(self, margins: Margins) -> bool:
        """Tells whether planes that another kernel wrote into are those that an image is copied to."""
        laid, slack = self.planes, self.tiles.widest * self.lanes
        return (laid.pitch, laid.channel) == (margins.pitch, margins.plane) and slack <= margins.behind

    def _producing(self, cut: Cut, operands: Operands) -> array[int] | None:
        """Gives the words of the kernel that makes tiles; a convolution reads them."""
        return None

    def _remember(self, threads: int, image: tuple[int, ...], out: tuple[int, ...]) -> Cut:
        workers = max(1, min(threads, self.problem.flops // THREAD_FLOPS))
        return self.cuts.keep((threads, image, out), self._cut(workers, image, out))

    def _cut(self, threads: int, strides: tuple[int, ...], out: tuple[int, ...]) -> Cut:
        in_place = reads_in_place(self.problem) and lies_densely(self.problem, strides)
        vectors = self._chunk_vectors(threads)
        slot = spaced(self._slot_bytes(vectors, in_place), threads)
        offsets = image_offsets(self.problem, *strides[1:]) if in_place else self.planes.offsets
        values = self._operand_words(offsets, out)
        values.update(self._in_place_words(strides, offsets) if in_place else self._plane_words())
        values.update(self._items(values, vectors, threads))
        values["slot_bytes"] = slot
        copy = None if in_place else copy_block(self.source, self.planes, self.residues, strides)
        scratch = slot * threads + (0 if in_place else self._plane_bytes())
        return Cut(threads, template(CONTRACTION, values), offsets, copy, slot, scratch)

    def _operand_words(self, offsets: np.ndarray, out: tuple[int, ...]) -> dict[str, int]:
        return {
            "groups": self.problem.groups, "rows": self.problem.rows, "steps": self.problem.steps,
            "tiles": address_of(self.table), "offsets": address_of(offsets),
            "copied_offsets": address_of(self.copied_offsets), "copied_pitch": self.copied_pitch,
            "limits": address_of(self.limits),
            "left_ahead": int(self.problem.rows * self.problem.steps * self.dtype.itemsize >= FAR_BYTES),
            "residual_last": int(self.epilogue.residual_last), "residual_row": out[2], "runs_at": aligned(8 * len(TILE)),
            **{f"out_{name}": stride for name, stride in zip(_AXES, out, strict=True)},
        }  # fmt: skip

    def _plane_words(self) -> dict[str, int]:
        channels, laid = self.source.channels, self.planes
        return {
            "right_batch": self.source.groups * channels * laid.channel, "right_group": channels * laid.channel,
            "right_depth": laid.slice, "right_size": UNBOUNDED, "pitch": laid.pitch,
        }  # fmt: skip

    def _in_place_words(self, strides: tuple[int, ...], offsets: np.ndarray) -> dict[str, int]:
        batch, channel, depth, height, _ = strides
        extents = (self.problem.batch, self.problem.groups * self.problem.channels, *self.problem.image)
        last = sum((extent - 1) * stride for extent, stride in zip(extents, strides, strict=True))
        far = channel * self.dtype.itemsize >= PAGE_BYTES and self.problem.rows >= COPIED_ROWS
        copies, keeps = far and not host().reads_far_rows, far and self.keeps
        return {
            "right_batch": batch, "right_group": channel * self.problem.channels, "right_depth": depth,
            "right_size": 0 if copies else last + 1, "reach": int(offsets[-1]), "keeps": int(keeps),
            "next_lines": 1 + self.copied_pitch * self.dtype.itemsize // LINE if keeps else 0, "next_step": channel * self.dtype.itemsize,
            "pitch": height if self.problem.result[1] > 1 else self.problem.result[2],
        }  # fmt: skip

    def _items(self, words: dict[str, int], vectors: int, threads: int) -> dict[str, int]:
        """Cuts the work into items; a dense result is one long row."""
        depth, height, width = self.problem.result
        pitch, step = words["pitch"], words["out_width"]
        if pitch == width and words["out_height"] == step * width:
            width, height = width * height, 1
            if depth > 1 and words["right_depth"] == width and words["out_depth"] == step * width:
                width, depth = width * depth, 1
        if height == 1:
            pitch = width
        positions = (height - 1) * pitch + width
        chunks = -(-positions // (vectors * self.lanes))
        rows, part = self.problem.rows, self.problem.rows
        items = self.problem.batch * self.problem.groups * depth * chunks
        while threads > 1 and items * -(-rows // part) < ITEMS_PER_THREAD * threads and part > self.tiles.tall:
            part = -(-part // (2 * self.tiles.tall)) * self.tiles.tall
        splits = -(-rows // part)
        sums_at = aligned(words["runs_at"] + self._lane_bytes() * (vectors + self.tiles.widest))
        mode = self._mode(words, pitch, positions)
        return {
            "items": items * splits, "splits": splits, "split_rows": part, "chunks": chunks, "depth": depth,
            "positions": positions, "chunk_positions": vectors * self.lanes, "right_chunk": vectors * self.lanes, "pitch": pitch, "width": width,
            "mode": mode, "out_ahead": int(mode == RUNS and asks_to_write(self._result_bytes())), "fused": int(not self._spreads(mode)),
            "activation": self.spreading.address if self.spreading else 0, "sums_at": sums_at,
            "copied_at": sums_at + self._sums_bytes(),
        }  # fmt: skip

    def _chunk_vectors(self, threads: int) -> int:
        """Chooses how many registers of positions an item holds: cached for all rows, and enough items for everybody."""
        height, width = self.problem.result[1:]
        whole = -(-((height - 1) * self.planes.pitch + width) // self.lanes)
        unit = self._unit()
        phases = self.planes.channel // self.planes.phase
        cached = CACHE_BYTES // (self.problem.channels * phases * self.lanes * self.dtype.itemsize)
        vectors = max(unit, min(whole, max(cached, 2 * unit)))
        slices = self.problem.batch * self.problem.groups * self.problem.result[0]
        while threads > 1 and vectors > unit and slices * -(-whole // vectors) < ITEMS_PER_THREAD * threads:
            vectors = max(unit, vectors // 2)
        return -(-vectors // unit) * unit

    def _unit(self) -> int:
        """Counts the registers per row of the widest tiles that run."""
        if self.problem.rows > self.tiles.short:
            return self.tiles.tall_vectors
        return self.tiles.short_vectors if self.problem.rows > 1 else self.tiles.flat_vectors

    def _mode(self, words: dict[str, int], pitch: int, positions: int) -> int:
        """Chooses the epilogue."""
        if host().masked and words["out_width"] == 1 and pitch >= min(self.lanes, positions):
            return RUNS
        if words["out_row"] == 1 and self.problem.rows > 1 and self.lanes >= self.tiles.tall:
            return ACROSS
        return LANES

    def _spreads(self, mode: int) -> bool:
        """Tells whether the activation must wait for a residual that is added lane by lane."""
        waits = self.epilogue.residual and not self.epilogue.residual_last
        return self.spreading is not None and mode == ACROSS and waits

    def _lane_bytes(self) -> int:
        """Counts what one register's lanes need in the tables of places: two runs, or one word per lane."""
        return max(32, 8 * self.lanes)

    def _result_bytes(self) -> int:
        return (
            self.problem.batch * self.problem.groups * self.problem.rows * self.problem.positions * self.dtype.itemsize
        )

    def _sums_bytes(self) -> int:
        shapes = self.tiles
        registers = max(shapes.tall * shapes.tall_vectors, shapes.short * shapes.short_vectors, shapes.flat_vectors)
        return aligned(registers * self.lanes * self.dtype.itemsize)

    def _slot_bytes(self, vectors: int, in_place: bool) -> int:
        runs = aligned(8 * len(TILE)) + aligned(self._lane_bytes() * (vectors + self.tiles.widest))
        slack = self.tiles.widest * self.lanes  # narrow tiles read further than a panel is wide
        copied = (self.problem.steps * self.copied_pitch + slack) * self.dtype.itemsize if in_place else 0
        return aligned(runs + self._sums_bytes() + copied) + 64

    def _plane_bytes(self) -> int:
        channels = self.source.batch * self.source.groups * self.source.channels
        slack = self.tiles.widest * self.lanes  # the last tile reads whole registers
        return aligned((channels * self.planes.channel + slack) * self.dtype.itemsize)
