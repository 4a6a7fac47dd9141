"""Packs regions for the wire: blocks of a model repeat, so regions differ by little more than where they root.

A template is a region with every value written as its distance from the root, without what names its block; a row is `[template, root,
occurrence, id, key, scope, modules]`: the last two are places in tables, and null stands for an id or key that follows from the rest, or
for what a region does not have. Unpacking gives back the document's regions, to the letter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

Region = Mapping[str, Any]

_BLOCK: Final = ("scope", "modules")  # equal blocks differ in these
_ONE: Final = ("nearest_free",)
_MANY: Final = ("nodes", "computing", "readers")
_NAMED: Final = ("winner", "parent")
_REFERENCE: Final = re.compile(r"([^=].*)@(0|[1-9][0-9]*)", re.DOTALL)


def pack(regions: Sequence[Region]) -> dict[str, Any]:
    """Gives `{"templates": [...], "scope": [...], "modules": [...], "rows": [...]}`."""
    templates, tables = _Table(), {name: _Table() for name in _BLOCK}
    rows: list[list[Any]] = []
    for region in regions:
        root, occurrence = region["root"], region["occurrence"]
        template = _moved(region, -root, packing=True)
        for name in ("id", "key", "root", "occurrence"):
            del template[name]
        block = [table.row(template.pop(name)) if name in template else None for name, table in tables.items()]
        named = region["id"] if region["id"] != identifier(region) else None
        keyed = region["key"] if region["key"] != key(region) else None
        rows.append([templates.row(template), root, occurrence, named, keyed, *block])
    return {"templates": templates.held, **{name: table.held for name, table in tables.items()}, "rows": rows}


def unpack(packed: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Gives the regions back."""
    regions: list[dict[str, Any]] = []
    for row, root, occurrence, named, keyed, *block in packed["rows"]:
        told = {name: packed[name][at] for name, at in zip(_BLOCK, block, strict=True) if at is not None}
        template = {**packed["templates"][row], **told, "root": root, "occurrence": occurrence, "id": "", "key": ""}
        region = _moved(template, root, packing=False)
        region["root"] = root
        region["id"] = named if named is not None else identifier(region)
        region["key"] = keyed if keyed is not None else key(region)
        regions.append(region)
    return regions


class _Table:
    """Holds what differs once each, in the order in which it was met."""

    def __init__(self) -> None:
        self.held: list[Any] = []
        self._known: dict[str, int] = {}

    def row(self, value: Any) -> int:
        """Gives the row of a value."""
        text = json.dumps(value)
        if text not in self._known:
            self._known[text] = len(self.held)
            self.held.append(value)
        return self._known[text]


def identifier(region: Region) -> str:
    """The id that most regions have."""
    return f"{region['pattern']}@{region['root']}"


def key(region: Region) -> str:
    """The key that most regions have."""
    return "/".join((region["pattern"], region["fingerprint"], ".".join(region["scope"]), str(region["occurrence"])))


def _moved(region: Region, by: int, *, packing: bool) -> dict[str, Any]:
    """Copies a region with every value moved; other regions' ids are marked as moved when packing, read back after."""

    def value(one: int) -> int:
        return one + by

    def name(one: str) -> str:
        return _relative(one, by) if packing else _absolute(one, by)

    moved = dict(region)
    for field in _ONE:
        if moved.get(field) is not None:
            moved[field] = value(moved[field])
    for field in _MANY:
        if field in moved:
            moved[field] = [value(one) for one in moved[field]]
    moved["bindings"] = {to: value(one) for to, one in region["bindings"].items()}
    moved["named"] = {to: [value(one) for one in ones] for to, ones in region["named"].items()}
    moved["paths"] = [[value(one) for one in path] for path in region["paths"]]
    if region["near_miss"] is not None:
        moved["near_miss"] = {**region["near_miss"], "at": value(region["near_miss"]["at"])}
    for field in _NAMED:
        if moved[field] is not None:
            moved[field] = name(moved[field])
    moved["contains"] = [name(one) for one in region["contains"]]
    return moved


def _relative(name: str, by: int) -> str:
    found = _REFERENCE.fullmatch(name)
    return f"{found[1]}@{int(found[2]) + by:+d}" if found else f"={name}"


def _absolute(name: str, by: int) -> str:
    if name.startswith("="):
        return name[1:]
    pattern, _, distance = name.rpartition("@")
    return f"{pattern}@{int(distance) + by}"
