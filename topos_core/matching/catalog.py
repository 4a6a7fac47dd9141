"""Every pattern by identifier: walks `topos_core/patterns/` and the entry points of other packages."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Final

from topos_core.errors import ConfigurationError, InternalError
from topos_core.matching.order import ORDER
from topos_core.matching.pattern import Pattern

FOLDER: Final = "topos_core.patterns"
"""A layer above this one: found by its name, never imported by it."""

GROUP: Final = "topos.patterns"
"""Entry points of this group name a `Pattern`."""


@cache
def patterns() -> Mapping[str, Pattern]:
    """Maps every pattern's identifier to it, topos's own first, in `ORDER`.

    Raises:
        ConfigurationError: An entry point names something that is no pattern, or an identifier that is taken (TP501).
    """
    own = {pattern.identifier: pattern for pattern in _own()}
    unlisted = sorted(own.keys() - set(ORDER))
    found = {name: own[name] for name in (*ORDER, *unlisted) if name in own}
    for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name):
        pattern = entry.load()
        if not isinstance(pattern, Pattern):
            raise ConfigurationError(
                f"entry point {entry.name} of group {GROUP} is a {type(pattern).__name__}; it must name a Pattern",
                code="TP501",
            )
        if pattern.identifier in found:
            raise ConfigurationError(
                f"entry point {entry.name} of group {GROUP} defines {pattern.identifier} again; choose another identifier",
                code="TP501",
            )
        found[pattern.identifier] = pattern
    return MappingProxyType(found)


def pattern(identifier: str) -> Pattern:
    """Gives one pattern.

    Raises:
        KeyError: No pattern has that identifier.
    """
    return patterns()[identifier]


def _own() -> Iterator[Pattern]:
    folder = importlib.import_module(FOLDER)
    for module in pkgutil.iter_modules(folder.__path__):
        loaded = importlib.import_module(f"{FOLDER}.{module.name}")
        found = getattr(loaded, "PATTERN", None)
        if not isinstance(found, Pattern):
            raise InternalError(f"{loaded.__name__} has no PATTERN")
        if found.identifier != module.name:
            raise InternalError(f"{loaded.__name__} calls itself {found.identifier}; file and identifier are one name")
        yield found
