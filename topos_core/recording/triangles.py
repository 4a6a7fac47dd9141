"""Triangles of matrices and matrices of diagonals: a static mask and a select."""

from __future__ import annotations

import numpy as np

from topos_core.recording import elementwise, movement
from topos_core.recording.value import Value


def triangle(x: Value, k: int, *, upper: bool) -> Value:
    """Records np.tril and np.triu: a mask and a select."""
    if x.ndim < 2:
        x = movement.spread(x, (x.size, x.size))
    rows, columns = x.type.shape[-2:]
    mask = ~np.tri(rows, columns, k - 1, dtype=bool) if upper else np.tri(rows, columns, k, dtype=bool)
    return elementwise.select(mask, x, x.dtype.type(0))


def diag(x: Value, k: int = 0) -> Value:
    """Records np.diag of a vector: a matrix with that diagonal."""
    if x.ndim != 1:
        raise x.recorder.error(f"diag of {x.type}: one or two axes are needed")
    extent = x.size + abs(k)
    wide = movement.spread(movement.pad_with(x, (max(k, 0),), (max(-k, 0),), 0), (extent, extent))
    return elementwise.select(np.eye(extent, k=k, dtype=bool), wide, 0)
