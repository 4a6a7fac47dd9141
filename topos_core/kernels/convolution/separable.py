"""Runs a pointwise convolution whose right operand a depthwise one makes, a chunk of positions at a time.

A chunk of all channels stays in the second-level cache, and a tile's part of it in the first, while every row of the pointwise
kernel reads it; the depthwise result is never written. Its image is read in place where it may be: taps that lie outside are masked. Strides, other
machines and images that do not lie densely go through padded planes.
"""

from __future__ import annotations

from array import array
from typing import Final, NamedTuple

import numpy as np

from topos_core.kernels.convolution.engine import (
    CACHE_BYTES,
    FAR_BYTES,
    ITEMS_PER_THREAD,
    UNBOUNDED,
    Cut,
    Engine,
    Epilogue,
    Operands,
)
from topos_core.kernels.convolution.geometry import Problem, masks_fit
from topos_core.kernels.convolution.plane_copy import copy_block
from topos_core.kernels.host import host
from topos_core.kernels.launch import address_of, aligned, spaced, template
from topos_core.kernels.library import kernel
from topos_core.kernels.vocabulary.blocks import CONTRACTION, DEPTHWISE, LINE

WINDOW: Final = "3x3"
"""The window that slides by rows; others are summed tap by tap."""
_D: Final = {name: place for place, name in enumerate(DEPTHWISE)}


class Separable(Engine):
    """A pair of convolutions of one shape and dtype (f32 or f64), ready to run; safe to run from several threads.

    `steps` says that what follows the depthwise sums is taken step by step.
    """

    def __init__(
        self,
        depthwise: Problem,
        pointwise: Problem,
        dtype: str,
        before: Epilogue,
        after: Epilogue,
        *,
        steps: bool = False,
    ) -> None:
        super().__init__(pointwise, dtype, after, depthwise)
        self.before, self.steps = before, steps
        self.before_limits = np.array(before.limits, self.dtype)

    def _producing(self, cut: Cut, operands: Operands) -> array[int] | None:
        assert cut.produced is not None
        words = array("q", cut.produced)
        words[_D["weights"]], words[_D["scale"]], words[_D["shift"]] = operands[6:9]
        words[_D["steps"]], words[_D["times"]] = operands[9:]
        return words

    def _cut(self, threads: int, strides: tuple[int, ...], out: tuple[int, ...]) -> Cut:
        in_place = self._reads_image(strides)
        slides, maker_name = in_place and self._slides(), "depthwise_steps" if self.steps else "depthwise"
        if slides:
            making = _rows(self.source, strides, self.lanes)
            maker = kernel("depthwise_rows", self.name, self.before.activation, WINDOW)
        elif in_place:
            making = _taps(self.source, strides, self.lanes)
            maker = kernel(maker_name, self.name, self.before.activation, "masked")
        else:
            step = {"channel_step": self.planes.channel}
            making = _Making(self.planes.offsets, np.zeros(0, np.int64), step, self._plane_words())
            maker = kernel(maker_name, self.name, self.before.activation, "whole")
        vectors = self._chunk_vectors(threads)
        values = {**self._operand_words(making.offsets, out), **making.reading, "producer": maker.address}
        values.update(self._items(values, vectors, threads))
        positions = vectors * self.lanes
        if slides:
            positions = self._chunk_rows(threads, values) * making.reading["pitch"]
        chunks = -(-values["positions"] // positions)
        channel_bytes = making.words["channel_step"] * self.dtype.itemsize
        asks = (
            in_place
            and self.source.rows == 1
            and host().waits_for_rows
            and self.problem.channels * channel_bytes >= FAR_BYTES
        )
        # off the power of two, so that channels do not meet in one cache set
        pitch = (-(-positions // self.lanes) + 1) * self.lanes
        made = np.arange(self.problem.channels, dtype=np.int64) * pitch
        slack = self.tiles.widest * self.lanes  # a narrow tile reads whole registers of the last channel
        slot = self._slot_bytes(-(-positions // self.lanes), False)
        slot = spaced(slot + (self.problem.channels * pitch + slack) * self.dtype.itemsize, threads)
        values.update(
            # rows are not split: every part would make the right operand anew
            items=self.problem.batch * values["depth"] * chunks, splits=1, split_rows=self.problem.rows, chunks=chunks,
            # asking for lines of the result gains nothing beside what is made meanwhile
            out_ahead=0, next_lines=1 + positions * self.dtype.itemsize // LINE if asks else 0, next_step=channel_bytes, chunk_positions=positions, right_chunk=positions, copied_offsets=address_of(made), slot_bytes=slot,
            **self._places(values["runs_at"], positions),
        )  # fmt: skip
        produced = {
            "channels": self.problem.channels, "multiplier": self.source.rows, "pitch": pitch, "taps": self.source.taps,
            "offsets": address_of(making.offsets), "limits": address_of(self.before_limits),
            "masks": address_of(making.masks), **making.words,
        }  # fmt: skip
        words = array("q", {**dict.fromkeys(DEPTHWISE, 0), **produced}.values())
        scratch = slot * threads + (0 if in_place else self._plane_bytes())
        copy = None if in_place else copy_block(self.source, self.planes, self.residues, strides)
        keep = (making.masks, made)
        return Cut(threads, template(CONTRACTION, values), making.offsets, copy, slot, scratch, words, keep)

    def _places(self, runs_at: int, positions: int) -> dict[str, int]:
        """Lays out a slot behind the tables of so many positions."""
        sums_at = aligned(runs_at + self._lane_bytes() * (-(-positions // self.lanes) + self.tiles.widest))
        return {"sums_at": sums_at, "copied_at": sums_at + self._sums_bytes()}

    def _slides(self) -> bool:
        """Tells whether several rows can be summed together: the window is the one that there are kernels for."""
        (_, down, across), (_, rows, _) = self.source.windows, self.source.result
        return (
            not self.steps
            and rows > 1
            and f"{down.size}x{across.size}" == WINDOW
            and down.dilation == across.dilation == 1
        )

    def _chunk_rows(self, threads: int, words: dict[str, int]) -> int:
        """Chooses how many rows of the result an item holds: cached, enough items, and few registers that are not full."""
        height = self.problem.result[1]
        pitch = -(-words["positions"] // height)
        most = max(1, min(height, CACHE_BYTES // (self.problem.channels * self.dtype.itemsize * pitch)))
        if threads > 1:
            most = max(1, min(most, self.problem.batch * height // (ITEMS_PER_THREAD * threads)))
        unit = self.tiles.tall_vectors * self.lanes

        def filled(rows: int) -> float:
            tiles, rest = divmod(rows * pitch, unit)
            return rows * pitch / (tiles * unit + (unit + rest) / 2 * (rest > 0))

        return max(range(1, most + 1), key=lambda rows: (round(filled(rows), 2), rows))

    def _reads_image(self, strides: tuple[int, ...]) -> bool:
        """Tells whether taps can read the image itself, those outside of it masked."""
        return host().masked and masks_fit(self.source, strides)


class _Making(NamedTuple):
    """What a maker reads: offsets of taps, masks, further words of its own, and words of the contraction."""

    offsets: np.ndarray
    masks: np.ndarray
    words: dict[str, int]
    reading: dict[str, int]


def _taps(problem: Problem, strides: tuple[int, ...], lanes: int) -> _Making:
    """Gives what each tap reads relative to its position, i64[taps], and the lanes that it may read, i64[registers, taps]."""
    (_, down, across), (_, rows, columns) = problem.windows, problem.image
    batch, channel, _, height, _ = strides
    _, out_rows, out_columns = problem.result
    pitch = height if out_rows > 1 else out_columns
    places = np.arange(-(-((out_rows - 1) * pitch + out_columns) // lanes) * lanes)
    y = (places // pitch)[:, None] + (np.arange(down.size) * down.dilation - down.low)
    x = (places % pitch)[:, None] + (np.arange(across.size) * across.dilation - across.low)
    exists = ((places // pitch < out_rows) & (places % pitch < out_columns))[:, None, None]
    inside = exists & ((y >= 0) & (y < rows))[:, :, None] & ((x >= 0) & (x < columns))[:, None, :]
    offsets = (y[0] * height)[:, None] + x[0]
    return _Making(
        np.ascontiguousarray(offsets.reshape(-1)), _bits(inside.reshape(-1, lanes, down.size * across.size)),
        {"channel_step": channel}, _reading(batch, pitch),
    )  # fmt: skip


def _rows(problem: Problem, strides: tuple[int, ...], lanes: int) -> _Making:
    """Gives the lanes that a window's columns may read and those that are stored, i64[registers of a row, columns + 1]."""
    (_, down, across), (_, rows, columns) = problem.windows, problem.image
    batch, channel, _, height, _ = strides
    out_columns = problem.result[2]
    places = np.arange(-(-out_columns // lanes) * lanes)
    x = places[:, None] + (np.arange(across.size) - across.low)
    stored = (places < out_columns)[:, None]
    masks = _bits(np.concatenate([(x >= 0) & (x < columns) & stored, stored], 1).reshape(-1, lanes, across.size + 1))
    words = {
        "channel_step": channel, "row_pitch": height, "registers": len(masks), "height": rows, "row_low": down.low,
        "column_low": across.low,
    }  # fmt: skip
    return _Making(np.zeros(0, np.int64), masks, words, _reading(batch, height))


def _reading(batch: int, pitch: int) -> dict[str, int]:
    return {"right_batch": batch, "right_size": UNBOUNDED, "pitch": pitch}


def _bits(flags: np.ndarray) -> np.ndarray:
    """Packs [registers, lanes, masks] into i64[registers, masks]."""
    return np.ascontiguousarray((flags.astype(np.int64) << np.arange(flags.shape[1])[:, None]).sum(1))
