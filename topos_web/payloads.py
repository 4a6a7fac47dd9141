"""Cuts a plan document into the three tiers that the page asks for, packed for the wire; adds nothing to it."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from topos_web import packing

Document = Mapping[str, Any]

GRAPH: Final = ("paths", "functions", "scopes", "frames", "locations", "spans", "names", "types")
PLAN: Final = ("consumer", "fidelity", "machine", "cost", "dialect", "digest", "counts", "totals")
REGIONS: Final = ("regions", "observations", "findings", "liveness")
SMALLEST_PACKED: Final = 1400  # one Ethernet frame: packing less saves no packet


@dataclass(frozen=True, slots=True)
class Payload:
    """An answer's body in JSON, plain and packed, with the digest that names it."""

    body: bytes
    packed: bytes | None
    digest: str


def payload(data: Any) -> Payload:
    """Encodes an answer; packed once here instead of once per request."""
    body = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    packed = gzip.compress(body, 5, mtime=0) if len(body) >= SMALLEST_PACKED else None
    return Payload(body, packed, hashlib.sha256(body).hexdigest()[:32])


def graph(document: Document) -> Payload:
    """Encodes what a what-if never changes."""
    return payload(graph_data(document))


def graph_data(document: Document) -> dict[str, Any]:
    """Gives ops as columns, operands as one flat list, attributes as a table."""
    ops = document["ops"]
    table: dict[str, int] = {}
    rows = [table.setdefault(text, len(table)) for text in ops["attributes"]]
    return {
        **{name: document[name] for name in GRAPH},
        "built": document.get("built", []),  # documents of before have none
        "ops": {
            "name": ops["name"],
            "arity": [len(operands) for operands in ops["operands"]],
            "operands": [value for operands in ops["operands"] for value in operands],
            "type": ops["type"],
            "location": ops["location"],
            "attributes": rows,
        },
        "attributes": list(table),
        "inputs": document["inputs"],
        "parameters": document["parameters"],
        "results": document["results"],
    }


def regions(document: Document) -> Payload:
    """Encodes what a what-if may change."""
    return payload(plan_data(document))


def plan_data(document: Document) -> dict[str, Any]:
    """Gives the plan's own part: regions (packed), observations, findings, liveness, figures."""
    return {**{name: document[name] for name in (*PLAN, *REGIONS)}, "regions": packing.pack(document["regions"])}


def skeleton(document: Document) -> dict[str, Any]:
    """Gives what the first paint shows: figures, counts and how many ops every scope holds itself."""
    scope_of = [location[0] for location in document["locations"]]
    held = [0] * len(document["scopes"])
    for location in document["ops"]["location"]:
        held[scope_of[location]] += 1
    return {
        "schema": document["schema"],
        "target": document["target"],
        **{name: document[name] for name in PLAN},
        "paths": document["paths"],
        "scopes": document["scopes"],
        "scope_ops": held,
    }


def changes(found: Mapping[str, Any]) -> dict[str, Any]:
    """Packs what another plan of the graph changes."""
    return {**found, "changed": packing.pack(found["changed"])}


def node(document: Document, value: int) -> dict[str, Any]:
    """Gives everything the document says about one op."""
    ops = document["ops"]
    scope, frames = document["locations"][ops["location"][value]]
    users = [i for i, operands in enumerate(ops["operands"]) if value in operands]
    return {
        "value": value,
        "name": document["names"][ops["name"][value]],
        "type": document["types"][ops["type"][value]],
        "attributes": ops["attributes"][value],
        "operands": ops["operands"][value],
        "users": users,
        "scope": document["scopes"][scope],
        "frames": [_frame(document, document["frames"][frame]) for frame in frames],
        "observations": [i for i, o in enumerate(document["observations"]) if o["value"] == value],
        "regions": _ids(r for r in document["regions"] if value in r["nodes"]),
    }


def _frame(document: Document, row: list[Any]) -> dict[str, Any]:
    path, line, column, end_line, end_column, function, kind = row
    return {
        "path": document["paths"][path], "line": line, "column": column, "end_line": end_line,
        "end_column": end_column, "function": document["functions"][function], "kind": kind,
    }  # fmt: skip


def _ids(regions: Iterable[Mapping[str, Any]]) -> list[str]:
    return [region["id"] for region in regions]
