"""Named extents: what the command line and the project give, and what a program asked for.

A `--dim` that nothing asks for is a slip of the pen; a project's own numbers are there for all of its models.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from topos_core.document.display import display
from topos_core.errors import ConfigurationError


class AskedDims(Mapping[str, int]):
    """Extents by name that remember which names were looked up, those without a value too."""

    def __init__(self, given: Mapping[str, int]) -> None:
        self._given = dict(given)
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> int:
        self.asked.add(name)
        return self._given[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)


def dimension(text: str) -> tuple[str, int]:
    """Reads `N=4`; model files also have names such as `input.1_0`."""
    name, _, extent = text.partition("=")
    if "=" in extent:
        raise argparse.ArgumentTypeError(f"{text!r} has two =, and one extent takes one; write --dim {name}=4")
    if not name or not name.isprintable() or not extent.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no extent; write --dim N=4")
    return name, int(extent)


DIM: Final[Mapping[str, Any]] = {
    "action": "append",
    "default": [],
    "type": dimension,
    "metavar": "N=4",
    "help": "gives a named extent a value; may be repeated",
}
"""How every command declares `--dim`."""


def refuse_unknown_dims(given: Sequence[tuple[str, int]], replies: Sequence[Mapping[str, Any]]) -> None:
    """Refuses an extent given on the command line that no entry of these replies of a trace has.

    Where something was not traced, nobody knows, so nothing is refused.

    Raises:
        ConfigurationError: TP504, with the extents that there are.
    """
    entries = [entry for reply in replies for entry in reply.get("entries", ())]
    if any("error" in each for each in (*replies, *entries)) or not entries:
        return
    known = sorted({name for entry in entries for name in entry.get("dims", ())})
    unknown = next((name for name, _ in given if name not in known), None)
    if unknown is None:
        return
    which = display(entries[0]["target"]) if len(entries) == 1 else f"the {len(entries)} entries"
    verb = "has" if len(entries) == 1 else "have"
    raise ConfigurationError(
        f"no extent is called {unknown}; {which} {verb} {', '.join(known) or 'no named extents'}; drop --dim {unknown}",
        code="TP504",
    )
