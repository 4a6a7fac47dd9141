"""The catalogue's order: on equal claims the identifier listed earlier wins."""

from __future__ import annotations

from typing import Final

from topos_core.matching.order import ORDER

_RANK: Final = {identifier: rank for rank, identifier in enumerate(ORDER)}


def rank(identifier: str) -> tuple[int, str]:
    """Gives a pattern's place; patterns from outside stand behind the catalogue, by name."""
    return _RANK.get(identifier, len(ORDER)), identifier
