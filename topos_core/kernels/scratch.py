"""What a kernel holds beside its operands and results: copies of what lies otherwise than it reads, results made elsewhere first.

`Read` makes a copy when a kernel runs (`array`) and tells beforehand what it takes (`copied`), by the same steps. Not told
are the blocks of workers, whose size is the machine's: lanes, caches, threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from topos_core.cost.memory import contiguous_strides, is_contiguous, reshaped_strides
from topos_core.kernels.layouts import arrange, role_axes
from topos_core.matching.facts import Layout
from topos_core.tape.type import TensorType, numpy_dtype


class Copied(NamedTuple):
    """Bytes of a copy.

    Args:
        kept: What stays until the result is there.
        most: The most that lives while it is made.
        running: What lives besides while the kernel runs.
    """

    kept: int
    most: int
    running: int = 0


class Reading(Protocol):
    """How a kernel reads a value."""

    @property
    def once(self) -> bool:
        """Tells whether a value that is known before the run is laid out then, and not by every run."""
        ...

    def copied(self, kind: TensorType, strides: Sequence[int], written: Sequence[int], /) -> Copied:
        """Counts the bytes of the copy of a value that lies with such strides, in elements; `written` are the root's."""
        ...


class Read(NamedTuple):
    """Reads an array with one axis per label, in the dtype that is computed in.

    Args:
        dtype: What is computed in.
        layout: The value's; None for a value that is read in its own order.
        labels: In the kernel's order.
        dense: Whether the elements must follow each other.
        once: See `Reading`.
    """

    dtype: str
    layout: Layout | None = None
    labels: tuple[str, ...] = ()
    dense: bool = True
    once: bool = False

    def array(self, values: np.ndarray) -> np.ndarray:
        """Gives a value as the kernel reads it, its own memory where it can be read there."""
        arranged = values if self.layout is None else arrange(values, self.layout, self.labels)
        running = numpy_dtype(self.dtype)
        return np.ascontiguousarray(arranged, running) if self.dense else arranged.astype(running, copy=False)

    def copied(self, kind: TensorType, strides: Sequence[int], written: Sequence[int], /) -> Copied:
        """Counts what `array` copies."""
        kept = most = 0
        shape: tuple[int, ...] = kind.shape
        if self.layout is not None:
            found = arranged_strides(shape, strides, self.layout, self.labels)
            kept, most = kind.bytes if found.copies else 0, kind.bytes * found.copies
            shape, strides = found.shape, found.strides
        if self.dtype != kind.dtype or (self.dense and not is_contiguous(shape, strides)):
            wide = kind.size * numpy_dtype(self.dtype).itemsize
            kept, most = wide, max(most, kept + wide)
        return Copied(kept, most)


class ReadBeside(NamedTuple):
    """Lays operands beside each other, in the dtype that is computed in; stands at one of them for all.

    Args:
        dtype: What is computed in.
        names: The bindings of all.
        bytes: Of all together.
    """

    dtype: str
    names: tuple[str, ...]
    bytes: int

    @property
    def once(self) -> bool:
        """Tells that operands which are all known before the run are laid out then."""
        return True

    def copied(self, kind: TensorType, strides: Sequence[int], written: Sequence[int], /) -> Copied:
        """Counts what lies beside each other, and before that the operands of another dtype."""
        return Copied(self.bytes, self.bytes if kind.dtype == self.dtype else 2 * self.bytes)


class Apart(Protocol):
    """How a kernel writes a root whose rows stand apart."""

    def reaches(self, kind: TensorType, strides: Sequence[int], /) -> bool:
        """Tells whether a root of such strides, in elements, is written where it lies."""
        ...


class Written(NamedTuple):
    """Writes a root by the strides of its axes, whatever they are.

    Args:
        layout: The root's.
        labels: In the order in which it is written.
    """

    layout: Layout
    labels: tuple[str, ...]

    def reaches(self, kind: TensorType, strides: Sequence[int], /) -> bool:
        """Tells whether a root of such strides, in elements, is written where it lies."""
        return arranged_strides(kind.shape, strides, self.layout, self.labels).copies == 0


class ReadRows(NamedTuple):
    """Reads rows wherever they start and however far apart they are (`kernels/rows.py`).

    Args:
        dtype: What is computed in; flags are read as they are.
        layout: The value's.
        labels: Of a row, and of what follows each other in it.
        size: Elements of a copy.
        beside: Whether the elements of a row must be neighbours.
    """

    dtype: str
    layout: Layout
    labels: tuple[str, ...]
    size: int
    beside: bool

    @property
    def once(self) -> bool:
        """Tells that nothing is laid out before the run."""
        return False

    def copied(self, kind: TensorType, strides: Sequence[int], written: Sequence[int], /) -> Copied:
        """Counts another dtype's copy, and that of what does not lie in rows."""
        flags = kind.dtype == "bool"
        size = 1 if flags else numpy_dtype(self.dtype).itemsize
        kept = 0 if flags or kind.dtype == self.dtype else kind.size * size
        rows = 0 if self._lies_in_rows(kind, strides) else self.size * size
        return Copied(max(kept, rows), kept + rows)

    def _lies_in_rows(self, kind: TensorType, strides: Sequence[int]) -> bool:
        found = reshaped_strides(kind.shape, strides, self.layout.shape)
        if found is None:
            return False
        step = 1
        for label in self.labels:
            axes = role_axes(self.layout, label)
            extents = [self.layout.shape[axis] for axis in axes]
            merged = reshaped_strides(extents, [found[axis] for axis in axes], (math.prod(extents),))
            if merged is None:
                return False
            step = merged[0] if math.prod(extents) != 1 else 1
        return step == 1 or not self.beside


class Stage(NamedTuple):
    """One of the kernels that run one after the other for a match.

    Args:
        reads: Bindings or named results, in the order in which they are read; copies stay until it is done.
        bytes: What it holds besides, wherever its operands lie.
        bringing: What bringing the result to its dtype and order takes in the end.
        drops: Whether copies are gone by then.
    """

    reads: tuple[tuple[str, Reading], ...] = ()
    bytes: int = 0
    bringing: int = 0
    drops: bool = False

    @property
    def least_bytes(self) -> int:
        """Counts what it holds where operands lie as the kernel reads them; those that it lays beside each other never do."""
        return self.bytes + self.bringing + sum(read.bytes for _, read in self.reads if isinstance(read, ReadBeside))

    def scratch_bytes(self, copied: Callable[[str, Reading], Copied]) -> int:
        """Counts the most that it holds."""
        kept = most = running = 0
        for name, read in self.reads:
            copy = copied(name, read)
            most = max(most, kept + copy.most)
            kept += copy.kept
            running += copy.running
        kept += self.bytes
        return max(most, kept + running, (self.bytes if self.drops else kept) + self.bringing)


class InColumns(NamedTuple):
    """Writes a root whose columns follow each other, the other axes as they come; another root is made elsewhere first.

    Args:
        layout: The root's.
        spatial: Its spatial roles, that of the columns last.
    """

    layout: Layout
    spatial: tuple[str, ...]

    @property
    def made(self) -> tuple[str, ...]:
        """Gives the order in which what is made elsewhere lies."""
        return ("b", "g", "f", *self.spatial)

    def reaches(self, kind: TensorType, strides: Sequence[int], /) -> bool:
        """Tells whether a root of such strides, in elements, is written where it lies."""
        lies = arranged_strides(kind.shape, strides, self.layout, self.made)
        return not lies.copies and (lies.strides[-1] == 1 or lies.shape[-1] <= 1)

    def strides(self, kind: TensorType) -> tuple[int, ...] | None:
        """Gives the strides of dense memory that is written where it lies; None where the root's axes have no such."""
        inner = contiguous_strides(kind.shape)
        if self.reaches(kind, inner):
            return inner
        order = [axis for label in ("g", "f", "b", *self.spatial) for axis in role_axes(self.layout, label)]
        inner = contiguous_strides([self.layout.shape[axis] for axis in order])
        return reshaped_strides(self.layout.shape, [inner[order.index(axis)] for axis in range(len(order))], kind.shape)

    def elsewhere(self, stage: Stage, kind: TensorType) -> Stage:
        """Gives a stage with what it holds where the root is made elsewhere and brought to its order."""
        reads = [
            (name, Read(kind.dtype, self.layout, self.made) if name == "residual" else read)
            for name, read in stage.reads
        ]
        bringing = stage.bringing + _moved_bytes(kind, self.layout, self.made)
        return stage._replace(reads=tuple(reads), bytes=stage.bytes + kind.bytes, bringing=bringing)


class Arranged(NamedTuple):
    """What `layouts.arrange` gives: extents, strides in elements, and how many copies one after the other it makes."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    copies: int


def arranged_strides(shape: Sequence[int], strides: Sequence[int], layout: Layout, labels: Sequence[str]) -> Arranged:
    """Tells what `layouts.arrange` does with an array of such strides, in elements."""
    copies = 0
    found = reshaped_strides(shape, strides, layout.shape)
    if found is None:
        copies, found = 1, contiguous_strides(layout.shape)
    grouped = [role_axes(layout, label) for label in labels]
    order = [axis for axes in grouped for axis in axes]
    merged = tuple(math.prod(layout.shape[axis] for axis in axes) for axes in grouped)
    seen = reshaped_strides([layout.shape[axis] for axis in order], [found[axis] for axis in order], merged)
    if seen is None:
        return Arranged(merged, contiguous_strides(merged), copies + 1)
    return Arranged(merged, seen, copies)


def computed(dtype: str) -> str:
    """Names the float that kernels compute in: f64 for f64, else f32."""
    return "f64" if dtype == "f64" else "f32"


class Moved(NamedTuple):
    """Bytes of a result that is made elsewhere: of that, and of what bringing it takes."""

    bytes: int
    bringing: int


def moved_result(root: TensorType, straight: bool, layout: Layout | None = None, labels: Sequence[str] = ()) -> Moved:
    """Counts what a C-contiguous result takes that is made elsewhere first and brought to its order and dtype.

    Args:
        root: The result.
        straight: Whether it has the kernel's order, so that only another dtype is made elsewhere.
        layout, labels: The result's layout, and the order in which it is made; for one that is not made in its own order.
    """
    wide = computed(root.dtype)
    if straight and wide == root.dtype:
        return Moved(0, 0)
    converted = root.bytes if wide != root.dtype else 0
    moved = 0 if layout is None else _moved_bytes(root, layout, labels)
    return Moved(root.size * numpy_dtype(wide).itemsize, converted + moved)


def _moved_bytes(root: TensorType, layout: Layout, labels: Sequence[str]) -> int:
    """Counts the copy that a reshape from a layout to the root's own axes makes, where it makes one."""
    order = [axis for label in labels for axis in role_axes(layout, label)]
    inner = contiguous_strides([layout.shape[axis] for axis in order])
    strides = [inner[order.index(axis)] for axis in range(len(layout.shape))]
    return root.bytes if reshaped_strides(layout.shape, strides, root.shape) is None else 0
