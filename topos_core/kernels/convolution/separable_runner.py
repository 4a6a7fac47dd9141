"""A depthwise and a pointwise convolution from bindings to result: layouts and dtypes at the edges, known weights packed.

The pointwise convolution may count positions in its own way (batch and width in one axis, say); what it writes is looked at
through the depthwise result's axes, which both number alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from topos_core.kernels.convolution.activations import Ending
from topos_core.kernels.convolution.engine import Operands
from topos_core.kernels.convolution.factors import Factors, fold, stages
from topos_core.kernels.convolution.geometry import SPATIAL, pair
from topos_core.kernels.convolution.runner import image_axes, kernel_rows
from topos_core.kernels.convolution.separable import Separable
from topos_core.kernels.convolution.stepwise import finish
from topos_core.kernels.known import Known
from topos_core.kernels.launch import address_of
from topos_core.kernels.layouts import arrange, restore
from topos_core.matching.facts import DepthwisePointwiseFacts, EpilogueFacts
from topos_core.ops.cast import cast_array
from topos_core.tape.type import numpy_dtype

SIDES = ("depthwise", "pointwise")


class Weights(NamedTuple):
    """One convolution's kernel as dense rows, and what follows its sums; `stages` are its steps where there are some."""

    rows: np.ndarray
    factors: Factors
    stages: np.ndarray | None


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs one match.

    Args:
        facts: Of both convolutions.
        dtype: The recorded dtype; f16 and bf16 are computed in f32 and rounded once.
        engine: Does the work in f32 or f64.
        known: By side, what is known beforehand.
        images, results: By strides of what the engine reads or writes in place, its own strides.
        engines: The engines that take steps on the depthwise sums, leave the pointwise ones alone, or both; once a run needed them.
    """

    facts: DepthwisePointwiseFacts
    dtype: np.dtype
    engine: Separable
    known: Mapping[str, Weights]
    images: Known[tuple[int, ...], tuple[int, ...]]
    results: Known[tuple[int, ...], tuple[int, ...]]
    engines: Known[tuple[bool, bool], Separable] = field(default_factory=Known)

    def run(self, bindings: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray], threads: int) -> None:
        """Runs the match; see `Prepared`."""
        result, dtype = out["result"], self.engine.dtype
        if not result.size:
            return
        taps, mixing = (self.known.get(side) or self._weights(side, bindings) for side in SIDES)
        x, image = self._image(bindings["x"])
        residual = bindings.get("pointwise_residual")
        strides = self._result(result)
        target = result
        if strides is None:
            target = np.empty((self.engine.problem.batch, self.engine.problem.rows, *self.engine.problem.result), dtype)
            strides = _steps(target)
            if residual is not None:
                residual = np.ascontiguousarray(self._placed(residual), dtype)
        elif residual is not None and (residual.strides != result.strides or residual.dtype != dtype):
            alike = np.empty_like(result)  # its strides are the root's, for a root that fills its memory
            alike[...] = residual
            residual = alike
        batch, rows, *spatial = strides
        steps = mixing.factors.steps
        added = residual if steps is None else None
        operands = Operands(
            address_of(x), address_of(mixing.rows), address_of(mixing.factors.scale), address_of(mixing.factors.shift),
            address_of(added) if added is not None else 0, address_of(target),
            address_of(taps.rows), address_of(taps.factors.scale), address_of(taps.factors.shift),
            *((address_of(taps.stages), taps.stages.shape[1]) if taps.stages is not None else (0, 0)),
        )  # fmt: skip
        engine = self._engine(taps.stages is not None, steps is not None)
        engine.run(image, (batch, 0, rows, *spatial), operands, threads)
        if steps is not None:
            seen = [
                self._placed(a) if target is result else a.reshape(target.shape)
                for a in (target, residual)
                if a is not None
            ]
            finish(
                seen[0][:, None],
                seen[1][:, None] if residual is not None else None,
                steps,
                _ending(self.facts.pointwise),
            )
        if target is not result:
            self._deliver(target, result)

    def _engine(self, before: bool, after: bool) -> Separable:
        """Gives the engine that takes steps on the depthwise sums, or leaves the pointwise sums alone."""
        if not before and not after:
            return self.engine
        return self.engines.get((before, after)) or self.engines.keep(
            (before, after), _make_engine(self.facts, self.engine.name, before, after)
        )

    def _image(self, x: np.ndarray) -> tuple[np.ndarray, tuple[int, ...]]:
        """Gives the image and its strides in elements: batch, channel, depth, height, width."""
        known = self.images.get(x.strides)
        if known is not None and x.dtype == self.engine.dtype:
            return x, known
        axes = image_axes(x, self.facts.depthwise.convolution, self.engine.source)
        axes = axes.astype(self.engine.dtype, copy=False)
        if any(stride % axes.itemsize for stride in axes.strides):
            axes = np.ascontiguousarray(axes)
        strides = _steps(axes)
        if x.size and address_of(axes) == address_of(x):
            self.images.keep(x.strides, strides)
        return axes, strides

    def _result(self, result: np.ndarray) -> tuple[int, ...] | None:
        """Gives the strides by which the engine writes a root, or None where it needs a temporary."""
        known = self.results.get(result.strides)
        if known is not None:
            return known
        if result.dtype != self.engine.dtype or np.empty_like(result).strides != result.strides:
            return None
        placed = self._placed(result)
        if address_of(placed) != address_of(result):
            return None
        return self.results.keep(result.strides, _steps(placed))

    def _weights(self, side: str, bindings: Mapping[str, np.ndarray]) -> Weights:
        own = {name.removeprefix(f"{side}_"): array for name, array in bindings.items() if name.startswith(f"{side}_")}
        return weights_of(getattr(self.facts, side), own, self.engine.dtype)

    def _placed(self, array: np.ndarray) -> np.ndarray:
        """Looks at a root as [batch, channel, depth, height, width]; a copy where strides cannot say it."""
        image, before = self.facts.pointwise.convolution.image, self.facts.depthwise.result
        counted = tuple(role for role in image.roles if role != "f")
        arranged = arrange(array, self.facts.pointwise.result, (*counted, "g", "f"))
        axes = [axis for axis, role in enumerate(before.roles) if role not in "gf"]
        shaped = arranged.reshape([before.shape[axis] for axis in axes] + [arranged.shape[-1]])
        order = [axes.index(axis) for role in ("b", *SPATIAL) for axis in self._ranked(role)]
        moved = shaped.transpose([len(axes), *order])
        of = self.engine.problem
        return moved.reshape(of.rows, of.batch, *of.result).swapaxes(0, 1)

    def _deliver(self, placed: np.ndarray, result: np.ndarray) -> None:
        """Brings [batch, channel, depth, height, width] into the root's layout and dtype; undoes `_placed`."""
        image, before = self.facts.pointwise.convolution.image, self.facts.depthwise.result
        axes = [axis for axis, role in enumerate(before.roles) if role not in "gf"]
        order = [axis for role in ("b", *SPATIAL) for axis in self._ranked(role)]
        shaped = placed.swapaxes(0, 1).reshape(placed.shape[1], *(before.shape[axis] for axis in order))
        moved = shaped.transpose([1 + order.index(axis) for axis in axes] + [0])
        counted = {role: extent for role, extent in zip(image.roles, image.shape, strict=True) if role != "f"}
        arranged = moved.reshape(*counted.values(), 1, moved.shape[-1])
        final = restore(arranged, self.facts.pointwise.result, (*counted, "g", "f"))
        result[...] = cast_array(final, result.dtype).reshape(result.shape)

    def _ranked(self, role: str) -> list[int]:
        """Lists the axes of one number of the depthwise result, greatest first."""
        before = self.facts.depthwise.result
        return sorted((a for a, r in enumerate(before.roles) if r == role), key=lambda axis: before.rank[axis])


def weights_of(facts: EpilogueFacts, bindings: Mapping[str, np.ndarray], dtype: np.dtype) -> Weights:
    """Packs one convolution's kernel and folds its vectors."""
    factors = fold(bindings, facts, dtype)
    rows = kernel_rows(bindings["kernel"], facts.convolution, dtype)
    return Weights(rows, factors, None if factors.steps is None else stages(factors.steps, len(rows), dtype))


def make_runner(
    facts: DepthwisePointwiseFacts, dtype: str, bindings: Mapping[str, int], constants: Mapping[int, np.ndarray]
) -> Runner:
    """Builds the engine and packs a side of which every binding but the residual is known."""
    computed = "f64" if dtype == "f64" else "f32"
    engine = _make_engine(facts, computed, False, False)
    packed = {}
    for side in SIDES:
        own = {k.removeprefix(f"{side}_"): value for k, value in bindings.items() if k.startswith(f"{side}_")}
        own.pop("residual", None)
        if set(own.values()) <= constants.keys():
            known = {name: constants[value] for name, value in own.items()}
            packed[side] = weights_of(getattr(facts, side), known, numpy_dtype(computed))
    return Runner(facts, numpy_dtype(dtype), engine, packed, Known(), Known())


def _make_engine(facts: DepthwisePointwiseFacts, computed: str, before: bool, after: bool) -> Separable:
    """Makes the engine that takes steps on the depthwise sums (`before`), and leaves the pointwise sums alone (`after`)."""
    first, second = pair(facts)
    ending = Ending() if after else _ending(facts.pointwise)
    return Separable(first, second, computed, _ending(facts.depthwise).epilogue, ending.epilogue, steps=before)


def _ending(facts: EpilogueFacts) -> Ending:
    return Ending(facts.activation, facts.residual, facts.residual_last)


def _steps(array: np.ndarray) -> tuple[int, ...]:
    return tuple(stride // array.itemsize for stride in array.strides)
