"""Puts two plan documents into one numbering: which op is whose partner, and what became of every region."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from topos_web import payloads
from topos_web.payloads import Document

Mark = Literal["same", "added", "removed", "retyped"]
MARKS: Final[tuple[Mark, ...]] = ("same", "added", "removed", "retyped")


@dataclass(slots=True)
class _Merged:
    """One op table with both documents' ops, in an order that keeps the later document's."""

    before: Document
    after: Document
    partners: list[int]
    marks: list[int] = field(default_factory=list)
    of_before: list[int] = field(default_factory=list)
    of_after: list[int] = field(default_factory=list)
    rows: list[tuple[bool, int]] = field(default_factory=list)


def between(before: Document, after: Document) -> dict[str, Any]:
    """Merges two documents' ops for one drawing, and pairs their regions.

    Ops are partners by (scope, name, type, occurrence), then by (scope, name, occurrence). Returns `graph` as the graph
    endpoint does, `marks` per op (an index of `legend`), `of_before` and `of_after` (each document's values in the
    merged numbering), and `regions`: pairs whose verdict differs, with null on the side where there is none.
    """
    merged = _merge(before, after)
    return {
        "before": before["target"],
        "after": after["target"],
        "legend": MARKS,
        "marks": merged.marks,
        "of_before": merged.of_before,
        "of_after": merged.of_after,
        "graph": payloads.graph_data(_document(merged)),
        "regions": list(_regions(before, after)),
    }


def _merge(before: Document, after: Document) -> _Merged:
    merged = _Merged(before, after, _partners(before, after))
    counted = len(before["ops"]["name"])
    paired = set(merged.partners)
    merged.of_before, merged.of_after = [-1] * counted, [-1] * len(merged.partners)
    types_before, types_after = _types(before), _types(after)
    passed = 0

    def removed_up_to(end: int) -> None:
        nonlocal passed
        for i in range(passed, end):
            if i not in paired:
                merged.of_before[i] = len(merged.rows)
                merged.rows.append((False, i))
                merged.marks.append(MARKS.index("removed"))
        passed = max(passed, end)

    for i, partner in enumerate(merged.partners):
        if partner >= 0:
            removed_up_to(partner)
            merged.of_before[partner] = len(merged.rows)
        mark: Mark = "added" if partner < 0 else "same" if types_before[partner] == types_after[i] else "retyped"
        merged.of_after[i] = len(merged.rows)
        merged.rows.append((True, i))
        merged.marks.append(MARKS.index(mark))
    removed_up_to(counted)
    return merged


def _document(merged: _Merged) -> dict[str, Any]:
    """Gives the parts of a document that `payloads.graph_data` reads, with both documents' tables behind each other."""
    before, after = merged.before, merged.after
    shift = {
        name: len(after[name]) for name in ("paths", "functions", "scopes", "frames", "locations", "names", "types")
    }
    ops: dict[str, list[Any]] = {"name": [], "operands": [], "type": [], "location": [], "attributes": []}
    for is_after, row in merged.rows:
        source = after["ops"] if is_after else before["ops"]
        numbers = merged.of_after if is_after else merged.of_before
        here = len(ops["name"])
        ops["name"].append(source["name"][row] + (0 if is_after else shift["names"]))
        ops["type"].append(source["type"][row] + (0 if is_after else shift["types"]))
        ops["location"].append(source["location"][row] + (0 if is_after else shift["locations"]))
        ops["attributes"].append(source["attributes"][row])
        # a removed op whose operand moved behind it keeps no edge to it: the drawing stays acyclic
        ops["operands"].append([numbers[o] for o in source["operands"][row] if numbers[o] < here])
    frames = [
        [f[0] + shift["paths"], *f[1:5], f[5] + shift["functions"], f[6]] for f in before["frames"]
    ]  # columns: path, line, column, end_line, end_column, function, kind
    locations = [[s + shift["scopes"], [f + shift["frames"] for f in fs]] for s, fs in before["locations"]]
    inputs = {merged.of_before[i["value"]]: i["name"] for i in before["inputs"]}
    inputs |= {merged.of_after[i["value"]]: i["name"] for i in after["inputs"]}
    parameters = {merged.of_before[p["value"]]: p["name"] for p in before["parameters"]}
    parameters |= {merged.of_after[p["value"]]: p["name"] for p in after["parameters"]}
    return {
        **{name: [*after[name], *before[name]] for name in ("paths", "functions", "scopes", "names", "types")},
        "frames": [*after["frames"], *frames],
        "locations": [*after["locations"], *locations],
        "spans": [*after["spans"], *(span + shift["frames"] for span in before["spans"])],
        "ops": ops,
        "inputs": [{"value": value, "name": name} for value, name in sorted(inputs.items())],
        "parameters": [{"value": value, "name": name} for value, name in sorted(parameters.items())],
        "results": [merged.of_after[value] for value in after["results"]],
    }


def _partners(before: Document, after: Document) -> list[int]:
    """Gives per op of `after` its partner in `before`, or -1."""
    partners = [-1] * len(after["ops"]["name"])
    free = set(range(len(before["ops"]["name"])))
    for typed in (True, False):
        keys = _keys(before, free, typed=typed)
        known = {key: i for i, key in keys}
        open_ones = {i for i, partner in enumerate(partners) if partner < 0}
        for i, key in _keys(after, open_ones, typed=typed):
            partner = known.get(key, -1)
            if partner in free:
                partners[i] = partner
                free.discard(partner)
    return partners


def _keys(document: Document, wanted: set[int], *, typed: bool) -> Iterator[tuple[int, Hashable]]:
    seen: dict[Hashable, int] = defaultdict(int)
    ops = document["ops"]
    for i, (name, type_, location) in enumerate(zip(ops["name"], ops["type"], ops["location"], strict=True)):
        if i not in wanted:
            continue
        scope = tuple(document["scopes"][document["locations"][location][0]])
        key = (scope, document["names"][name], document["types"][type_] if typed else "")
        yield i, (*key, seen[key])
        seen[key] += 1


def _types(document: Document) -> list[str]:
    return [document["types"][row] for row in document["ops"]["type"]]


def _regions(before: Document, after: Document) -> Iterator[dict[str, Any]]:
    left = {region["key"]: region for region in before["regions"]}
    rest: list[Mapping[str, Any]] = []
    for region in after["regions"]:
        partner = left.pop(region["key"], None)
        if partner is None:
            rest.append(region)
        elif partner["verdict"] != region["verdict"]:
            yield {"before": partner, "after": region}
    by_place = {_place(region): region for region in _latest_first(list(left.values()))}
    for region in rest:  # the same pattern at the same place, written otherwise
        partner = by_place.pop(_place(region), None)
        if partner is not None:
            left.pop(partner["key"])
        if partner is None or partner["verdict"] != region["verdict"]:
            yield {"before": partner, "after": region}
    for region in left.values():
        yield {"before": region, "after": None}


def _latest_first(regions: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    return regions[::-1]


def _place(region: Mapping[str, Any]) -> Hashable:
    return (region["pattern"], tuple(region["scope"]), region["occurrence"])
