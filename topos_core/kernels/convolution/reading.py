"""What a convolution copies of its operands: the image into planes, unless it is read in place; a kernel to rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from topos_core.cost.memory import contiguous_strides, ordered_like
from topos_core.kernels.convolution.geometry import (
    Problem,
    columns_follow,
    lies_densely,
    masks_fit,
    plane_elements,
    plane_margins,
    reads_in_place,
)
from topos_core.kernels.layouts import contiguous_axes
from topos_core.kernels.margins import Margins
from topos_core.kernels.scratch import Copied, Read, Reading, Stage, arranged_strides, computed, moved_result
from topos_core.matching.facts import ConvolutionFacts
from topos_core.tape.type import TensorType, numpy_dtype

ImageReader = Literal["direct", "tiles", "separable"]
"""The kernels that read images: taps of register tiles, Winograd's tiles, the depthwise convolution before a pointwise one."""


class ReadImage(NamedTuple):
    """Reads an image in place or through zero-padded planes.

    Args:
        dtype: What is computed in.
        facts: Of the convolution that reads it.
        roles: Of the spatial axes that there are.
        runs: The convolutions that read it one after the other, each by planes of its own where it is copied.
        kernel: What reads it: each reads other images where they lie.
        masked: Whether the machine masks lanes, so that some kernels need no zeros around an image.
    """

    dtype: str
    facts: ConvolutionFacts
    roles: tuple[str, ...]
    runs: tuple[Problem, ...]
    kernel: ImageReader
    masked: bool

    @property
    def once(self) -> bool:
        """Tells that nothing is laid out before the run."""
        return False

    def copied(self, kind: TensorType, strides: Sequence[int], written: Sequence[int], /) -> Copied:
        """Counts a copy in another order or dtype, and the planes."""
        size = numpy_dtype(self.dtype).itemsize
        lies = arranged_strides(kind.shape, strides, self.facts.image, ("b", "f", *self.roles))
        kept, most = kind.bytes if lies.copies else 0, kind.bytes * lies.copies
        own = lies.strides
        if self.dtype != kind.dtype:
            wide = kind.size * size
            kept, most, own = wide, max(most, kept + wide), ordered_like(lies.shape, own)
        return Copied(kept, most, max(self._laid(own), default=0) * size)

    def laid_elements(self) -> int:
        """Counts the elements of all planes that a dense image is copied to, one run after the other."""
        layout = self.facts.image
        dense = arranged_strides(layout.shape, contiguous_strides(layout.shape), layout, ("b", "f", *self.roles))
        return sum(self._laid(dense.strides))

    def margins(self, kind: TensorType, columns: bool) -> Margins | None:
        """Tells how the image lies that is read with the zeros around it, without a copy; None where none is.

        `columns` says that its columns follow each other whatever its axes are: what makes it writes it so.
        """
        layout = self.facts.image
        if len(self.runs) != 1 or self.dtype != kind.dtype or layout.shape != kind.shape:
            return None
        if sorted(layout.roles) != sorted(("b", "f", *self.roles)) or not kind.size:
            return None
        if self.reads_in_place(columns):
            return None
        return plane_margins(self.runs[0], layout.roles)

    def reads_in_place(self, columns: bool) -> bool:
        """Tells whether the image is read where it lies if it is dense: it is best read so then. `columns` as for `margins`."""
        if self.kernel == "direct":
            return any(reads_in_place(run) for run in self.runs)
        if self.kernel == "separable" or columns:
            return self.masked
        found = contiguous_axes(self.facts.image, self.roles[-1:])
        return self.masked and found is not None and found[0].stride == 1

    def _laid(self, strides: Sequence[int]) -> list[int]:
        """Counts the elements of each run's planes, 0 where it reads the image itself; strides of batch, channel and the axes there are."""
        given = iter(strides[2:])
        places = (*strides[:2], *(next(given) if role else 0 for role in self.runs[0].roles))
        return [0 if self._in_place(run, places) else plane_elements(run) for run in self.runs]

    def _in_place(self, run: Problem, strides: tuple[int, ...]) -> bool:
        if self.kernel == "direct":
            return reads_in_place(run) and lies_densely(run, strides)
        return self.masked and (columns_follow if self.kernel == "tiles" else masks_fit)(run, strides)


class ReadKernel(NamedTuple):
    """Reads a kernel as rows: `runner.kernel_rows`; one that is known is packed beforehand."""

    dtype: str
    facts: ConvolutionFacts
    once: bool = True

    def copied(self, kind: TensorType, strides: Sequence[int], written: Sequence[int], /) -> Copied:
        """Counts the copy of a kernel of another order or dtype, and of one that is turned."""
        spatial = [str(axis) for axis in range(len(self.facts.windows))]
        read = Read(self.dtype, self.facts.kernel, ("g", "o", "i", *spatial))
        copied = read.copied(kind, strides, written)
        if not copied.kept and any(window.reversed and window.size > 1 for window in self.facts.windows):
            return Copied(kind.bytes, kind.bytes)
        return copied


class ReadAlike(NamedTuple):
    """Reads what is added to a result, which must lie as the result does."""

    dtype: str
    once: bool = False

    def copied(self, kind: TensorType, strides: Sequence[int], written: Sequence[int], /) -> Copied:
        """Counts the copy of what lies otherwise."""
        if kind.dtype == self.dtype and tuple(strides) == tuple(written):
            return Copied(0, 0)
        size = kind.size * numpy_dtype(self.dtype).itemsize
        return Copied(size, size)


def read_image(
    dtype: str,
    facts: ConvolutionFacts,
    convolution: Problem,
    runs: Sequence[Problem],
    kernel: ImageReader,
    masked: bool,
) -> ReadImage:
    """Tells how an image is read by the convolutions that `runs` lists."""
    present = tuple(role for role in convolution.roles if role)
    return ReadImage(computed(dtype), facts, present, tuple(runs), kernel, masked)


def convolution_stage(
    facts: ConvolutionFacts, root: TensorType, image: ReadImage, labels: tuple[str, ...], residual: bool
) -> Stage:
    """Tells what a convolution copies and makes elsewhere; `labels` is the order in which it writes."""
    running = computed(root.dtype)
    reads: list[tuple[str, Reading]] = [("kernel", ReadKernel(running, facts)), ("x", image)]
    if residual:
        reads.append(("residual", ReadAlike(running)))
    straight = not arranged_strides(root.shape, contiguous_strides(root.shape), facts.result, labels).copies
    return Stage(tuple(reads), *moved_result(root, straight, facts.result, labels))
