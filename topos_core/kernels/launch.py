"""Starts kernels: argument blocks, scratch memory, addresses."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

import numpy as np

from topos_core.kernels.library import Kernel
from topos_core.kernels.vocabulary.blocks import LINE, PAGE
from topos_core.kernels.watching import Start, watch
from topos_core.kernels.workers import run_on

ALIGNMENT: Final = LINE
SPARE: Final = LINE // 8 + 1
"""Words behind a block: the counters of a job that runs on its caller alone, as `vocabulary/sharing.py` tells."""
STREAMED_BYTES: Final = 12 << 20
"""Results from this size on are stored past the caches: whoever reads them next would hardly find them there."""
AHEAD: Final = 8192
"""How many bytes early operands are asked for then: 0.80 ms instead of 0.92 for a copy of 16 MB. Half a page is no good: results
start there (`run/pool.py`), so that every request waits for a store (gelu of 4M elements: medians of 1.4 and 1.1 ms)."""
PLACE: Final = 1024
"""Where in a page scratch memory starts: away from the allocator's large arrays (16) and from results (2048). Loads wait for stores
just ahead of them in another page: softmax of rows of 4 KB takes 1.25 ms from scratch at 0, 0.93 from here."""
_SPARE_WORDS: Final = (1, *(0,) * (SPARE - 1))
_DATA: Final = object.__basicsize__  # where an ndarray keeps its address: NumPy's C interface fixes it, behind the head
_read: Final = ctypes.c_size_t.from_address


def template(block: Sequence[str], values: Mapping[str, int]) -> array[int]:
    """Makes an argument block; words that are not named are 0 and are filled in by each run.

    Raises:
        KeyError: a name that the block does not have.
    """
    words = {**_zeros(tuple(block)), **values}
    if len(words) != len(block):
        raise KeyError(*sorted(set(values) - set(block)))
    return array("q", (*words.values(), *_SPARE_WORDS))


@cache
def _zeros(block: tuple[str, ...]) -> Mapping[str, int]:
    """Gives a block's words in order; small runs spend most of their time on filling blocks."""
    assert block[0] == "counter"
    return dict.fromkeys(block, 0)


def _read_address(values: np.ndarray) -> int:
    return _read(id(values) + _DATA).value


def _asked_address(values: np.ndarray) -> int:
    return int(values.__array_interface__["data"][0])


def _address_is_known() -> bool:
    """Compares both ways once, in case an interpreter lays out objects differently."""
    probe = np.zeros(3, np.int64)[1:]
    return _read_address(probe) == _asked_address(probe)


address_of: Final = _read_address if _address_is_known() else _asked_address
"""Gives the address of an array's first element.

`values.ctypes.data` and the array interface take over a microsecond, and a run needs ten addresses.
"""


class Scratch:
    """Uninitialised memory for one run, at `PLACE` in a page; freed with the object."""

    __slots__ = ("address", "owner")

    def __init__(self, size: int) -> None:
        self.owner = np.empty(size + PAGE, np.uint8)
        start = address_of(self.owner)
        self.address = start + (PLACE - start) % PAGE


def carved(dtype: np.dtype, sizes: Sequence[int]) -> list[np.ndarray]:
    """Gives uninitialised vectors of so many elements each out of one piece of memory, aligned to cache lines."""
    lengths = [aligned(size * dtype.itemsize) for size in sizes]
    owner = np.empty(sum(lengths) + ALIGNMENT, np.uint8)
    at = -address_of(owner) % ALIGNMENT
    vectors = []
    for size, length in zip(sizes, lengths, strict=True):
        vectors.append(np.ndarray(size, dtype, owner, at))
        at += length
    return vectors


def launch(kernel: Kernel, block: array[int], threads: int) -> None:
    """Runs a kernel on the items of a block that `template` made, or a copy of one; the block serves one launch."""
    address, _ = block.buffer_info()
    block[0] = address + 8 * (len(block) - SPARE)
    seen = watch()
    if seen is not None:
        seen.started.append(Start(kernel.name, kernel.variant, tuple(block[:-SPARE]), threads))
    if threads == 1:
        kernel.call(address, 0)
    else:
        run_on(threads, kernel, block)


def spaced(size: int, threads: int) -> int:
    """Gives how far apart several workers' pieces of scratch memory of so many bytes start.

    Processors fetch lines beside those that are written, within a page: two workers whose pieces lay next to each other
    took lines away from each other all the time (pools of 120 microseconds were no faster on two threads than on one).
    """
    return aligned(size) + (PAGE if threads > 1 else 0)


def streamed(result_bytes: int, ahead: int = AHEAD) -> int:
    """Tells kernels whether a result is to be stored past the caches: how early to ask for operands then, else 0."""
    return ahead if result_bytes >= STREAMED_BYTES else 0


def aligned(size: int) -> int:
    """Rounds bytes up to whole cache lines."""
    return size + -size % ALIGNMENT
