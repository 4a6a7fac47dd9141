"""Runs a window reduction from its binding to its result."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from topos_core.kernels.launch import Scratch, address_of, aligned, launch, template
from topos_core.kernels.layouts import contiguous_axes, restore
from topos_core.kernels.library import Kernel, kernel
from topos_core.kernels.vocabulary.blocks import WINDOW
from topos_core.kernels.windows.passes import Pass, passes, positions
from topos_core.matching.facts import WindowReduceFacts
from topos_core.ops.cast import cast_array
from topos_core.tape.type import numpy_dtype

_W: Final = {name: place for place, name in enumerate(WINDOW)}
_COMPUTED: Final = {"f16": "f32", "bf16": "f32", "bool": "u8"}


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs one match.

    Args:
        facts: The match's facts.
        dtype: What the kernel computes in.
        kernel: The compiled reducer.
        steps: Its passes, each with its argument block and the values that the block points at.
        shape: The result's extents, one per axis of `x`.
        dense: Whether the root has these axes in this order.
    """

    facts: WindowReduceFacts
    dtype: np.dtype
    kernel: Kernel
    steps: tuple[tuple[Pass, array[int], np.ndarray], ...]
    shape: tuple[int, ...]
    dense: bool

    @property
    def scratch_bytes(self) -> int:
        """Counts the results between passes and one row."""
        size = self.dtype.itemsize
        between = sum(step.result_size for step, _, _ in self.steps[:-1]) * size
        return between + max(aligned(step.columns * step.inner * size) for step, _, _ in self.steps)

    def run(self, bindings: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray], threads: int) -> None:
        """Runs the match; see `Prepared`."""
        result = out["result"]
        if not result.size:
            return
        x = bindings["x"]
        if x.dtype.kind == "b":
            x = np.ascontiguousarray(x).view(np.uint8)
        x = np.ascontiguousarray(x, self.dtype)
        straight = self.dense and result.flags.c_contiguous and result.dtype.itemsize == self.dtype.itemsize
        for position, (step, block, _) in enumerate(self.steps):
            last = position == len(self.steps) - 1
            target = result if last and straight else np.empty(step.result_size, self.dtype)
            self._launch(step, block, x, target, threads)
            x = target
        if not straight:
            axes = tuple(str(axis) for axis in range(len(self.shape)))
            spread = restore(x.reshape(self.shape), self.facts.result, axes)
            result[...] = cast_array(spread, result.dtype).reshape(result.shape)

    def _launch(self, step: Pass, prepared: array[int], x: np.ndarray, target: np.ndarray, threads: int) -> None:
        block = array("q", prepared)
        slot = aligned(step.columns * step.inner * self.dtype.itemsize)
        scratch = Scratch(slot * threads)
        chunks = min(step.result_rows, max(1, -(-4 * threads // step.outer))) if threads > 1 else 1
        chunk_rows = -(-step.result_rows // chunks)
        chunks = -(-step.result_rows // chunk_rows)
        for name, value in (
            ("items", step.outer * chunks), ("chunks", chunks), ("chunk_rows", chunk_rows), ("x", address_of(x)),
            ("out", address_of(target)), ("scratch", scratch.address), ("slot_bytes", slot),
        ):  # fmt: skip
            block[_W[name]] = value
        launch(self.kernel, block, _W["counter"], threads)


def make_runner(facts: WindowReduceFacts, dtype: str, shape: tuple[int, ...]) -> Runner:
    """Compiles the reducer and lays out its passes."""
    computed = _COMPUTED.get(dtype, dtype)
    running = numpy_dtype(computed)
    steps = passes(shape, facts.windows)
    prepared = []
    for number, step in enumerate(steps):
        scale = facts.scale if number == len(steps) - 1 else 1.0
        values = _values(facts, step, running, scale, list(steps[:number]))
        prepared.append((step, _block(step, values), values))
    result = tuple(positions(extent, window) for extent, window in zip(shape, facts.windows, strict=True))
    axes = contiguous_axes(facts.result, tuple(str(axis) for axis in range(len(shape))))
    dense = axes is not None and all(
        extent == 1 or axis.stride == math.prod(result[k + 1 :])
        for k, (extent, axis) in enumerate(zip(result, axes, strict=True))
    )
    return Runner(facts, running, kernel("window", computed, facts.reducer), tuple(prepared), result, dense)


def _values(facts: WindowReduceFacts, step: Pass, dtype: np.dtype, scale: float, earlier: list[Pass]) -> np.ndarray:
    """Gives what an absent element, an absent column and the result's factor are; sums of absent elements add up."""
    fill = facts.pad_fill if facts.pad_fill is not None else 0
    if facts.reducer == "sum":
        for before in earlier:
            fill = fill * (before.down.size * before.across.size)
    column = fill * step.down.size if facts.reducer == "sum" else fill
    with np.errstate(all="ignore"):
        return np.array([fill, column, scale]).astype(dtype)


def _block(step: Pass, values: np.ndarray) -> array[int]:
    return template(WINDOW, {
        "rows": step.rows, "columns": step.columns, "inner": step.inner, "result_rows": step.result_rows,
        "result_columns": step.result_columns, "down_size": step.down.size, "down_stride": step.down.stride,
        "down_dilation": step.down.dilation, "down_low": step.down.low, "across_size": step.across.size,
        "across_stride": step.across.stride, "across_dilation": step.across.dilation, "across_low": step.across.low,
        "x_outer": step.rows * step.columns * step.inner, "x_row": step.columns * step.inner,
        "out_outer": step.result_rows * step.result_columns * step.inner,
        "out_row": step.result_columns * step.inner, "values": address_of(values),
    })  # fmt: skip
