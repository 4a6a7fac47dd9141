"""Which register tiles a host gets; plain numbers that the code which cuts the work knows too."""

from __future__ import annotations

from typing import NamedTuple

from topos_core.kernels.host import Host


class Tiles(NamedTuple):
    """Rows and registers per row of the tiles: `tall` for many rows, `short` for a few, one row wide as `flat`.

    `chain` is how many products an accumulator adds before it is flushed: a sum's error grows with its chain.
    """

    tall: int
    tall_vectors: int
    short: int
    short_vectors: int
    flat_vectors: int
    chain: int = 512

    @property
    def widest(self) -> int:
        """The most registers per row of any tile."""
        return max(self.tall_vectors, self.short_vectors, self.flat_vectors)


def tiles(host: Host) -> Tiles:
    """Keeps rows * vectors + vectors + 1 within the registers."""
    return Tiles(8, 3, 4, 6, 8) if host.registers == 32 else Tiles(4, 3, 4, 3, 8)
