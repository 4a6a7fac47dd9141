"""What a kernel worked out for the layouts that it met, a few of them at a time."""

from __future__ import annotations

from typing import Final, TypeVar

Key = TypeVar("Key")
Worked = TypeVar("Worked")

MOST: Final = 16


class Known(dict[Key, Worked]):
    """A dictionary by strides that stays small: a caller whose strides differ from run to run costs time, not memory."""

    def keep(self, key: Key, value: Worked) -> Worked:
        """Remembers a value and gives it; all others are forgotten where they would be too many."""
        if len(self) >= MOST:
            self.clear()
        self[key] = value
        return value
