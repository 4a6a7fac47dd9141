"""A convolution with its epilogue, from bindings to result: layouts, dtypes and folded parameters at the edges."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from topos_core.cost.memory import contiguous_strides
from topos_core.kernels.convolution.activations import Ending
from topos_core.kernels.convolution.engine import Engine, Operands
from topos_core.kernels.convolution.factors import Factors
from topos_core.kernels.convolution.geometry import Problem, problem
from topos_core.kernels.convolution.phases import Phases, phases_of
from topos_core.kernels.convolution.stepwise import finish
from topos_core.kernels.convolution.strips import Strips
from topos_core.kernels.convolution.winograd import Form, Winograd, transformed
from topos_core.kernels.known import Known
from topos_core.kernels.launch import address_of
from topos_core.kernels.layouts import arrange, restore
from topos_core.kernels.margins import Margins
from topos_core.matching.facts import ConvolutionFacts
from topos_core.ops.cast import cast_array
from topos_core.tape.type import numpy_dtype

Fold = Callable[[Mapping[str, np.ndarray], np.dtype], Factors]
"""Gives what follows the sums from the epilogue's bindings, in the dtype that is computed in."""


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs one match.

    Args:
        facts: The convolution's facts; its `result` is the root's.
        dtype: The recorded dtype; f16 and bf16 are computed in f32 and rounded once.
        engine: Does the work in f32 or f64.
        images: Strides of image bindings that the engine can read, to its own: batch, channel, depth, height, width.
        kernels: Strides of kernel bindings that have the engine's layout already.
        results: Strides of roots that the engine can write, to its own: batch, group, row, depth, height, width.
        left: The kernel as [groups * rows, steps] where it is known beforehand.
        factors: What follows the sums where it is known beforehand.
        fold: Computes it.
        ending: What follows that.
        written: What the kernels do of it: nothing where the sums are stored alone.
        tiled: Winograd's tiles, where they run.
        winograd: Does the work in place of `engine` where everything is finite; a root whose columns are not dense is made elsewhere.
        tiles: The kernel as `winograd` reads it.
        reduced: The known scale as `winograd` takes it; None where it takes none.
        again: Does it over where something is not finite.
        phases: Does the work in place of `engine` where zeros are inserted and the kernel is finite.
        pieces: The kernel as `phases` reads it, where it is known beforehand.
        margins: The planes in which the image lies, zeros around it; None where it lies in none that this kernel reads.
        alone: The runner that stores sums, once a run needed it.
    """

    facts: ConvolutionFacts
    dtype: np.dtype
    engine: Engine
    images: Known[tuple[int, ...], tuple[int, ...]]
    kernels: Known[tuple[int, ...], bool]
    results: Known[tuple[int, ...], tuple[int, ...]]
    left: np.ndarray | None
    factors: Factors | None
    fold: Fold
    ending: Ending
    written: Ending
    tiled: Form | None
    winograd: Winograd | None = None
    tiles: np.ndarray | None = None
    reduced: np.ndarray | None = None
    again: Strips | None = None
    phases: Phases | None = None
    pieces: Sequence[np.ndarray] | None = None
    margins: Margins | None = None
    alone: Known[Ending, Runner] = field(default_factory=Known)

    def run(self, bindings: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray], threads: int) -> None:
        """Runs the match; see `Prepared`."""
        result = out["result"]
        if not result.size:
            return
        dtype = self.engine.dtype
        left = self.left if self.left is not None else self._left(bindings["kernel"])
        factors = self.factors if self.factors is not None else self.fold(bindings, dtype)
        x, image = self._image(bindings["x"])
        residual = bindings["residual"] if self.ending.residual else None
        strides = self._result(result)
        target = result
        if strides is None:
            target, strides = np.empty(self._result_size(), dtype), _dense(self.engine.problem)
            if residual is not None:
                residual = np.ascontiguousarray(arrange(residual, self.facts.result, self._roles()), dtype)
        elif residual is not None and (residual.strides != result.strides or residual.dtype != dtype):
            residual = _alike(residual, result)
        added = residual if factors.steps is None else None
        operands = Operands(
            address_of(x), address_of(left), address_of(factors.scale), address_of(factors.shift),
            address_of(added) if added is not None else 0, address_of(target),
        )  # fmt: skip
        kernels = self if factors.steps is None else self._storing_sums()
        kernels._start(image, strides, operands, left, factors.scale, threads)
        if factors.steps is not None:
            seen = self._in_order if target is result else self._split
            finish(seen(target), seen(residual) if residual is not None else None, factors.steps, self.ending)
        if target is not result:
            self._deliver(target, result)

    def _start(
        self,
        image: tuple[int, ...],
        out: tuple[int, ...],
        given: Operands,
        left: np.ndarray,
        scale: np.ndarray,
        threads: int,
    ) -> None:
        """Starts the kernels; `left` and `scale` are the arrays at two of the addresses `given`."""
        pieces = self.pieces
        if self.phases is not None and pieces is None:
            pieces = self.phases.pieces(left)
        if self.phases is not None and pieces is not None:
            self.phases.run(image, out, given, pieces, threads)
        elif not self._by_tiles(image, out, given, scale, threads):
            self.engine.run(image, out, given, threads, self._planes(given))

    def _storing_sums(self) -> Runner:
        """Gives the same kernels without an ending."""
        if self.written == Ending():
            return self
        found = self.alone.get(Ending())
        if found is None:
            made = _kernels(self.engine.problem, self.engine.name, Ending(), self.tiled)
            found = self.alone.keep(Ending(), replace(self, written=Ending(), **made._asdict()))
        return found

    def _in_order(self, array: np.ndarray) -> np.ndarray:
        """Looks at what lies as the root does as [batch, groups, rows, positions...]."""
        return arrange(array, self.facts.result, self._roles())

    def _split(self, temporary: np.ndarray) -> np.ndarray:
        """Looks at what lies densely in the engine's order as [batch, groups, rows, positions...]."""
        of = self.engine.problem
        spatial = [extent for extent, role in zip(of.result, of.roles, strict=True) if role]
        return temporary.reshape(of.batch, of.groups, of.rows, *spatial)

    def _by_tiles(
        self, image: tuple[int, ...], out: tuple[int, ...], given: Operands, scale: np.ndarray, threads: int
    ) -> bool:
        """Runs by Winograd's tiles where there are such, and directly where a sum is not finite or factors would lose digits.

        Gives whether the result is there.
        """
        if self.winograd is None or self.tiles is None or self.again is None:
            return False
        known = self.factors is not None and scale is self.factors.scale
        reduced = self.reduced if known else self.winograd.form.reduced(scale)
        scales = address_of(reduced if reduced is not None else scale)
        addresses = (given.x, address_of(self.tiles), scales, given.shift, given.residual, given.out)
        if reduced is None or not self.winograd.run(image, out, addresses, threads, self._planes(given)):
            self.again.run(image, out, given, self.winograd.alone_rows, self.winograd.form.side, threads)
        return True

    def _planes(self, given: Operands) -> int:
        """Gives where the image's planes start, where it lies in such; else 0."""
        return given.x - self.margins.first * self.engine.dtype.itemsize if self.margins is not None else 0

    def _result(self, result: np.ndarray) -> tuple[int, ...] | None:
        """Gives the strides by which the engine writes a root, or None where it needs a temporary."""
        known = self.results.get(result.strides)
        if known is not None:
            return known
        if result.dtype != self.engine.dtype:
            return None
        arranged = arrange(result, self.facts.result, self._roles())
        if address_of(arranged) != address_of(result):
            return None
        given = iter(stride // result.itemsize for stride in arranged.strides[3:])
        spatial = tuple(next(given) if role else 0 for role in self.engine.problem.roles)
        strides = (*(stride // result.itemsize for stride in arranged.strides[:3]), *spatial)
        if self.winograd is not None and strides[5] != 1 and self.engine.problem.result[2] > 1:
            return None
        return self.results.keep(result.strides, strides)

    def _left(self, kernel: np.ndarray) -> np.ndarray:
        if kernel.strides in self.kernels and kernel.dtype == self.engine.dtype:
            return kernel
        rows = kernel_rows(kernel, self.facts, self.engine.dtype)
        if rows.size and address_of(rows) == address_of(kernel):
            self.kernels.keep(kernel.strides, True)
        return rows

    def _image(self, x: np.ndarray) -> tuple[np.ndarray, tuple[int, ...]]:
        known = self.images.get(x.strides)
        if known is not None and x.dtype == self.engine.dtype:
            return x, known
        arranged = image_axes(x, self.facts, self.engine.problem).astype(self.engine.dtype, copy=False)
        size = arranged.itemsize
        if any(stride % size for stride in arranged.strides):
            arranged = np.ascontiguousarray(arranged)
        strides = tuple(stride // size for stride in arranged.strides)
        if x.size and address_of(arranged) == address_of(x):
            self.images.keep(x.strides, strides)
        return arranged, strides

    def _deliver(self, temporary: np.ndarray, result: np.ndarray) -> None:
        """Brings a temporary into the root's layout and dtype."""
        restored = restore(self._split(temporary), self.facts.result, self._roles())
        result[...] = cast_array(restored, result.dtype).reshape(result.shape)

    def _roles(self) -> tuple[str, ...]:
        return result_roles(self.engine.problem)

    def _result_size(self) -> int:
        convolution = self.engine.problem
        return convolution.batch * convolution.groups * convolution.rows * convolution.positions


def make_runner(
    facts: ConvolutionFacts,
    dtype: str,
    kernel: np.ndarray | None,
    fold: Fold,
    known: Mapping[str, np.ndarray] | None,
    ending: Ending,
    tiled: Form | None = None,
    margins: Margins | None = None,
) -> Runner:
    """Builds the engine and packs what is known: the kernel, and what follows the sums, whose bindings are `known`.

    `tiled` are Winograd's tiles, which need a kernel that is known; `margins` tells in which planes the image lies.
    """
    convolution = problem(facts)
    computed = "f64" if dtype == "f64" else "f32"
    running = numpy_dtype(computed)
    factors = fold(known, running) if known is not None else None
    left = None if kernel is None else kernel_rows(kernel, facts, running)
    if left is None:
        tiled = None
    written = Ending() if factors is not None and factors.steps is not None else ending
    made = _kernels(convolution, computed, written, tiled)
    return Runner(
        facts=facts,
        dtype=numpy_dtype(dtype),
        images=Known(),
        kernels=Known(),
        results=Known(),
        left=left,
        factors=factors,
        fold=fold,
        ending=ending,
        written=written,
        tiled=tiled,
        reduced=tiled.reduced(factors.scale) if tiled is not None and factors is not None else None,
        tiles=transformed(left, convolution, tiled) if tiled is not None and left is not None else None,
        pieces=made.phases.pieces(left) if made.phases is not None and left is not None else None,
        margins=margins if margins is not None and (made.winograd or made.engine).reads_planes(margins) else None,
        **made._asdict(),
    )


class _Kernels(NamedTuple):
    """What does a convolution's work, each with the same ending."""

    engine: Engine
    winograd: Winograd | None
    again: Strips | None
    phases: Phases | None


def _kernels(convolution: Problem, computed: str, ending: Ending, tiled: Form | None) -> _Kernels:
    after = ending.epilogue
    winograd = again = None
    if tiled is not None:
        winograd = Winograd(convolution, computed, after.limits, after.activation, after.residual_last, tiled)
        again = Strips(convolution, computed, after)
    dense = phases_of(convolution)
    phases = Phases(convolution, dense, computed, after) if dense else None
    return _Kernels(Engine(convolution, computed, after), winograd, again, phases)


def _alike(values: np.ndarray, result: np.ndarray) -> np.ndarray:
    """Copies values of a result's shape to memory of the result's dtype and strides."""
    extents = [(extent - 1) * stride for extent, stride in zip(result.shape, result.strides, strict=True)]
    copy = np.ndarray(result.shape, result.dtype, np.empty(sum(extents) + result.itemsize, np.uint8), 0, result.strides)
    copy[...] = values
    return copy


def kernel_rows(kernel: np.ndarray, facts: ConvolutionFacts, dtype: np.dtype) -> np.ndarray:
    """Gives the kernel as C-contiguous [groups * rows, channels * taps] with taps in reading order."""
    spatial = [str(axis) for axis in range(len(facts.windows))]
    if not facts.in_channels:  # a sum of nothing is the sum over one channel of zeros
        return np.zeros((facts.out_channels, math.prod(window.size for window in facts.windows)), dtype)
    axes = arrange(kernel, facts.kernel, ("g", "o", "i", *spatial))
    backwards = tuple(3 + axis for axis, window in enumerate(facts.windows) if window.reversed)
    if backwards:
        axes = np.flip(axes, backwards)
    return np.ascontiguousarray(axes.reshape(facts.out_channels, -1), dtype)


def image_axes(x: np.ndarray, facts: ConvolutionFacts, convolution: Problem) -> np.ndarray:
    """Gives the image as [batch, channels, depth, height, width], as a view where strides allow it."""
    if not facts.in_channels:
        return np.zeros((convolution.batch, convolution.groups, *convolution.image), x.dtype)
    present = [role for role in convolution.roles if role]
    arranged = arrange(x, facts.image, ("b", "f", *present))
    return arranged.reshape(*arranged.shape[:2], *convolution.image)


def result_roles(convolution: Problem) -> tuple[str, ...]:
    """Lists the roles of a result in the engine's order."""
    return ("b", "g", "f", *(role for role in convolution.roles if role))


def _dense(convolution: Problem) -> tuple[int, ...]:
    """Gives the strides of a dense [batch, group, row, depth, height, width]."""
    return contiguous_strides((convolution.batch, convolution.groups, convolution.rows, *convolution.result))
