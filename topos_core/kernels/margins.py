"""Values that lie in planes with zeros around them, so that a convolution reads what another kernel wrote, without a copy."""

from __future__ import annotations

from typing import NamedTuple


class Margins(NamedTuple):
    """How a value lies: one plane for each image and channel, its rows `pitch` apart, zeros wherever no element is.

    Args:
        strides: Of the value's axes, in elements.
        planes: How many.
        plane: Elements of one.
        pitch: Elements from row to row.
        top, left: Rows before the first one, and columns before the first one.
        height, width: Extents of a plane's own elements.
        behind: Elements behind the last plane, which whole registers read.
    """

    strides: tuple[int, ...]
    planes: int
    plane: int
    pitch: int
    top: int
    left: int
    height: int
    width: int
    behind: int

    @property
    def first(self) -> int:
        """Counts the elements before the value's first one."""
        return self.top * self.pitch + self.left

    @property
    def size(self) -> int:
        """Counts all elements."""
        return self.planes * self.plane + self.behind
