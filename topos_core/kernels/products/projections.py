"""Projections of one or two values that several sides of a block read, each computed once.

A side is a projection's result or a part of it: queries, keys and values may be three products or one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from topos_core.kernels.convolution.engine import Epilogue
from topos_core.kernels.layouts import viewed
from topos_core.kernels.products.runner import Runner, make_runner, stage_of
from topos_core.kernels.scratch import Stage
from topos_core.matching.facts import CoreFacts, LayerOf, layer_of
from topos_core.matching.view import View
from topos_core.tape.type import TensorType


@dataclass(frozen=True, slots=True)
class Layer:
    """One linear layer of a block: what it reads by the block's names, and its result's shape up to a reshape."""

    runner: Runner
    x: str
    weight: str
    bias: str | None
    shape: tuple[int, ...]

    def run(self, bindings: Mapping[str, np.ndarray], x: np.ndarray, result: np.ndarray, threads: int) -> None:
        """Computes the layer of `x`; `result` has the recorded type."""
        given = {"x": x, "w": bindings[self.weight]}
        if self.bias is not None:
            given["bias"] = bindings[self.bias]
        self.runner.run(given, {"result": result}, threads)


@dataclass(frozen=True, slots=True)
class Projections:
    """What sides are made of.

    Args:
        layers: Each once.
        sides: By name, which layer, and which part of its result where it is not the whole.
    """

    layers: tuple[Layer, ...]
    sides: Mapping[str, tuple[int, View | None]]

    @property
    def sizes(self) -> list[int]:
        """Counts the elements of every layer's result."""
        return [math.prod(layer.shape) for layer in self.layers]

    def run(
        self, bindings: Mapping[str, np.ndarray], memory: Sequence[np.ndarray], threads: int
    ) -> dict[str, np.ndarray]:
        """Computes every layer into its vector of `memory` and gives the sides, as views of that."""
        for layer, result in zip(self.layers, memory, strict=True):
            layer.run(bindings, bindings[layer.x], result.reshape(layer.shape), threads)
        found = {}
        for name, (place, part) in self.sides.items():
            whole = memory[place]
            found[name] = whole.reshape(self.layers[place].shape) if part is None else viewed(part, whole)
        return found


def make_layer(
    name: str,
    facts: CoreFacts,
    dtype: str,
    x: str,
    bindings: Mapping[str, int],
    constants: Mapping[int, np.ndarray],
    epilogue: Epilogue | None = None,
) -> Layer:
    """Packs what is known of the layer whose weight and bias are bound as `<name>_weight` and `<name>_bias`."""
    weight, bias = f"{name}_weight", f"{name}_bias"
    runner = make_runner(
        facts, dtype, constants.get(bindings[weight]), constants.get(bindings[bias]) if bias in bindings else None,
        epilogue or Epilogue(),
    )  # fmt: skip
    return Layer(runner, x, weight, bias if bias in bindings else None, facts.result.shape)


def make_projections(
    facts: Mapping[str, CoreFacts],
    parts: Mapping[str, View],
    sources: Mapping[str, str],
    dtype: str,
    bindings: Mapping[str, int],
    constants: Mapping[int, np.ndarray],
) -> Projections:
    """Makes one layer for all sides that are one (`matching.facts.layer_of`).

    Args:
        facts: Of each side's projection.
        parts: Of sides that are not the whole of it.
        sources: The binding that each side projects.
        dtype: What is computed in.
    """
    layers: list[Layer] = []
    places: dict[LayerOf, int] = {}
    sides: dict[str, tuple[int, View | None]] = {}
    for name, source in sources.items():
        bound = layer_of(name, source, bindings, facts[name])
        if bound not in places:
            places[bound] = len(layers)
            layers.append(make_layer(name, facts[name], dtype, source, bindings, constants))
        sides[name] = places[bound], parts.get(name)
    return Projections(tuple(layers), sides)


def stages_of(facts: Mapping[str, CoreFacts], layers: Mapping[LayerOf, str], dtype: str) -> tuple[Stage, ...]:
    """Tells what each layer copies and makes elsewhere; `layers` names every distinct one by a side that it makes."""
    return tuple(
        stage_of(facts[name], TensorType(dtype, facts[name].result.shape), layer.source, f"{name}_weight")
        for layer, name in layers.items()
    )
