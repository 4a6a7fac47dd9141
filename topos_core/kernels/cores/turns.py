"""Runs a rotary embedding: pairs of x turned by given cosines and sines, wherever the pairs lie."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from topos_core.cost.memory import contiguous_strides
from topos_core.kernels.known import Known
from topos_core.kernels.launch import Scratch, address_of, aligned, launch, spaced, template
from topos_core.kernels.library import kernel
from topos_core.kernels.rows import Places, copied_rows, places_of, scatter
from topos_core.kernels.scratch import ReadRows, Stage, computed
from topos_core.kernels.vocabulary.blocks import TURN
from topos_core.matching.facts import CoreFacts
from topos_core.ops.cast import cast_array
from topos_core.tape.type import TensorType, numpy_dtype

LABELS: Final = ("p", "h")
"""Which of a pair, and which pair of a row."""
ITEM_ELEMENTS: Final = 8192


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs one match.

    Args:
        facts: Labels k (rows), p (two), h (pairs).
        backwards: Whether pairs are turned by minus the angle.
        dtype: What the kernels compute in: f64 for f64, else f32.
        known: By strides, where elements lie.
    """

    facts: CoreFacts
    backwards: bool
    dtype: np.dtype
    known: Known[tuple[Any, ...], dict[str, Places | None]]

    def run(self, bindings: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray], threads: int) -> None:
        """Runs the match; see `Prepared`."""
        result = out["result"]
        if not result.size:
            return
        arrays = {name: array.astype(self.dtype, copy=False) for name, array in bindings.items()}
        target = result if result.dtype == self.dtype else np.empty(result.shape, self.dtype)
        rows, pairs = (self.facts.extents[label] for label in ("k", "h"))
        chunk = max(1, min(ITEM_ELEMENTS // pairs, -(-rows // (4 * threads))))
        items = -(-rows // chunk)
        places = self._places(arrays, target)
        dense = None
        if places["out"] is None:  # rows that strides cannot say are written elsewhere first
            dense = np.empty((rows, 2, pairs), self.dtype)
        arrays["out"] = target if dense is None else dense
        found: dict[str, Places] = {}
        for name, place in places.items():
            if place is None:
                place = Places(np.arange(rows, dtype=np.int64) * (2 * pairs), (pairs, 1))
                if name != "out":
                    arrays[name] = copied_rows(arrays[name], self.facts.layouts[name], self.facts, LABELS, "k")
            if self.backwards:  # by minus the angle is forwards from the second of each pair to the first
                other, step = place.steps
                place = Places(place.at + other, (-other, step))
            found[name] = place
        threads = min(threads, items)
        slot = spaced(self._slot_bytes(), threads)
        scratch = Scratch(slot * threads)
        words = {
            "items": items, "rows": rows, "count": pairs, "chunk": chunk, "scratch": scratch.address,
            "slot_bytes": slot,
        }  # fmt: skip
        for name, (at, (other, step)) in found.items():
            words |= {name: address_of(arrays[name]), f"{name}_at": address_of(at)}
            words |= {f"{name}_other": other, f"{name}_step": step}
        turn = kernel("turn", "f64" if self.dtype == np.float64 else "f32", _kind(found, pairs))
        launch(turn, template(TURN, words), threads)
        if dense is not None:
            target = scatter(dense, self.facts.result, self.facts, LABELS, "k")
        if target is not result:
            result[...] = cast_array(target, result.dtype).reshape(result.shape)

    def _slot_bytes(self) -> int:
        return aligned(2 * self.facts.extents["h"] * self.dtype.itemsize)

    def _places(self, arrays: Mapping[str, np.ndarray], target: np.ndarray) -> dict[str, Places | None]:
        """Gives where each array's elements lie, a dictionary of the caller's own; None where strides cannot say it."""
        key = (target.strides, *(array.strides for array in arrays.values()))
        found = self.known.get(key)
        if found is None:
            layouts = {**self.facts.layouts, "out": self.facts.result}
            found = {
                name: places_of(array, layouts[name], self.facts, LABELS, "k")
                for name, array in (*arrays.items(), ("out", target))
            }
            self.known.keep(key, found)
        return dict(found)


def make_runner(facts: CoreFacts, dtype: str) -> Runner:
    """Reads the dtype; the kernel depends on strides and is compiled by the first run."""
    return Runner(
        facts, facts.options.get("direction") == "backwards", numpy_dtype("f64" if dtype == "f64" else "f32"), Known()
    )


def stage_of(facts: CoreFacts, root: TensorType) -> Stage:
    """Tells what a run copies and makes elsewhere: values whose pairs strides cannot say."""
    size, running = math.prod(facts.extents[label] for label in ("k", *LABELS)), computed(root.dtype)
    reads = tuple((name, ReadRows(running, layout, LABELS, size, False)) for name, layout in facts.layouts.items())
    target = ReadRows(running, facts.result, LABELS, size, False)
    kind = TensorType(running, root.shape)
    elsewhere = target.copied(kind, contiguous_strides(root.shape), ()).kept
    other = root.dtype != running
    return Stage(reads, elsewhere + (kind.bytes if other else 0), root.bytes if other else 0)


def _kind(places: Mapping[str, Places], pairs: int) -> str:
    """Names the kernel for values that lie so; one pair has no next one, so that its step says nothing."""
    if pairs == 1 or all(place.steps[1] == 1 for place in places.values()):
        return "rows"
    if all(places[name].steps == (1, 2) for name in ("x", "out")):
        for steps, kind in (((1, 2), "pairs2"), ((0, 1), "pairs1")):
            if all(places[name].steps == steps for name in ("cos", "sin")):
                return kind
    return "any"
