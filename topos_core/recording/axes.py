"""Axis numbers as users write them: negative, as tuples, as NumPy integers."""

from __future__ import annotations

import operator
from typing import Any

from topos_core.recording.value import Value


def one_axis(x: Value, axis: Any, rank: int | None = None) -> int:
    """Gives an axis as a number in [0, rank); `rank` is that of x unless given.

    Raises:
        RecordingError: There is no such axis.
    """
    rank = x.ndim if rank is None else rank
    try:
        given = operator.index(axis)
    except TypeError:
        raise x.recorder.error(f"axis {axis!r} is not an integer") from None
    if not -rank <= given < rank:
        raise x.recorder.error(f"axis {given} is out of range: {x.type} {_has(rank)}")
    return given % rank


def some_axes(x: Value, axis: Any, rank: int | None = None, *, repeated: bool = False) -> tuple[int, ...]:
    """Gives axes as numbers in the order written; None means all.

    Raises:
        RecordingError: There is no such axis, or one stands twice and `repeated` is False.
    """
    rank = x.ndim if rank is None else rank
    if axis is None:
        return tuple(range(rank))
    if not isinstance(axis, (tuple, list)):
        return (one_axis(x, axis, rank),)
    axes = tuple(one_axis(x, each, rank) for each in axis)
    if not repeated and len(set(axes)) < len(axes):
        raise x.recorder.error(f"axes {list(axis)} name an axis of {x.type} twice; name each once")
    return axes


def reduced_axes(x: Value, axis: Any) -> tuple[int, ...]:
    """Gives the axes of a reduction, ascending; NumPy lets a scalar be reduced along axis 0 or -1."""
    if not x.type.shape and axis in (0, -1) and not isinstance(axis, (tuple, list)):
        return ()
    return tuple(sorted(some_axes(x, axis)))


def flattens(x: Value, axis: Any) -> bool:
    """Tells whether all elements are meant: without an axis, and for axis 0 or -1 of a scalar, which NumPy allows."""
    return axis is None or (not x.type.shape and axis in (0, -1))


def _has(rank: int) -> str:
    return "is a scalar" if rank == 0 else f"has axes 0 to {rank - 1}, or -1 to -{rank}"
