"""The register tiles and their epilogue as kernels of their own, which a contraction calls by address."""

from __future__ import annotations

from typing import Any

from topos_core.kernels.host import Host
from topos_core.kernels.tiles import tiles
from topos_core.kernels.vocabulary.across import across_module
from topos_core.kernels.vocabulary.finish import finish_module
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.tile import tile_module


def module(host: Host, symbol: str, dtype: str, shape: str, activation: str = "none") -> Any:
    """Makes the module of the tile `ROWSxVECTORS`, its left operand `packed` or not, of one that `keeps` what it reads as the
    widest tiles of its height read it, or of an epilogue with an activation.

    Epilogues are `finish` and `acrossROWS`.
    """
    scalar, lanes = SCALARS[dtype], host.lanes(dtype)
    if shape == "finish":
        return finish_module(scalar, lanes, activation, symbol)
    if shape.startswith("across"):
        return across_module(scalar, lanes, int(shape.removeprefix("across")), host.masked, activation, symbol)
    rows, vectors = map(int, shape.removeprefix("packed").removeprefix("keeps").split("x"))
    packed, keeps = shape.startswith("packed"), tiles(host).tall_vectors * lanes if shape.startswith("keeps") else 0
    # an ending takes long to compile, and other heights are rare
    ends = host.masked and not packed and rows == tiles(host).tall
    return tile_module(scalar, lanes, rows, vectors, symbol, packed=packed, ends=ends, keeps=keeps)
