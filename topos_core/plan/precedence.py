"""The catalogue's order: on equal claims the identifier listed earlier wins; some are elected last."""

from __future__ import annotations

from typing import Final

from topos_core.matching.catalog import ORDER

_RANK: Final = {identifier: rank for rank, identifier in enumerate(ORDER)}
_LAST_PREFIXES: Final = ("elementwise_", "sibling_")
_LAST: Final = frozenset(("matmul", "reduction_elementwise"))


def rank(identifier: str) -> tuple[int, str]:
    """Gives a pattern's place; patterns from outside stand behind the catalogue, by name."""
    return _RANK.get(identifier, len(ORDER)), identifier


def is_last(identifier: str) -> bool:
    """Tells whether a pattern of the catalogue is elected on what the others leave."""
    return identifier in _LAST or identifier.startswith(_LAST_PREFIXES)
