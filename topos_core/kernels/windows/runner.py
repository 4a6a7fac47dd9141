"""Runs a window reduction from its binding to its result."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from topos_core.cost.memory import reshaped_strides
from topos_core.kernels.host import host
from topos_core.kernels.launch import Scratch, address_of, launch, spaced, template
from topos_core.kernels.layouts import contiguous_axes, restore
from topos_core.kernels.library import Kernel, kernel
from topos_core.kernels.scratch import Read, Stage
from topos_core.kernels.vocabulary.blocks import WINDOW
from topos_core.kernels.windows.passes import Pass, passes, positions
from topos_core.matching.counting import divisors
from topos_core.matching.facts import WindowReduceFacts
from topos_core.ops.cast import cast_array
from topos_core.tape.type import FLOATS, TensorType, numpy_dtype

THREAD_BYTES: Final = 64 << 10
"""Of an image, below which another thread costs more than it does."""
SHORT: Final = 5
"""The longest windows that are reduced in registers."""
COLUMNS: Final = 1 << 30
"""The longest rows of such windows: their columns are counted in 32 bits."""
_X: Final = WINDOW.index("x")
_OUT: Final = WINDOW.index("out")
_SCRATCH: Final = WINDOW.index("scratch")
_COMPUTED: Final = {"f16": "f32", "bf16": "f32", "bool": "u8"}


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs one match.

    Args:
        facts: The match's facts.
        dtype: What the kernel computes in.
        steps: Its passes, each with its compiled reducer and the values that its argument blocks point at.
        shape: The result's extents, one per axis of `x`.
        dense: Whether the root has these axes in this order.
        divisors: What each position of an average divides by, broadcast against the result; None where one factor serves.
        blocks: Argument blocks and their scratch, one per pass, by number of threads and by the elements between the root's
            rows and between its planes; made when first needed.
    """

    facts: WindowReduceFacts
    dtype: np.dtype
    steps: tuple[tuple[Pass, Kernel, np.ndarray], ...]
    shape: tuple[int, ...]
    dense: bool
    divisors: np.ndarray | None
    blocks: dict[tuple[int, tuple[int, int]], tuple[tuple[array[int], int], ...]]

    def run(self, bindings: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray], threads: int) -> None:
        """Runs the match; see `Prepared`."""
        result = out["result"]
        if not result.size:
            return
        x = bindings["x"]
        if x.dtype.kind == "b":
            x = np.ascontiguousarray(x).view(np.uint8)
        x = np.ascontiguousarray(x, self.dtype)
        apart = self._apart(result)
        straight, last = apart is not None, len(self.steps) - 1
        for position, ((step, reducer, _), (block, scratch)) in enumerate(
            zip(self.steps, self._blocks(threads, apart or self._dense()), strict=True)
        ):
            target = result if straight and position == last else np.empty(step.result_size, self.dtype)
            self._launch(reducer, block, scratch, x, target, threads)
            x = target
        if self.divisors is not None:
            shaped = x.reshape(self.shape)
            with np.errstate(all="ignore"):  # a window without an element is 0 / 0
                np.divide(shaped, self.divisors, out=shaped)
        if not straight:
            axes = tuple(str(axis) for axis in range(len(self.shape)))
            spread = restore(x.reshape(self.shape), self.facts.result, axes)
            result[...] = cast_array(spread, result.dtype).reshape(result.shape)

    def _dense(self) -> tuple[int, int]:
        """Counts the elements between rows and between planes of a dense result of the last pass."""
        step = self.steps[-1][0]
        row = step.result_columns * step.inner
        return row, step.result_rows * row

    def _apart(self, result: np.ndarray) -> tuple[int, int] | None:
        """Counts the elements between rows and between planes of a root that is written where it lies; None for others."""
        if not self.dense or result.dtype.itemsize != self.dtype.itemsize:
            return None
        if result.flags.c_contiguous:
            return self._dense()
        if self.divisors is not None:
            return None
        planes = in_planes(result.shape, [stride // result.itemsize for stride in result.strides], self.steps[-1][0])
        return planes if all(stride % result.itemsize == 0 for stride in result.strides) else None

    def _launch(
        self, reducer: Kernel, prepared: array[int], scratch: int, x: np.ndarray, target: np.ndarray, threads: int
    ) -> None:
        block = array("q", prepared)
        memory = Scratch(scratch)
        block[_X], block[_OUT], block[_SCRATCH] = address_of(x), address_of(target), memory.address
        launch(reducer, block, threads if x.nbytes > THREAD_BYTES else 1)

    def _blocks(self, threads: int, apart: tuple[int, int]) -> tuple[tuple[array[int], int], ...]:
        made = self.blocks.get((threads, apart))
        if made is None:
            size = self.dtype.itemsize
            blocks = [_block(step, values, threads, size) for step, _, values in self.steps]
            blocks[-1][WINDOW.index("out_row")], blocks[-1][WINDOW.index("out_outer")] = apart
            spaces = [threads * _slot_bytes(step, size, threads) for step, *_ in self.steps]
            made = self.blocks[threads, apart] = tuple(zip(blocks, spaces, strict=True))
        return made


def make_runner(facts: WindowReduceFacts, dtype: str, shape: tuple[int, ...]) -> Runner:
    """Compiles the reducer and lays out its passes."""
    computed = _COMPUTED.get(dtype, dtype)
    running = numpy_dtype(computed)
    steps = passes(shape, facts.windows)
    valued = []
    for number, step in enumerate(steps):
        scale = facts.scale if number == len(steps) - 1 else 1.0
        values = _values(facts, step, running, scale, steps[:number])
        valued.append((step, _kernel(step, computed, facts), values))
    result = tuple(positions(extent, window) for extent, window in zip(shape, facts.windows, strict=True))
    counts = None if facts.counted is None else divisors(facts.windows, facts.counted, shape).astype(running)
    return Runner(facts, running, tuple(valued), result, _is_dense(facts, result), counts, {})


def stage_of(facts: WindowReduceFacts, x: TensorType, root: TensorType) -> Stage:
    """Tells what a run copies and makes elsewhere: x in its own order, results between passes."""
    running = _COMPUTED.get(x.dtype, x.dtype)
    steps, size = passes(x.shape, facts.windows), numpy_dtype(running).itemsize
    result = tuple(positions(extent, window) for extent, window in zip(x.shape, facts.windows, strict=True))
    elsewhere = bringing = 0
    if not (_is_dense(facts, result) and numpy_dtype(root.dtype).itemsize == size):
        elsewhere, bringing = root.size * size, root.bytes if running != root.dtype else 0
    between = sum(step.result_size for step in steps[:-1]) * size
    return Stage((("x", Read("bool" if x.dtype == "bool" else running)),), between + elsewhere, bringing, drops=True)


def _is_dense(facts: WindowReduceFacts, result: Sequence[int]) -> bool:
    """Tells whether the root has the axes of x in their order."""
    axes = contiguous_axes(facts.result, tuple(str(axis) for axis in range(len(result))))
    return axes is not None and all(
        extent == 1 or axis.stride == math.prod(result[k + 1 :])
        for k, (extent, axis) in enumerate(zip(result, axes, strict=True))
    )


class InPlanes(NamedTuple):
    """How a root is written whose rows stand apart: plane by plane, where its last pass slides over its last two axes."""

    last: Pass
    dense: bool

    def reaches(self, kind: TensorType, strides: Sequence[int], /) -> bool:
        """Tells whether a root of such strides, in elements, is written where it lies."""
        return self.dense and in_planes(kind.shape, strides, self.last) is not None


def in_planes(shape: Sequence[int], strides: Sequence[int], last: Pass) -> tuple[int, int] | None:
    """Gives the elements between rows and between planes of a root that lies in planes as far apart as each other."""
    if len(shape) < 3 or (last.result_rows, last.result_columns, last.inner) != (*shape[-2:], 1) or strides[-1] != 1:
        return None
    merged = reshaped_strides(shape[:-2], strides[:-2], (math.prod(shape[:-2]),))
    return (strides[-2], merged[0]) if merged is not None else None


def apart_of(facts: WindowReduceFacts, x: TensorType, root: TensorType) -> InPlanes:
    """Tells how a root is written whose rows stand apart."""
    steps = passes(x.shape, facts.windows)
    result = tuple(positions(extent, window) for extent, window in zip(x.shape, facts.windows, strict=True))
    size = numpy_dtype(_COMPUTED.get(x.dtype, x.dtype)).itemsize
    straight = _is_dense(facts, result) and numpy_dtype(root.dtype).itemsize == size
    return InPlanes(steps[-1], straight and facts.counted is None)


def _kernel(step: Pass, dtype: str, facts: WindowReduceFacts) -> Kernel:
    """Chooses what reduces a pass: in registers, where windows are short and the machine has masks for the image's edges."""
    windows = step.down, step.across
    short = all(w.dilation == 1 and w.stride <= w.size <= SHORT for w in windows) and step.across.stride <= 2
    dense = step.inner == 1 and step.columns <= COLUMNS
    scales = facts.scale == 1.0 or facts.reducer == "sum"
    if short and dense and scales and dtype in FLOATS and host().masked:
        extents = (extent for window in windows for extent in (window.size, window.stride))
        return kernel("short_window", dtype, facts.reducer, *map(str, extents))
    return kernel("window", dtype, facts.reducer)


def _values(facts: WindowReduceFacts, step: Pass, dtype: np.dtype, scale: float, earlier: Sequence[Pass]) -> np.ndarray:
    """Gives what an absent element, an absent column and the result's factor are; sums of absent elements add up."""
    fill: float = facts.pad_fill if facts.pad_fill is not None else 0
    if dtype.kind in "iu":
        fill = int(fill)
    if facts.reducer == "sum":
        for before in earlier:
            fill = fill * (before.down.size * before.across.size)
    column = fill * step.down.size if facts.reducer == "sum" else fill
    if dtype.kind in "iu":
        values = [wrapped(int(value), dtype, facts.reducer == "sum") for value in (fill, column, scale)]
        return np.array(values, dtype)
    with np.errstate(all="ignore"):
        return np.array([fill, column, scale]).astype(dtype)


def wrapped(value: int, dtype: np.dtype, wraps: bool) -> int:
    """Brings an integer into a dtype's range: modulo where sums wrap, else the nearest."""
    limits = np.iinfo(dtype)
    if wraps:
        span = 1 << (8 * dtype.itemsize)
        return (value - limits.min) % span + limits.min
    return min(max(value, limits.min), limits.max)


def _block(step: Pass, values: np.ndarray, threads: int, size: int) -> array[int]:
    chunks = min(step.result_rows, max(1, -(-4 * threads // max(step.outer, 1)))) if threads > 1 else 1
    rows = max(1, -(-step.result_rows // max(chunks, 1)))
    chunks = -(-step.result_rows // rows)
    return template(WINDOW, {
        "items": step.outer * chunks, "chunks": chunks, "chunk_rows": rows,
        "rows": step.rows, "columns": step.columns, "inner": step.inner, "result_rows": step.result_rows,
        "result_columns": step.result_columns, "down_size": step.down.size, "down_stride": step.down.stride,
        "down_dilation": step.down.dilation, "down_low": step.down.low, "across_size": step.across.size,
        "across_stride": step.across.stride, "across_dilation": step.across.dilation, "across_low": step.across.low,
        "x_outer": step.rows * step.columns * step.inner, "x_row": step.columns * step.inner,
        "out_outer": step.result_rows * step.result_columns * step.inner,
        "out_row": step.result_columns * step.inner, "values": address_of(values),
        "slot_bytes": _slot_bytes(step, size, threads),
    })  # fmt: skip


def _slot_bytes(step: Pass, size: int, threads: int) -> int:
    """Counts a worker's scratch: a line of what windows read, or a row of the image."""
    return spaced(max(step.line, step.columns) * step.inner * size, threads)
