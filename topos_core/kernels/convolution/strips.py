"""A convolution of 3x3 windows run directly, a strip of rows after the other: for when Winograd's tiles meet what is not finite.

The planes of a strip are no larger than what the tiles made of its image, so that such a run takes no more memory than any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from topos_core.kernels.convolution.engine import Engine, Epilogue, Operands
from topos_core.kernels.convolution.geometry import Problem
from topos_core.kernels.known import Known


class Strip(NamedTuple):
    """Some rows of some images.

    Args:
        problem: Of these rows alone.
        batch, image_row, result_row: The first image, and the first rows of images and of results.
    """

    problem: Problem
    batch: int
    image_row: int
    result_row: int


def strips(convolution: Problem, tile_rows: int, side: int) -> Iterator[Strip]:
    """Cuts a convolution with windows of stride 1 along its height into strips of at most so many rows of tiles of `side` rows.

    As many whole images as fit are one strip.
    """
    down, (_, height, width) = convolution.windows[1], convolution.result
    reach, extent, rows = (down.size - 1) * down.dilation, convolution.image[1], tile_rows * side
    together = max(1, tile_rows // -(-height // side))
    for batch in range(0, convolution.batch, together):
        images = min(together, convolution.batch - batch)
        for first in range(0, height, rows):
            last = min(first + rows, height)
            low = min(max(first - down.low, 0), extent - 1)  # a strip that meets no row keeps one, cut off
            high = max(min(last + reach - down.low, extent), low + 1)
            window = replace(down, low=low - first + down.low, high=last + reach - down.low - high)
            part = replace(
                convolution,
                batch=images,
                image=(1, high - low, convolution.image[2]),
                result=(1, last - first, width),
                windows=(convolution.windows[0], window, convolution.windows[2]),
            )
            yield Strip(part, batch, low, first)


class Strips:
    """A convolution's strips, ready to run; safe to run from several threads."""

    def __init__(self, convolution: Problem, dtype: str, epilogue: Epilogue) -> None:
        self.problem, self.dtype, self.epilogue = convolution, dtype, epilogue
        self.engines: Known[Problem, Engine] = Known()

    def run(
        self,
        image: tuple[int, ...],
        out: tuple[int, ...],
        operands: Operands,
        tile_rows: int,
        side: int,
        threads: int,
    ) -> None:
        """Runs them, each of so many rows of tiles of `side` rows; see `Engine.run`."""
        for strip in strips(self.problem, tile_rows, side):
            engine = self.engines.get(strip.problem) or self._engine(strip.problem)
            size = engine.dtype.itemsize
            read = (strip.batch * image[0] + strip.image_row * image[3]) * size
            written = (strip.batch * out[0] + strip.result_row * out[4]) * size
            here = operands._replace(
                x=operands.x + read, out=operands.out + written,
                residual=operands.residual + written if operands.residual else 0,
            )  # fmt: skip
            engine.run(image, out, here, threads)

    def _engine(self, part: Problem) -> Engine:
        return self.engines.keep(part, Engine(part, self.dtype, self.epilogue))
