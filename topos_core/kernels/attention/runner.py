"""Runs attention: keys and values laid out once per batch, then blocks of query rows.

Whatever depends on threads and strides alone is worked out once and kept as a `Cut`.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from topos_core.kernels.attention.offering import FEW_QUERIES, LABELS
from topos_core.kernels.convolution.tables import width_table
from topos_core.kernels.host import host
from topos_core.kernels.known import Known
from topos_core.kernels.launch import Scratch, address_of, aligned, carved, launch, spaced, template
from topos_core.kernels.library import Kernel, kernel
from topos_core.kernels.rows import Rows, copied_rows, dense_rows, rows_of, scatter
from topos_core.kernels.tiles import tiles
from topos_core.kernels.vocabulary.blocks import ATTENTION, KEYS, PAGE, TILE
from topos_core.matching.facts import CoreFacts
from topos_core.ops.cast import cast_array
from topos_core.tape.type import numpy_dtype

SCORES_BYTES: Final = 512 << 10
"""Of a block's scores: they stay in a core's second-level cache."""
BLOCK_ROWS: Final = 36
THREAD_FLOPS: Final = 400_000

_K: Final = {name: place for place, name in enumerate(KEYS)}
_A: Final = {name: place for place, name in enumerate(ATTENTION)}


class Cut(NamedTuple):
    """One way to do the work.

    Args:
        threads: Workers that may take part.
        copied: Bindings that are copied to dense rows first.
        result: Whether the root is written in place.
        keys, attention: The kernels' words, addresses of memory missing.
        packed: Elements of the keys in panels, and of the values in whole registers; 0 where they stay in place.
        checks: Items of the first kernel.
        keep: What the words point at.
    """

    threads: int
    copied: frozenset[str]
    result: bool
    keys: array[int]
    attention: array[int]
    packed: tuple[int, int]
    checks: int
    keep: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs one match.

    Args:
        facts: Labels b, i (queries), j (keys), d (width of keys), e (width of values).
        dtype: What the kernels compute in: f64 for f64, else f32.
        pack, attend: The kernels.
        causal: Which binding is a constant triangle whose hidden scores are -inf, or None.
        cuts: By threads and strides.
    """

    facts: CoreFacts
    dtype: np.dtype
    pack: Kernel
    attend: Kernel
    causal: str | None
    cuts: Known[tuple[Any, ...], Cut]

    def run(self, bindings: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray], threads: int) -> None:
        """Runs the match; see `Prepared`."""
        result = out["result"]
        if not result.size:
            return
        arrays = {name: self._typed(name, bindings[name]) for name in LABELS if name in bindings}
        beside = self._are_laid_out(arrays["v"])
        key = (threads, result.strides, beside, *(values.strides for values in arrays.values()))
        cut = self.cuts.get(key)
        if cut is None:
            cut = self.cuts.keep(key, self._cut(threads, arrays, result, beside))
        for name in cut.copied:
            arrays[name] = copied_rows(arrays[name], self.facts.layouts[name], self.facts, LABELS[name])
        packed, checks = carved(self.dtype, cut.packed), np.empty(cut.checks)
        block = array("q", cut.keys)
        block[_K["k"]], block[_K["v"]] = address_of(arrays["k"]), address_of(arrays["v"])
        block[_K["packed"]], block[_K["beside"]] = (address_of(each) for each in packed)
        block[_K["checks"]] = address_of(checks)
        launch(self.pack, block, cut.threads)
        causal = self.causal if self.causal is not None and self._leaves_out(arrays, checks) else None
        target = result if cut.result else np.empty(self._result_shape(), self.dtype)
        self._attend(cut, arrays, packed, target, causal)
        if target is not result:
            shaped = scatter(target, self.facts.result, self.facts, ("i", "e"))
            result[...] = cast_array(shaped.reshape(result.shape), result.dtype)

    def _attend(
        self,
        cut: Cut,
        arrays: Mapping[str, np.ndarray],
        packed: list[np.ndarray],
        target: np.ndarray,
        causal: str | None,
    ) -> None:
        block = array("q", cut.attention)
        scratch = Scratch(block[_A["slot_bytes"]] * cut.threads)
        keys, values = packed
        given = {"q": arrays["q"], "packed": keys, "v": values if values.size else arrays["v"], "out": target}
        for place, operand in given.items():
            block[_A[place]] = address_of(operand)
        for name, place in self._masks():
            block[_A[place]] = 0 if name == causal else address_of(arrays[name])
        block[_A["causal"]] = int(causal is not None)
        block[_A["scratch"]] = scratch.address
        launch(self.attend, block, cut.threads)

    def _typed(self, name: str, values: np.ndarray) -> np.ndarray:
        if values.dtype.kind == "b":
            return values.view(np.uint8)
        return values.astype(self.dtype, copy=False)

    def _masks(self) -> list[tuple[str, str]]:
        """Lists (binding, word): a mask that is added, flags that keep or hide, further flags that keep, what is added and
        multiplied later."""
        first = "mask" if self.facts.options["mask"] == "added" else "keep"
        pairs = (("mask", first), ("keep", "also"), ("bias", "bias"), ("drop", "drop"))
        return [(name, word) for name, word in pairs if name in self.facts.layouts]

    def _leaves_out(self, arrays: Mapping[str, np.ndarray], checks: np.ndarray) -> bool:
        """Tells whether hidden scores can be left out: 0 times a value or a factor, or -inf plus a score, that is finite."""
        if np.isnan(checks).any():
            return False
        finite = ["q"] if self.facts.options["mask"] == "added" else []
        finite += [name for name in ("bias", "drop") if name in arrays]
        return all(bool(np.isfinite(arrays[name]).all()) for name in finite)

    def _are_laid_out(self, values: np.ndarray) -> bool:
        """Tells whether values are laid out: tiles read whole registers, and what lies behind the last row may not be readable."""
        if self.facts.extents["i"] >= FEW_QUERIES:
            return True
        over = self._overhang() * values.itemsize
        if not over:
            return False
        last = sum((extent - 1) * stride for extent, stride in zip(values.shape, values.strides, strict=True))
        end = address_of(values) + last + values.itemsize
        return values.size == 0 or min(values.strides) < 0 or (end - 1) // PAGE != (end - 1 + over) // PAGE

    def _overhang(self) -> int:
        """Counts the elements of a row's last register that are behind the row."""
        return -self.facts.extents["e"] % self._lanes()

    def _cut(self, threads: int, arrays: Mapping[str, np.ndarray], result: np.ndarray, beside: bool) -> Cut:
        extents, slot = self.facts.extents, self._slot()
        batch = extents["b"]
        flops = 2 * batch * extents["i"] * extents["j"] * (extents["d"] + extents["e"])
        threads = max(1, min(threads, flops // THREAD_FLOPS))
        slot["slot_bytes"] = spaced(slot["slot_bytes"], threads)
        rows: dict[str, Rows] = {}
        copied = set()
        for name, values in arrays.items():
            found = rows_of(values, self.facts.layouts[name], self.facts, LABELS[name])
            if found is None:
                copied.add(name)
                found = dense_rows(batch, *(extents[label] for label in LABELS[name]))
            rows[name] = found
        out = None
        if result.dtype == self.dtype:
            out = rows_of(result, self.facts.result, self.facts, ("i", "e"))
        in_place = out is not None
        out = out if out is not None else dense_rows(batch, extents["i"], extents["e"])
        # keys and values that several batches share are laid out once
        pairs, which = np.unique(np.stack([rows["k"].at, rows["v"].at]), axis=1, return_inverse=True)
        k_at, v_at = (np.ascontiguousarray(places) for places in pairs)
        width, panels = self._panels()
        step = panels * extents["d"] * width
        beside = beside or ("v" in copied and self._overhang() > 0)
        pitch = extents["e"] + self._overhang() if beside else 0
        packed_at, beside_at = (
            np.ascontiguousarray(which.reshape(-1).astype(np.int64) * each) for each in (step, extents["j"] * pitch)
        )
        v_read = Rows(beside_at, pitch) if beside else rows["v"]
        blocks = -(-extents["i"] // slot["block_rows"])
        constants = self.facts.constants
        chosen = {"fill": 0.0, "rescale": 1.0, "weight": 1.0, **constants}
        numbers = np.array([chosen[name] for name in ("scale", "fill", "rescale", "weight")], self.dtype)
        key_offsets = np.arange(extents["d"], dtype=np.int64) * width
        value_offsets = np.arange(extents["j"], dtype=np.int64) * v_read.row
        table = width_table(self._name(), "middle")
        keys = template(KEYS, {
            "items": len(k_at) * panels, "keys": extents["j"], "width": extents["d"], "value_width": extents["e"],
            "panel_keys": width, "panels": panels, "k_at": address_of(k_at), "k_row": rows["k"].row,
            "v_at": address_of(v_at), "v_row": rows["v"].row, "value_pitch": pitch,
        })  # fmt: skip
        masks: dict[str, int] = {}
        for name, word in self._masks():
            masks |= {f"{word}_at": address_of(rows[name].at), f"{word}_row": rows[name].row}
        attention = template(ATTENTION, {
            **slot, **masks, "items": batch * blocks, "blocks": blocks, "queries": extents["i"], "keys": extents["j"],
            "width": extents["d"], "values": extents["e"], "panel_keys": width, "q_at": address_of(rows["q"].at),
            "q_row": rows["q"].row, "packed_at": address_of(packed_at), "v_at": address_of(v_read.at),
            "out_at": address_of(out.at), "out_row": out.row,
            "fill_scaled": int(self.facts.options["fill_scaled"] == "yes"),
            "keep_value": 0 if self.facts.options["mask"] == "hides" else 1, "numbers": address_of(numbers),
            "key_offsets": address_of(key_offsets), "value_offsets": address_of(value_offsets),
            "tiles": address_of(table),
        })  # fmt: skip
        return Cut(
            threads=threads, copied=frozenset(copied), result=in_place, keys=keys,
            attention=attention, packed=(len(k_at) * step, len(k_at) * extents["j"] * pitch), checks=len(k_at) * panels,
            keep=(rows, out, k_at, v_at, packed_at, v_read, numbers, key_offsets, value_offsets, table),
        )  # fmt: skip

    def _result_shape(self) -> tuple[int, int, int]:
        return self.facts.extents["b"], self.facts.extents["i"], self.facts.extents["e"]

    def _panels(self) -> tuple[int, int]:
        """Gives how many keys a panel holds, and how many panels there are."""
        registers = -(-self.facts.extents["j"] // self._lanes())
        vectors = -(-registers // -(-registers // tiles(host()).middle_vectors))
        return vectors * self._lanes(), -(-registers // vectors)

    def _slot(self) -> dict[str, int]:
        """Lays out a worker's memory: a tile's block, sums of rows, a tile's sums, scores."""
        size, height, queries = self.dtype.itemsize, tiles(host()).middle, self.facts.extents["i"]
        width, panels = self._panels()
        pitch = panels * width + self._lanes()  # off the power of two, so that rows do not meet in one cache set
        most = max(height, min(BLOCK_ROWS, SCORES_BYTES // (pitch * size)))
        rows = -(-queries // -(-queries // most))  # blocks of one size
        rows += -rows % height
        totals_at = aligned(8 * len(TILE))
        sums_at = totals_at + aligned(8 * rows)
        scores_at = sums_at + aligned(height * tiles(host()).middle_vectors * self._lanes() * size)
        slot = aligned(scores_at + rows * pitch * size)
        return {
            "block_rows": rows, "pitch": pitch, "totals_at": totals_at, "sums_at": sums_at, "scores_at": scores_at,
            "slot_bytes": slot,
        }  # fmt: skip

    def _name(self) -> str:
        return "f64" if self.dtype == np.float64 else "f32"

    def _lanes(self) -> int:
        return host().lanes(self._name())


def make_runner(facts: CoreFacts, dtype: str, mask: np.ndarray | None = None, keep: np.ndarray | None = None) -> Runner:
    """Compiles the kernels; `mask` and `keep` are the values of bindings that are known before a run."""
    computed = "f64" if dtype == "f64" else "f32"
    return Runner(
        facts=facts,
        dtype=numpy_dtype(computed),
        pack=kernel("pack_keys", computed),
        attend=kernel("attention", computed),
        causal=causal_binding(facts, mask, keep),
        cuts=Known(),
    )


def causal_binding(facts: CoreFacts, mask: np.ndarray | None, keep: np.ndarray | None) -> str | None:
    """Names the binding that hides later keys with -inf: what it hides has weight 0 whatever the scores are.

    A small triangle is a constant of the program and one of its facts; a large one is a parameter, whose values count
    only once they are bound.
    """
    if facts.options["fill_scaled"] == "yes" and facts.constants["scale"] <= 0:
        return None
    if "weight" in facts.constants:
        return None
    name = "keep" if "keep" in facts.layouts else "mask"
    kind = "keeps" if name == "keep" else facts.options["mask"]
    known = keep if name == "keep" else mask
    if facts.options["causal"] != "yes" and not facts.is_causal(name, known, kind):
        return None
    if kind != "added":
        return name if facts.constants.get("fill") == -np.inf else None
    hidden = None if known is None else known[known != 0]
    return name if hidden is not None and bool(np.isneginf(hidden).all()) else None
