"""Elementwise functions that make arrays on their way, piece by piece: what they hold meanwhile is a piece, however large the result is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

PIECE: Final = 1 << 14
"""Elements of a piece: a few of them stay in the second-level cache, and a piece costs no more than its elements."""
LONG: Final = 1 << 18
"""The same where no more than a mark for each is made: shorter ones take up to twice as long, these a tenth more."""


def in_pieces(
    function: Callable[..., Any], arrays: Sequence[np.ndarray], out: np.ndarray, *, writes: bool = False
) -> None:
    """Writes `function(*arrays)` to `out`.

    Args:
        function: `writes` tells whether it takes `out` itself, which is no operand then; else every piece is read before it is written.
        arrays: Of one shape.
        out: Where the result goes.
    """
    piece = LONG if writes else PIECE
    if out.size <= piece:
        _write(function, arrays, out, writes)
        return
    uses: list[Any] = [["writeonly"], *[["readonly"]] * len(arrays)]
    with np.nditer([out, *arrays], ["external_loop", "buffered"], uses, buffersize=piece) as pieces:
        for target, *parts in pieces:
            _write(function, parts, target, writes)


def _write(function: Callable[..., Any], parts: Sequence[np.ndarray], target: np.ndarray, writes: bool) -> None:
    if writes:
        function(*parts, out=target)
    else:
        target[...] = function(*parts)


def pieces_of(array: np.ndarray) -> Iterator[np.ndarray]:
    """Looks at an array piece by piece, in the order of its memory."""
    if array.size <= PIECE:
        yield array
        return
    uses: list[Any] = [["readonly"]]
    with np.nditer([array], ["external_loop", "buffered"], uses, buffersize=PIECE) as pieces:
        yield from pieces
