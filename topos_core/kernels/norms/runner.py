"""Runs batch norms from bindings to results: layouts, dtypes and known statistics at the edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from topos_core.kernels.folding import stands
from topos_core.kernels.norms.kernels import Vectors, normalise, statistics_and_result
from topos_core.kernels.norms.shape import Extents, dense_extents, gather, gathered_extents, scatter
from topos_core.matching.facts import NormFacts
from topos_core.ops.cast import cast_array
from topos_core.tape.type import numpy_dtype


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs one match.

    Args:
        facts: The match's facts.
        dtype: What the kernels compute in: f64 for f64, else f32.
        extents: Of the dense [outer, channels, inner] that x and the root are, or None where they are copied.
        training: Whether statistics are x's own rather than bindings.
        known: The passes over x where they are known beforehand.
    """

    facts: NormFacts
    dtype: np.dtype
    extents: Extents | None
    training: bool
    known: tuple[Vectors, ...] | None = None

    def run(self, bindings: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray], threads: int) -> None:
        """Runs the match; see `Prepared`."""
        result, x = out["result"], bindings["x"]
        if not x.size:
            for name in out.keys() - {"result"}:  # the mean of nothing, as recorded
                out[name][...] = np.nan
            return
        extents = self.extents
        if extents is None:
            x, extents = gather(x, self.facts), gathered_extents(self.facts)
        x = np.ascontiguousarray(x, self.dtype)
        straight = self.extents is not None and result.flags.c_contiguous and result.dtype == self.dtype
        target = result if straight else np.empty(x.size, self.dtype)
        if self.training:
            scale, shift = self._vector(bindings, "scale"), self._vector(bindings, "shift")
            found = statistics_and_result(x, extents, scale, shift, self.facts.epsilon, target, threads)
            for name, values in zip(("mean", "variance"), found, strict=True):
                if name in out:
                    out[name][...] = cast_array(values, out[name].dtype).reshape(out[name].shape)
        else:
            known = self.known if self.known is not None else inference_passes(bindings, self.facts, self.dtype)
            for vectors in known:
                normalise(x, extents, vectors, target, threads)
                x = target
        if not straight:
            shaped = target.reshape(result.shape) if self.extents is not None else scatter(target, self.facts)
            result[...] = cast_array(shaped, result.dtype).reshape(result.shape)

    def _vector(self, bindings: Mapping[str, np.ndarray], name: str) -> np.ndarray | None:
        return np.ascontiguousarray(bindings[name], self.dtype).reshape(-1) if name in bindings else None


def make_runner(facts: NormFacts, dtype: str, training: bool, known: Mapping[str, np.ndarray] | None) -> Runner:
    """Builds a runner; `known` holds all statistics of an inference whose values never change, else None."""
    running = numpy_dtype("f64" if dtype == "f64" else "f32")
    made = inference_passes(known, facts, running) if known is not None else None
    return Runner(facts, running, dense_extents(facts), training, made)


def inference_passes(bindings: Mapping[str, np.ndarray], facts: NormFacts, dtype: np.dtype) -> tuple[Vectors, ...]:
    """Gives (x - mean) * (scale / sqrt(variance + eps)) + shift; the scale by a pass of its own where no factor stands for both."""
    mean, variance = (bindings[name].astype(np.float64).reshape(-1) for name in ("mean", "variance"))
    shift = bindings["shift"].reshape(-1).astype(dtype) if "shift" in bindings else np.zeros(facts.channels, dtype)
    mean = mean.astype(dtype)
    with np.errstate(all="ignore"):
        root = 1.0 / np.sqrt(variance + facts.epsilon)
        if "scale" not in bindings:
            return (Vectors(mean, root.astype(dtype), shift),)
        scale = bindings["scale"].reshape(-1)
        folded = root * scale.astype(np.float64)
        factor = folded.astype(dtype)
        if stands(folded, factor, lambda: (scale == 0) | (root == 0.0)):
            return (Vectors(mean, factor, shift),)
        return (
            Vectors(mean, root.astype(dtype), np.zeros_like(shift)),
            Vectors(np.zeros_like(mean), scale.astype(dtype), shift),
        )
