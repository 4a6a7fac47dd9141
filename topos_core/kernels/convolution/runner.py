"""A convolution with its epilogue, from bindings to result: layouts, dtypes and folded parameters at the edges."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from topos_core.kernels.convolution.engine import Engine, Epilogue
from topos_core.kernels.convolution.geometry import Problem, problem
from topos_core.kernels.launch import address_of
from topos_core.kernels.layouts import Axis, arrange, contiguous_axes, restore
from topos_core.matching.facts import ConvolutionFacts
from topos_core.ops.cast import cast_array
from topos_core.tape.type import numpy_dtype

RESULT_ROLES = ("b", "g", "f")
Fold = Callable[[Mapping[str, np.ndarray]], tuple[np.ndarray, np.ndarray]]
"""Gives f64 scale and shift per output channel from the epilogue's bindings."""


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs one match; `left` and `factors` are set where their bindings are known beforehand.

    Args:
        facts: The convolution's facts.
        dtype: The recorded dtype; f16 and bf16 are computed in f32 and rounded once.
        engine: Does the work in f32 or f64.
        dense: Whether the engine writes the root itself; else it writes a temporary in its own layout.
        left: The kernel as [groups * rows, steps], or None.
        factors: Scale and shift per output channel, or None.
        fold: Computes them.
        kernel_name: The binding that holds the kernel.
        residual_name: The binding that is added, or None.
    """

    facts: ConvolutionFacts
    dtype: np.dtype
    engine: Engine
    dense: bool
    left: np.ndarray | None
    factors: tuple[np.ndarray, np.ndarray] | None
    fold: Fold
    residual_name: str | None

    @property
    def scratch_bytes(self) -> int:
        """Counts planes and tile buffers, and what layouts and dtypes need at the edges."""
        extra = (
            0 if self.dense and self.dtype == self.engine.dtype else self._result_size() * self.engine.dtype.itemsize
        )
        return self.engine.scratch_bytes() + extra

    def run(self, bindings: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray], threads: int) -> None:
        """Runs the match; see `Prepared`."""
        result = out["result"]
        if not result.size:
            return
        convolution = self.engine.problem
        left = self.left if self.left is not None else kernel_rows(bindings["kernel"], self.facts, self.engine.dtype)
        scale, shift = self.factors if self.factors is not None else self._factors(bindings)
        x = image_axes(bindings["x"], self.facts, convolution).astype(self.engine.dtype, copy=False)
        residual = bindings[self.residual_name] if self.residual_name is not None else None
        straight = self.dense and result.dtype == self.engine.dtype and result.flags.c_contiguous
        if straight:
            if residual is not None:
                residual = np.ascontiguousarray(residual)
            at = address_of(residual) if residual is not None else 0
            self.engine.run(x, left, scale, shift, at, address_of(result), threads)
            return
        roles = self._roles()
        if residual is not None:
            residual = np.ascontiguousarray(arrange(residual, self.facts.result, roles), self.engine.dtype)
        temporary = np.empty(self._result_size(), self.engine.dtype)
        engine = self.engine.with_out(contiguous_out(convolution))
        at = address_of(residual) if residual is not None else 0
        engine.run(x, left, scale, shift, at, address_of(temporary), threads)
        shape = (convolution.batch, convolution.groups, convolution.rows, *convolution.result[3 - len(roles) + 3 :])
        spread = restore(temporary.reshape(shape), self.facts.result, roles)
        result[...] = cast_array(spread, result.dtype).reshape(result.shape)

    def _factors(self, bindings: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        scale, shift = self.fold(bindings)
        return scale.astype(self.engine.dtype), shift.astype(self.engine.dtype)

    def _roles(self) -> tuple[str, ...]:
        return (*RESULT_ROLES, *(role for role in self.engine.problem.roles if role))

    def _result_size(self) -> int:
        convolution = self.engine.problem
        return convolution.batch * convolution.groups * convolution.rows * convolution.positions


def make_runner(
    facts: ConvolutionFacts,
    dtype: str,
    kernel: np.ndarray | None,
    fold: Fold,
    factors: tuple[np.ndarray, np.ndarray] | None,
    epilogue: Epilogue,
    residual_name: str | None,
) -> Runner:
    """Builds the engine and packs what is known: the kernel, and the f64 scale and shift per channel."""
    convolution = problem(facts)
    computed = "f64" if dtype == "f64" else "f32"
    roles = (*RESULT_ROLES, *(role for role in convolution.roles if role))
    axes = contiguous_axes(facts.result, roles)
    dense = axes is not None
    filled = contiguous_out(convolution) if axes is None else _with_units(axes, convolution)
    engine = Engine(convolution, computed, filled, epilogue)
    running = numpy_dtype(computed)
    left = None if kernel is None else kernel_rows(kernel, facts, running)
    if factors is not None:
        factors = (factors[0].astype(running), factors[1].astype(running))
    return Runner(facts, numpy_dtype(dtype), engine, dense, left, factors, fold, residual_name)


def kernel_rows(kernel: np.ndarray, facts: ConvolutionFacts, dtype: np.dtype) -> np.ndarray:
    """Gives the kernel as C-contiguous [groups * rows, channels * taps] with taps in reading order."""
    spatial = [str(axis) for axis in range(len(facts.windows))]
    if not facts.in_channels:  # a sum of nothing is the sum over one channel of zeros
        return np.zeros((facts.out_channels, math.prod(window.size for window in facts.windows)), dtype)
    axes = arrange(kernel, facts.kernel, ("g", "o", "i", *spatial))
    backwards = tuple(3 + axis for axis, window in enumerate(facts.windows) if window.reversed)
    if backwards:
        axes = np.flip(axes, backwards)
    rows = facts.out_channels
    return np.ascontiguousarray(axes.reshape(rows, -1), dtype)


def image_axes(x: np.ndarray, facts: ConvolutionFacts, convolution: Problem) -> np.ndarray:
    """Gives the image as [batch, channels, depth, height, width], as a view where strides allow it."""
    if not facts.in_channels:
        return np.zeros((convolution.batch, convolution.groups, *convolution.image), x.dtype)
    present = [role for role in convolution.roles if role]
    arranged = arrange(x, facts.image, ("b", "f", *present))
    return arranged.reshape(*arranged.shape[:2], *convolution.image)


def contiguous_out(convolution: Problem) -> tuple[Axis, ...]:
    """Lays out [batch, group, row, depth, height, width] densely."""
    axes: list[Axis] = []
    stride = 1
    for extent in reversed((convolution.batch, convolution.groups, convolution.rows, *convolution.result)):
        axes.insert(0, Axis(extent, stride))
        stride *= extent
    return tuple(axes)


def _with_units(axes: tuple[Axis, ...], convolution: Problem) -> tuple[Axis, ...]:
    absent = tuple(Axis(1, 0) for role in convolution.roles if not role)
    return (*axes[:3], *absent, *axes[3:])
