"""Starts kernels: argument blocks, scratch memory, workers."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from topos_core.kernels.library import Kernel
from topos_core.kernels.workers import run_on

ALIGNMENT: Final = 64


def template(block: Sequence[str], values: Mapping[str, int]) -> array[int]:
    """Makes an argument block; words that are not named are 0 and are filled in by each run.

    Raises:
        KeyError: a name that the block does not have.
    """
    unknown = set(values) - set(block)
    if unknown:
        raise KeyError(*sorted(unknown))
    return array("q", [values.get(name, 0) for name in block])


def address_of(values: np.ndarray) -> int:
    """Gives the address of an array's first element."""
    address: int = values.__array_interface__["data"][0]
    return address


class Scratch:
    """Uninitialised memory for one run, aligned to cache lines; freed with the object."""

    __slots__ = ("address", "owner")

    def __init__(self, size: int) -> None:
        self.owner = np.empty(size + ALIGNMENT, np.uint8)
        start = address_of(self.owner)
        self.address = start + -start % ALIGNMENT


def launch(kernel: Kernel, block: array[int], counter: int, threads: int) -> None:
    """Runs a kernel on its items; `counter` is the place of the block's counter word, which points at a fresh zero."""
    taken = array("q", bytes(128))  # a cache line of its own
    block[counter] = taken.buffer_info()[0]
    address = block.buffer_info()[0]
    if threads == 1:
        kernel.call(address, 0)
    else:
        run_on(threads, kernel, address)


def aligned(size: int) -> int:
    """Rounds bytes up to whole cache lines."""
    return size + -size % ALIGNMENT
