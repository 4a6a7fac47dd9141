"""What an op or a match costs in countable things. No time here: `machine` and `roofline` turn counts into seconds."""

from __future__ import annotations

from typing import NamedTuple


class Work(NamedTuple):
    """Counted work. `flops` counts a fused multiply-add as two; `transcendentals` counts exp, tanh, log and their kin.

    `bytes_read` and `bytes_written` count each operand and result once at its full size; a movement op that NumPy
    answers with a view moves nothing.
    """

    flops: int = 0
    transcendentals: int = 0
    bytes_read: int = 0
    bytes_written: int = 0

    def __add__(self, other: Work) -> Work:  # type: ignore[override]  # adds field by field, as a vector
        a, b, c, d = self
        e, f, g, h = other
        return Work(a + e, b + f, c + g, d + h)

    @property
    def bytes_moved(self) -> int:
        """Sums both directions."""
        return self.bytes_read + self.bytes_written
