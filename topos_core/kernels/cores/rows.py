"""Runs softmax and the norms of single examples: along rows, along columns, or along a copy that has rows."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from topos_core.kernels.cores.shape import Extents, dense_extents, scattered, vector_of
from topos_core.kernels.known import Known
from topos_core.kernels.launch import Scratch, address_of, aligned, launch, spaced, streamed, template
from topos_core.kernels.library import Kernel, kernel
from topos_core.kernels.scratch import Read, Stage, computed, moved_result
from topos_core.kernels.vocabulary.blocks import PAGE, ROWS
from topos_core.matching.facts import CoreFacts
from topos_core.ops.cast import cast_array
from topos_core.tape.type import TensorType, numpy_dtype

NARROW: Final = 8
"""Columns of fewer neighbours are copied to rows: registers would stay empty."""
COLUMNS: Final = 256
"""Neighbouring columns per item: their maxima and sums stay in the first-level cache."""
SCRATCH_ROWS: Final = 5
"""Rows of so many columns that a kernel along columns keeps."""
ITEM_BYTES: Final = 256 << 10
ROW_BYTES: Final = 16 << 10
"""Of a row that may wait in a worker's scratch, so that its result is stored once."""
BEYOND: Final = 7 << 10
"""How many bytes early rows are asked for, besides those that a kernel has read already. Layer norm of 4096x1024 on a Zen 5: 0.60 ms
at 0, 0.52 at 4 KB and more. Whole pages are no good where the request is not for a row that is two away (0.47 and 0.42), nor
is half a page (`launch.AHEAD`)."""
LEAD_BYTES: Final = 128 << 10
"""Of a row, up to which it is asked for whole rows early: farther away it would be gone from the second-level cache again."""
THREAD_BYTES: Final = 64 << 10
"""Of x, below which another thread costs more than it does."""

_R: Final = {name: place for place, name in enumerate(ROWS)}


class Cut(NamedTuple):
    """One way to do the work: the block's words, addresses missing, and bytes of scratch."""

    block: array[int]
    scratch_bytes: int


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs one match.

    Args:
        facts: The match's facts.
        dtype: What the kernels compute in: f64 for f64, else f32.
        kept, reduced: Labels of the core's axes.
        extents: Of x as [outer, length, inner]; with `copied` of the copy that has rows.
        copied: Whether x is copied to rows first.
        read: Reads x, or what is added to it, densely in the kernel's order.
        kernel: Works on that.
        vectors: Bindings along the reduced labels: scale, shift.
        words: What the kernel's block holds besides.
        epsilon: f64[1].
        known: The vectors that are known before a run, laid out.
        residual: The binding that is added to x first, or None; the sum is then a named result.
        lead: How many rows behind the one that it stores the kernel reads next.
        cuts: How the work is cut, by threads.
    """

    facts: CoreFacts
    dtype: np.dtype
    kept: Sequence[str]
    reduced: Sequence[str]
    extents: Extents
    copied: bool
    read: Read
    kernel: Kernel
    vectors: Mapping[str, Sequence[str]]
    words: Mapping[str, int]
    epsilon: np.ndarray
    known: Mapping[str, np.ndarray]
    residual: str | None = None
    lead: int = 1
    cuts: Known[int, Cut] = field(default_factory=Known)

    def run(self, bindings: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray], threads: int) -> None:
        """Runs the match; see `Prepared`."""
        result, x = out["result"], bindings["x"]
        if not result.size:
            return
        x = self.read.array(x)
        straight = not self.copied and result.flags.c_contiguous and result.dtype == self.dtype
        target = result if straight else np.empty(x.size, self.dtype)
        more: dict[str, np.ndarray] = {}
        if self.residual is not None:
            total = out["sum"]
            fits = straight and total.flags.c_contiguous and total.dtype == self.dtype
            more = {
                "residual": self.read.array(bindings[self.residual]),
                "sum": total if fits else np.empty(x.size, self.dtype),
            }
            if not fits:  # the kernel's own stands in the order of rows
                with np.errstate(all="ignore"):
                    np.add(bindings["x"], bindings[self.residual], out=total)
        vectors = {**self.known}
        for name, labels in self.vectors.items():
            if name in bindings and name not in vectors:
                vectors[name] = vector_of(bindings[name], self.facts, name, labels, self.dtype)
        if "shift" in vectors and "scale" not in vectors:
            vectors["scale"] = np.ones_like(vectors["shift"])
        self._launch(x, target, {**vectors, **more}, threads if x.nbytes > THREAD_BYTES else 1)
        if not straight:
            labels = (*self.kept, *self.reduced)
            shaped = scattered(target, self.facts, labels) if self.copied else target
            result[...] = cast_array(shaped.reshape(result.shape), result.dtype)

    def _launch(self, x: np.ndarray, target: np.ndarray, vectors: Mapping[str, np.ndarray], threads: int) -> None:
        cut = self.cuts.get(threads) or self.cuts.keep(threads, self._cut(threads))
        scratch = Scratch(cut.scratch_bytes)
        block = array("q", cut.block)
        block[_R["x"]], block[_R["out"]], block[_R["scratch"]] = address_of(x), address_of(target), scratch.address
        for name, values in vectors.items():
            block[_R[name]] = address_of(values)
        launch(self.kernel, block, threads)

    def _cut(self, threads: int) -> Cut:
        outer, count, inner = self.extents
        size = self.dtype.itemsize
        slot = spaced(self._slot_bytes(), threads)
        chunk = COLUMNS if inner > 1 else max(1, min(-(-outer // (4 * threads)), ITEM_BYTES // (count * size) or 1))
        items = outer * -(-inner // chunk) if inner > 1 else -(-outer // chunk)
        words = {
            "items": items, "outer": outer, "count": count, "inner": inner, "chunk": chunk,
            "epsilon": address_of(self.epsilon), "slot_bytes": slot, "row_slot": self._row_slot(),
            "streamed": streamed(outer * count * inner * size, self._ahead()), **self.words,
        }  # fmt: skip
        return Cut(template(ROWS, words), slot * threads)

    def _ahead(self) -> int:
        """Tells how early kernels ask for x: what they read behind the row that they store, and `BEYOND`."""
        if self.extents.inner > 1:
            return COLUMNS * self.dtype.itemsize
        row = self.extents.length * self.dtype.itemsize
        return (self.lead * row if row <= LEAD_BYTES else 0) + BEYOND

    def _row_slot(self) -> int:
        """Counts bytes from one row in scratch to the other; 0 where rows are too long for it.

        Half pages apart, so that loads of one never wait for stores to the other in another page.
        """
        size = aligned(64 + self.extents.length * self.dtype.itemsize)
        apart = size + (PAGE // 2 - size) % PAGE
        return apart if self.residual is not None or (self.extents.inner == 1 and size <= ROW_BYTES) else 0

    def _slot_bytes(self) -> int:
        return aligned(max(SCRATCH_ROWS * COLUMNS * self.dtype.itemsize, 64 + 2 * self._row_slot()))


def make_runner(
    facts: CoreFacts,
    dtype: str,
    name: str,
    variant: Sequence[str],
    kept: tuple[str, ...] = ("k",),
    reduced: tuple[str, ...] = ("n",),
    *,
    columns: bool,
    residual: str | None = None,
    lead: int = 1,
    known: Mapping[str, np.ndarray] | None = None,
) -> Runner:
    """Chooses rows, columns or a copy; `name` is the kernel's without `_rows` or `_columns`.

    `known` are the bindings that are known before a run.
    """
    running = computed(dtype)
    extents = dense_extents(facts, reduced)
    copied = copies(facts, reduced, columns=columns)
    if copied or extents is None:
        extents = Extents(extent_of(facts, kept), extent_of(facts, reduced), 1)
    vectors = dict.fromkeys(("scale", "shift"), tuple(reduced))
    return Runner(
        facts=facts,
        dtype=numpy_dtype(running),
        kept=kept,
        reduced=reduced,
        extents=extents,
        copied=copied,
        read=reading(facts, dtype, (*kept, *reduced), copied),
        kernel=kernel(f"{name}_columns" if extents.inner > 1 else f"{name}_rows", running, *variant),
        vectors=vectors,
        words={},
        epsilon=np.array([facts.constants.get("epsilon", 0.0)]),
        known=laid(facts, vectors, known or {}, numpy_dtype(running)),
        residual=residual,
        lead=lead,
    )


def laid(
    facts: CoreFacts, vectors: Mapping[str, Sequence[str]], known: Mapping[str, np.ndarray], dtype: np.dtype
) -> dict[str, np.ndarray]:
    """Lays out the vectors that are known before a run; a scale of ones stands beside a shift that has none."""
    made = {
        name: vector_of(known[name], facts, name, labels, dtype) for name, labels in vectors.items() if name in known
    }
    if "shift" in made and "scale" not in facts.layouts:
        made["scale"] = np.ones_like(made["shift"])
    return made


def reading(facts: CoreFacts, dtype: str, labels: tuple[str, ...], copied: bool) -> Read:
    """Tells how the kernels read x and what is added to it: in its own order, or copied to rows."""
    return Read(computed(dtype), facts.layouts["x"], labels) if copied else Read(computed(dtype))


def stage_of(
    facts: CoreFacts, root: TensorType, labels: tuple[str, ...], copied: bool, residual: str | None = None
) -> Stage:
    """Tells what a run copies and makes elsewhere.

    Args:
        facts: The match's facts.
        root: The result.
        labels: In the order of rows.
        copied: Whether x and the result are copied to rows and back.
        residual: The binding that is added to x, or None; then there is a sum, too.
    """
    read = reading(facts, root.dtype, labels, copied)
    elsewhere = moved_result(root, not copied, facts.result if copied else None, labels)
    if residual is None:
        return Stage((("x", read),), *elsewhere)
    total = root.size * numpy_dtype(read.dtype).itemsize if elsewhere.bytes else 0
    return Stage((("x", read), (residual, read)), elsewhere.bytes + total, elsewhere.bringing)


def copies(facts: CoreFacts, reduced: Sequence[str], *, columns: bool) -> bool:
    """Tells whether x must be copied to rows: reduced axes lie apart, or beside too few columns."""
    extents = dense_extents(facts, reduced)
    return extents is None or (extents.inner > 1 and not (columns and extents.inner >= NARROW))


def extent_of(facts: CoreFacts, labels: Sequence[str]) -> int:
    """Counts the positions of several labels."""
    return math.prod(facts.extents[label] for label in labels)
