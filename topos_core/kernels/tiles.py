"""Which register tiles a host gets; plain numbers that the code which cuts the work knows too."""

from __future__ import annotations

from typing import NamedTuple

from topos_core.kernels.host import Host


class Tiles(NamedTuple):
    """Rows and registers per row of the tiles: `tall` for many rows, `short` for a few, one row wide as `flat`.

    `middle` ones have every width up to theirs: they take rows of a few registers, such as an attention's values, without a
    tile of a single register, which waits for its loads.
    `chain` is how many products an accumulator adds before it is flushed: a sum's error grows with its chain.
    """

    tall: int
    tall_vectors: int
    short: int
    short_vectors: int
    flat_vectors: int
    middle: int
    middle_vectors: int
    chain: int = 512

    @property
    def widest(self) -> int:
        """The most registers per row of any tile."""
        return max(self.tall_vectors, self.short_vectors, self.flat_vectors)


def tiles(host: Host) -> Tiles:
    """Keeps rows * vectors + vectors + 1 within the registers."""
    return Tiles(8, 3, 4, 6, 8, 6, 4) if host.registers == 32 else Tiles(4, 3, 4, 3, 8, 4, 3)
