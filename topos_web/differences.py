"""Compares two plan documents: which op is whose partner, and what became of every region."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from topos_web.payloads import Document

Key = tuple[Any, ...]


def between(before: Document, after: Document) -> dict[str, Any]:
    """Pairs ops by (scope, name, type, occurrence), then by (scope, name, occurrence); regions by key, then by place.

    Returns `ops`: per op of `after` its partner in `before` or -1; `gone`: ops of `before` without one; `retyped`: ops
    whose type differs from their partner's; `regions`: the pairs, with null on the side where there is none.
    """
    partners = _partners(before, after)
    paired = {p for p in partners if p >= 0}
    types_before, types_after = _types(before), _types(after)
    return {
        "before": before["target"],
        "after": after["target"],
        "ops": partners,
        "gone": [i for i in range(len(types_before)) if i not in paired],
        "retyped": [i for i, p in enumerate(partners) if p >= 0 and types_before[p] != types_after[i]],
        "before_names": [before["names"][row] for row in before["ops"]["name"]] if before is not after else [],
        "regions": _regions(before, after),
    }


def _partners(before: Document, after: Document) -> list[int]:
    partners = [-1] * len(after["ops"]["name"])
    free = set(range(len(before["ops"]["name"])))
    for typed in (True, False):
        known = {key: i for key, i in zip(_keys(before, typed=typed), range(10**9), strict=False) if i in free}
        for i, key in enumerate(_keys(after, typed=typed)):
            partner = known.get(key, -1)
            if partners[i] < 0 and partner in free:
                partners[i] = partner
                free.discard(partner)
    return partners


def _keys(document: Document, *, typed: bool) -> list[Key]:
    seen: dict[Key, int] = defaultdict(int)
    keys: list[Key] = []
    ops = document["ops"]
    for name, type_, location in zip(ops["name"], ops["type"], ops["location"], strict=True):
        scope = tuple(document["scopes"][document["locations"][location][0]])
        key: Key = (scope, document["names"][name], document["types"][type_] if typed else "")
        keys.append((*key, seen[key]))
        seen[key] += 1
    return keys


def _types(document: Document) -> list[str]:
    return [document["types"][row] for row in document["ops"]["type"]]


def _regions(before: Document, after: Document) -> list[dict[str, Any]]:
    left = {region["key"]: region for region in before["regions"]}
    pairs: list[tuple[Any, Any]] = []
    rest: list[Any] = []
    for region in after["regions"]:
        partner = left.pop(region["key"], None)
        if partner is None:
            rest.append(region)
        else:
            pairs.append((partner, region))
    by_place = {_place(region): region for region in reversed(list(left.values()))}
    for region in rest:  # the same pattern at the same place, written otherwise
        partner = by_place.pop(_place(region), None)
        if partner is not None:
            left.pop(partner["key"])
        pairs.append((partner, region))
    pairs.extend((region, None) for region in left.values())
    return [{"before": a, "after": b} for a, b in pairs if a is None or b is None or a["verdict"] != b["verdict"]]


def _place(region: Any) -> Key:
    return (region["pattern"], tuple(region["scope"]), region["occurrence"])
