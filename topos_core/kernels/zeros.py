"""The zeros around a value that lies in planes."""

from __future__ import annotations

from array import array
from typing import Final

from topos_core.kernels.launch import launch, template
from topos_core.kernels.library import kernel
from topos_core.kernels.margins import Margins
from topos_core.kernels.vocabulary.blocks import MARGINS
from topos_core.tape.type import numpy_dtype

THREAD_BYTES: Final = 1 << 20
"""Of planes, below which another thread costs more than it does."""


class Zeros:
    """Writes the zeros around a value; safe to run from several threads."""

    __slots__ = ("block", "kernel", "shared")

    def __init__(self, margins: Margins, dtype: str) -> None:
        self.kernel = kernel("margins", dtype)
        self.shared = margins.size * numpy_dtype(dtype).itemsize > THREAD_BYTES
        self.block = template(MARGINS, {
            "items": margins.planes, "plane": margins.plane, "pitch": margins.pitch, "first": margins.first,
            "height": margins.height, "width": margins.width, "behind": margins.behind,
        })  # fmt: skip

    def write(self, address: int, threads: int) -> None:
        """Writes them around the value whose planes start at an address."""
        block = array("q", self.block)
        block[MARGINS.index("planes")] = address
        launch(self.kernel, block, threads if self.shared else 1)
