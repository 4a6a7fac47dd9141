"""Runs gated layers: the projections of x, their gated product where the gate lies, the projection back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from topos_core.kernels.launch import address_of, carved, launch, template
from topos_core.kernels.library import Kernel, kernel
from topos_core.kernels.products.projections import Layer, Projections
from topos_core.kernels.rows import runs_of
from topos_core.kernels.vocabulary.blocks import GATED
from topos_core.ops.cast import cast_array
from topos_core.tape.type import numpy_dtype

ITEM_ELEMENTS: Final = 8192


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs one match.

    Args:
        projections: Of gate and up.
        dtype: What is computed in.
        size: Elements of the gated product.
        kernel: Gates.
        down: The projection back, or None.
        shape: Of the gated product, as the projection back reads it.
        pitch: How many neighbours in gate and up are neighbours in their product too.
        in_place: Whether the gate is the whole result of the last projection, which up has no part in: the product then takes
            its place.
    """

    projections: Projections
    dtype: np.dtype
    size: int
    kernel: Kernel
    down: Layer | None
    shape: tuple[int, ...]
    pitch: int
    in_place: bool

    def run(self, bindings: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray], threads: int) -> None:
        """Runs the match; see `Prepared`."""
        result = out["result"]
        if not result.size:
            return
        memory = carved(self.dtype, self._sizes())
        straight = self.down is None and result.dtype == self.dtype and result.flags.c_contiguous
        inner = result.reshape(-1) if straight else memory[-1]
        if self.size:
            sides = self.projections.run(bindings, memory[: len(self.projections.layers)], threads)
            self._gate(sides["gate"], sides["up"], inner, threads)
        if self.down is not None:
            self.down.run(bindings, inner.reshape(self.shape), result, threads)
        elif not straight:
            result[...] = cast_array(inner, result.dtype).reshape(result.shape)

    def _gate(self, gate: np.ndarray, up: np.ndarray, inner: np.ndarray, threads: int) -> None:
        places: list[tuple[np.ndarray, np.ndarray]] = []
        for side in (gate, up):
            at = runs_of(side, self.pitch)
            if at is None:  # cut so that no neighbours stay neighbours
                side = np.ascontiguousarray(side)
                at = runs_of(side.reshape(-1), self.pitch)
            assert at is not None
            places.append((side, at))
        (gate, gate_at), (up, up_at) = places
        rows = self.size // self.pitch
        chunk = max(1, min(ITEM_ELEMENTS // self.pitch, -(-rows // (4 * threads))))
        items = -(-rows // chunk)
        words = {
            "items": items, "rows": rows, "count": self.pitch, "chunk": chunk, "gate": address_of(gate),
            "gate_at": address_of(gate_at), "up": address_of(up), "up_at": address_of(up_at), "out": address_of(inner),
        }  # fmt: skip
        launch(self.kernel, template(GATED, words), min(threads, items))

    def _sizes(self) -> list[int]:
        return self.projections.sizes if self.in_place else [*self.projections.sizes, self.size]


def make_runner(
    projections: Projections, size: int, dtype: str, activation: str, down: Layer | None, shape: Sequence[int]
) -> Runner:
    """Compiles the gate's kernel; the gate should be the last projection."""
    place, part = projections.sides["gate"]
    runs = []
    for layer, cut in projections.sides.values():
        extents = projections.layers[layer].shape if cut is None else [digit.extent for digit in cut.digits]
        runs.append(extents[-1] if extents else 1)
    in_place = part is None and place == len(projections.layers) - 1 and projections.sides["up"][0] != place
    gate = kernel("gated", dtype, activation)
    return Runner(projections, numpy_dtype(dtype), size, gate, down, tuple(shape), math.gcd(*runs), in_place)
