"""Runs out[m, n] = left[m, k] @ right[k, n], finished, in register tiles.

The right operand is read in place, or from panels as wide as a tile where it is known beforehand: a panel's rows follow
one another in memory, so that every step of a tile reads the next cache lines.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from topos_core.kernels.convolution.engine import (
    COPIED_ROWS,
    ITEMS_PER_THREAD,
    THREAD_FLOPS,
    UNBOUNDED,
    Epilogue,
    asks_to_write,
)
from topos_core.kernels.convolution.tables import tile_table
from topos_core.kernels.host import host
from topos_core.kernels.known import Known
from topos_core.kernels.launch import Scratch, address_of, aligned, carved, launch, spaced, template
from topos_core.kernels.library import kernel
from topos_core.kernels.tiles import tiles
from topos_core.kernels.vocabulary.blocks import CONTRACTION, LANES, RUNS, TILE
from topos_core.tape.type import numpy_dtype

LEFT_BYTES: Final = 512 << 10
"""Of the left operand that every panel reads again: more would leave the second-level cache, so it is taken in parts (512 rows
of 768, a second-level cache of 2 MB: 193 GF/s instead of 184), unless `Host.takes_left_whole`."""
_C: Final = {name: place for place, name in enumerate(CONTRACTION)}


@dataclass(frozen=True, slots=True)
class Right:
    """The right operand: [steps, columns] with dense rows, or panels [panels, steps, width] padded with zeros."""

    values: np.ndarray
    packed: bool


class _Cut(NamedTuple):
    """One way to do the work; `keep` is what the block points at."""

    threads: int
    block: array[int]
    scratch_bytes: int
    keep: tuple[np.ndarray, ...]


class Product:
    """A product of one shape and dtype (f32 or f64), ready to run; safe to run from several threads.

    With `batch`, so many products whose operands and results lie behind each other; nothing is packed then.
    """

    def __init__(self, rows: int, steps: int, columns: int, dtype: str, epilogue: Epilogue, batch: int = 1) -> None:
        self.rows, self.steps, self.columns, self.batch = rows, steps, columns, batch
        self.dtype = numpy_dtype(dtype)
        self.lanes = host().lanes(dtype)
        shapes = tiles(host())
        self.vectors = shapes.tall_vectors
        if rows <= shapes.short:
            self.vectors = shapes.short_vectors if rows > 1 else shapes.flat_vectors
        self.tiles = shapes
        self.kernel = kernel("contraction", dtype)
        self.table = tile_table(dtype, epilogue.activation)
        self.spreading = kernel("activation", dtype, epilogue.activation) if epilogue.activation != "none" else None
        self.ones, self.zeros = np.ones(rows * batch, self.dtype), np.zeros(rows * batch, self.dtype)
        self.limits = np.array(epilogue.limits, self.dtype)
        self.epilogue = epilogue
        self.cuts: Known[tuple[int, bool, int], _Cut] = Known()

    def pack(self, right: np.ndarray) -> Right:
        """Copies [steps, columns] into panels, which start on a cache line: a register across two takes two loads."""
        width = self.vectors * self.lanes
        panels = -(-self.columns // width)
        values = carved(self.dtype, [panels * self.steps * width])[0].reshape(panels, self.steps, width)
        values[...] = 0
        for panel in range(panels):
            part = right[:, panel * width : (panel + 1) * width]
            values[panel, :, : part.shape[1]] = part
        return Right(values, True)

    def run(self, left: np.ndarray, right: Right, bias: int, out: int, row: int, threads: int) -> None:
        """Runs it.

        Args:
            left: [rows, steps], C-contiguous.
            right: What it is multiplied with.
            bias: Address of one summand per column; 0 for none.
            out: Address of the result's first element; columns are dense.
            row: Elements between rows of the result.
            threads: How many workers may take part.
        """
        key = (threads, right.packed, row)
        cut = self.cuts.get(key)
        if cut is None:
            cut = self.cuts.keep(key, self._cut(threads, right.packed, row))
        block = array("q", cut.block)
        scratch = Scratch(cut.scratch_bytes)
        for name, value in (
            ("left", address_of(left)), ("right", address_of(right.values)), ("residual", bias), ("out", out),
            ("scratch", scratch.address),
        ):  # fmt: skip
            block[_C[name]] = value
        launch(self.kernel, block, cut.threads)

    def _cut(self, threads: int, packed: bool, row: int) -> _Cut:
        flops = 2 * self.batch * self.rows * self.steps * self.columns
        threads = max(1, min(threads, flops // THREAD_FLOPS))
        width = self.vectors * self.lanes
        chunks = -(-self.columns // width)
        part = self.rows
        while (
            threads > 1
            and self.batch * chunks * -(-self.rows // part) < ITEMS_PER_THREAD * threads
            and part > self.tiles.tall
        ):
            part = -(-part // (2 * self.tiles.tall)) * self.tiles.tall
        cached = max(1, LEFT_BYTES // (self.steps * self.dtype.itemsize * self.tiles.tall)) * self.tiles.tall
        by_part = packed and self.rows > cached and not host().takes_left_whole
        if by_part:  # equal parts
            part = min(part, -(-self.rows // (-(-self.rows // cached) * self.tiles.tall)) * self.tiles.tall)
        splits = -(-self.rows // part)
        offsets = np.arange(self.steps, dtype=np.int64) * (width if packed else self.columns)
        copied = np.arange(self.steps, dtype=np.int64) * width
        # many rows read a panel so often that an item copies it first, whatever lies behind it
        size = UNBOUNDED if packed else 0 if part >= COPIED_ROWS else self.batch * self.steps * self.columns
        runs_at = aligned(8 * len(TILE))
        sums_at = aligned(runs_at + max(32, 8 * self.lanes) * (self.vectors + self.tiles.widest))
        shapes = self.tiles
        registers = max(shapes.tall * shapes.tall_vectors, shapes.short * shapes.short_vectors, shapes.flat_vectors)
        copied_at = aligned(sums_at + registers * self.lanes * self.dtype.itemsize)
        slack = shapes.widest * self.lanes
        slot = spaced(copied_at + (0 if packed else (self.steps * width + slack) * self.dtype.itemsize), threads)
        block = template(CONTRACTION, {
            "items": self.batch * chunks * splits, "groups": self.batch, "depth": 1, "chunks": chunks, "splits": splits, "rows": self.rows,
            "split_rows": part, "part_by_part": int(by_part), "steps": self.steps, "tiles": address_of(self.table),
            "right_chunk": self.steps * width if packed else width,
            "panel_bytes": self.steps * width * self.dtype.itemsize if packed else 0,
            "right_group": self.steps * self.columns, "out_group": self.rows * row, "right_size": size, "offsets": address_of(offsets),
            "copied_offsets": address_of(copied), "copied_pitch": width,
            "reach": (self.steps - 1) * self.columns, "positions": self.columns, "chunk_positions": width,
            "pitch": self.columns, "width": self.columns, "out_row": row, "out_width": 1, "out_height": self.columns,
            "scale": address_of(self.ones), "shift": address_of(self.zeros), "residual_row": 0,
            "limits": address_of(self.limits),
            "activation": self.spreading.address if self.spreading else 0, "fused": 1,
            "slot_bytes": slot, "mode": RUNS if host().masked else LANES,
            "out_ahead": int(host().masked and asks_to_write(self.batch * self.rows * self.columns * self.dtype.itemsize)), "runs_at": runs_at, "sums_at": sums_at,
            "copied_at": copied_at,
        })  # fmt: skip
        return _Cut(threads, block, slot * threads, (offsets, copied))
