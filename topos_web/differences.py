"""Puts two plan documents into one numbering: which op is whose partner, and what became of every region."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from topos_web import payloads
from topos_web.payloads import Document

Mark = Literal["same", "added", "removed", "retyped"]
Key = Callable[[Mapping[str, Any]], Hashable]
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
    """Merges two documents' ops for one drawing, pairs their regions, and brings the earlier plan along.

    Ops are partners by scope, name and type, then by scope and name, then by what they are made of down to the sources,
    then by what stands right above them; equal ones by their order. So a renamed scope loses nothing. Returns `graph` as the graph
    endpoint does, `marks` per op (an index of `legend`), `of_before` and `of_after` (each document's values in the
    merged numbering), `locations_before` (rows of `graph`'s locations), `types_before` of retyped ops by merged value, `plan_before` and `paths_before`, and `regions`: pairs
    whose verdict differs, with null on the side where there is none.
    """
    merged, types = _merge(before, after), _types(before)
    retyped = {value for value, mark in enumerate(merged.marks) if mark == MARKS.index("retyped")}
    return {
        "before": before["target"],
        "after": after["target"],
        "legend": MARKS,
        "marks": merged.marks,
        "of_before": merged.of_before,
        "of_after": merged.of_after,
        "locations_before": [row + len(after["locations"]) for row in before["ops"]["location"]],
        "types_before": {str(value): types[row] for row, value in enumerate(merged.of_before) if value in retyped},
        "plan_before": payloads.plan_data(before),
        "paths_before": before["paths"],
        "graph": payloads.graph_data(_document(merged)),
        "regions": list(_regions(merged)),
    }


def numbers(before: Document, after: Document) -> tuple[list[int], list[int]]:
    """Gives each document's values in the merged numbering."""
    merged = _merge(before, after)
    return merged.of_before, merged.of_after


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
        "built": [
            *_built(after),
            *(row + shift["frames"] if row is not None else None for row in _built(before)),
        ],
        "ops": ops,
        "inputs": [{"value": value, "name": name} for value, name in sorted(inputs.items())],
        "parameters": [{"value": value, "name": name} for value, name in sorted(parameters.items())],
        "results": [merged.of_after[value] for value in after["results"]],
    }


def _built(document: Document) -> Sequence[int | None]:
    """Gives per location the frame in which its module was built; documents of before, and of other sources, tell none."""
    return document.get("built") or [None] * len(document["locations"])


def _partners(before: Document, after: Document) -> list[int]:
    """Gives per op of `after` its partner in `before`, or -1."""
    partners = [-1] * len(after["ops"]["name"])
    free = set(range(len(before["ops"]["name"])))
    for keys_of in (_typed_place, _place_of_op, _whole_structure, _near_structure):
        open_ones = {i for i, partner in enumerate(partners) if partner < 0}
        if not open_ones or not free:
            break
        known = {key: i for i, key in _numbered(keys_of(before), free)}
        for i, key in _numbered(keys_of(after), open_ones):
            partner = known.get(key, -1)
            if partner in free:
                partners[i] = partner
                free.discard(partner)
    return partners


def _numbered(keys: Sequence[Hashable], wanted: set[int]) -> Iterator[tuple[int, Hashable]]:
    """Gives the wanted ops' keys, equal ones told apart by their order."""
    seen: dict[Hashable, int] = defaultdict(int)
    for i in sorted(wanted):
        yield i, (keys[i], seen[keys[i]])
        seen[keys[i]] += 1


def _typed_place(document: Document) -> list[Hashable]:
    """Keys by scope, name and type."""
    return [(place, kind) for place, kind in zip(_place_of_op(document), _types(document), strict=True)]


def _place_of_op(document: Document) -> list[Hashable]:
    """Keys by scope and name."""
    ops = document["ops"]
    scopes = [tuple(document["scopes"][scope]) for scope, _ in document["locations"]]
    return [
        (scopes[location], document["names"][name]) for name, location in zip(ops["name"], ops["location"], strict=True)
    ]


def _whole_structure(document: Document) -> list[Hashable]:
    """Keys by everything that an op is made of, down to the sources; scopes and places count for nothing."""
    keys: list[int] = []
    for row, operands in zip(_rows(document), document["ops"]["operands"], strict=True):
        keys.append(hash((row, tuple(keys[operand] for operand in operands))))
    return list(keys)


def _near_structure(document: Document) -> list[Hashable]:
    """Keys by an op, its operands and theirs: what is far above may have changed."""
    ops, rows = document["ops"], _rows(document)
    once = [(rows[i], tuple(rows[operand] for operand in operands)) for i, operands in enumerate(ops["operands"])]
    return [hash((once[i], tuple(once[operand] for operand in operands))) for i, operands in enumerate(ops["operands"])]


def _rows(document: Document) -> list[Hashable]:
    """Gives what each op is by itself; a parameter's attributes are its name, which follows its scope."""
    ops, types = document["ops"], _types(document)
    parameters = {row["value"] for row in document["parameters"]}
    return [
        (document["names"][name], types[i], "" if i in parameters else attributes)
        for i, (name, attributes) in enumerate(zip(ops["name"], ops["attributes"], strict=True))
    ]


def _types(document: Document) -> list[str]:
    return [document["types"][row] for row in document["ops"]["type"]]


def _regions(merged: _Merged) -> Iterator[dict[str, Any]]:
    """Pairs regions by key, by place, by the op that they root at, and by what they are; gives the pairs that moved."""
    left = {region["id"]: region for region in merged.before["regions"]}
    rest = {region["id"]: region for region in merged.after["regions"]}
    passes: tuple[tuple[Key, Key], ...] = (
        (_key, _key),
        (_place, _place),
        (lambda r: (r["pattern"], merged.of_before[r["root"]]), lambda r: (r["pattern"], merged.of_after[r["root"]])),
        (_kind, _kind),
    )
    for key_before, key_after in passes:
        known: dict[Hashable, list[Mapping[str, Any]]] = defaultdict(list)
        for region in left.values():
            known[key_before(region)].append(region)
        for region in list(rest.values()):
            found = known.get(key_after(region))
            if found:
                partner = found.pop(0)
                del left[partner["id"]], rest[region["id"]]
                if partner["verdict"] != region["verdict"]:
                    yield {"before": partner, "after": region}
    yield from ({"before": None, "after": region} for region in rest.values())
    yield from ({"before": region, "after": None} for region in left.values())


def _key(region: Mapping[str, Any]) -> Hashable:
    return str(region["key"])


def _kind(region: Mapping[str, Any]) -> Hashable:
    return (region["pattern"], region["fingerprint"])


def _place(region: Mapping[str, Any]) -> Hashable:
    return (region["pattern"], tuple(region["scope"]), region["occurrence"])
