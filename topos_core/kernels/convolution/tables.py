"""The addresses of the register tiles and their epilogues."""

from __future__ import annotations

from typing import Literal

import numpy as np

from topos_core.kernels.host import host
from topos_core.kernels.library import kernel
from topos_core.kernels.tiles import tiles
from topos_core.kernels.vocabulary.blocks import FINISH, KEEPS


def tile_table(dtype: str, activation: str = "none", keeps: bool = False) -> np.ndarray:
    """Collects, for f32 or f64, 16 * kind + registers per row, then the epilogues; see `blocks.CONTRACTION`.

    The epilogues that finish by runs and across have the activation inside. `keeps` asks for tiles that keep what they read.
    """
    shapes = tiles(host())
    table = np.zeros(FINISH + 4, np.int64)
    kinds = (
        (shapes.tall, (1, 2, 3)), (shapes.short, (1, 3, shapes.short_vectors)), (1, (1, 4, shapes.flat_vectors)),
    )  # fmt: skip
    for kind, (rows, widths) in enumerate(kinds):
        for vectors in widths:
            table[16 * kind + vectors] = kernel("tile", dtype, f"{rows}x{vectors}").address
    for vectors in range(2, 1 + shapes.tall_vectors) if keeps else ():
        table[KEEPS + vectors] = kernel("tile", dtype, f"keeps{shapes.tall}x{vectors}").address
    if host().masked:
        table[FINISH] = kernel("tile", dtype, "finish", activation).address
    table[FINISH + 1] = kernel("spread", dtype).address
    if host().lanes(dtype) >= shapes.tall:
        table[FINISH + 2] = kernel("tile", dtype, f"across{shapes.tall}", activation).address
        table[FINISH + 3] = kernel("tile", dtype, f"across{shapes.short}", activation).address
    table.flags.writeable = False
    return table


def width_table(dtype: str, kind: Literal["middle", "packed"]) -> np.ndarray:
    """Collects one kind of tile by registers per row: the middle ones, or the tall ones whose left operand is packed."""
    shapes = tiles(host())
    if kind == "middle":
        shape, most = f"{shapes.middle}", shapes.middle_vectors
    else:
        shape, most = f"packed{shapes.tall}", shapes.tall_vectors
    table = np.zeros(1 + most, np.int64)
    for vectors in range(1, 1 + most):
        table[vectors] = kernel("tile", dtype, f"{shape}x{vectors}").address
    table.flags.writeable = False
    return table
