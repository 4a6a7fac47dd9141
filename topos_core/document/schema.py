"""The JSON Schema of `topos.plan/1`: the one place that says which fields a plan document has.

`docs/generate.py` writes it to `plan.schema.json` beside this file, which ships in the package, and as the page's types to
`web/src/data/plan.ts`; `codec` checks by it what it reads. Readers ignore fields that they do not know, so a field may be added
under one major version; a field that older documents have not is not required.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Schema = Mapping[str, Any]

PLAN_SCHEMA: Final = "topos.plan/1"

_TEXT: Final[Schema] = {"type": "string"}
_FLAG: Final[Schema] = {"type": "boolean"}
_INDEX: Final[Schema] = {"type": "integer", "minimum": 0}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}


def _of(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _map(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


def _maybe(schema: Schema) -> Schema:
    """Allows null: what a region or an observation has not."""
    return {"anyOf": [schema, {"type": "null"}]}


def _one_of(*names: str) -> Schema:
    return {"enum": list(names)}


def _told(schema: Schema, description: str) -> Schema:
    return (
        {"description": description, **schema}
        if "$ref" not in schema
        else {"description": description, "allOf": [schema]}
    )


def _object(fields: Mapping[str, Schema], *, later: Mapping[str, Schema] | None = None, spans: bool = False) -> Schema:
    """Builds an object; `later` fields are those that older documents have not, `spans` adds a place."""
    found: dict[str, Any] = {"type": "object", "properties": {**fields, **(later or {})}, "required": list(fields)}
    return {"allOf": [_of("Span")], **found} if spans else found


_DEFINITIONS: Final[Mapping[str, Schema]] = {
    "Verdict": _one_of("taken", "declined", "blocked", "near_miss"),
    "Span": _object({"path": _TEXT, "line": _COUNT, "column": _COUNT, "end_line": _COUNT, "end_column": _COUNT}),
    "Figure": _object(
        {
            "value": {"type": ["number", "null"], "tsType": "number", "description": "Null where JSON cannot hold it."},
            "unit": _TEXT,
            "basis": _one_of("counted", "modelled", "measured"),
        }
    ),
    "NearMiss": _object(
        {
            "at": _INDEX, "code": _TEXT, "expected": _TEXT, "found": _TEXT, "steps_held": _COUNT, "steps": _COUNT,
            "span": _maybe(_of("Span")),
        }
    ),
    "Edit": _object({"text": _TEXT}, spans=True),
    "Fix": _object({"title": _TEXT, "edits": _list(_of("Edit"))}),
    "Remedy": {
        "description": "What ends a block: what a what-if adds to its options, and edits where those of the findings do not say it.",
        **_object(
            {
                "id": _one_of("stop", "move", "beside", "debug"), "text": _TEXT,
                "delta": _told(_of("Figure"), "What it changes in a run, as the plan predicts."),
                "asks": _object({name: _list(_INDEX) for name in ("ignore", "beside", "observe", "unobserve")}),
                "edits": _list(_of("Edit")),
            }
        ),
    },
    "Module": _object({"name": _TEXT}, spans=True),
    "Other": _object({"verdict": _of("Verdict"), "code": _maybe(_TEXT), "reason": _TEXT}),
    "Flip": _object(
        {
            "text": _TEXT, "of": _maybe(_one_of("efficiency", "start")), "now": _maybe(_of("Figure")),
            "at": _maybe(_of("Figure")),
        }
    ),
    "Envelope": _object({"relative": {"type": "number"}, "absolute": {"type": "number"}, "probe": _TEXT}),
    "Region": _object(
        {
            "id": _TEXT, "key": _TEXT, "pattern": _TEXT, "verdict": _of("Verdict"), "code": _maybe(_TEXT),
            "word": _maybe(_TEXT), "consumer": _TEXT, "fidelity": _TEXT, "kernel": _maybe(_TEXT), "scope": _list(_TEXT),
            "occurrence": _COUNT, "spans": _list(_of("Span")), "root": _INDEX, "nodes": _list(_INDEX),
            "computing": _list(_INDEX), "bindings": _map(_INDEX), "named": _map(_list(_INDEX)), "contains": _list(_TEXT),
            "parent": _maybe(_TEXT), "winner": _maybe(_TEXT), "fold": _TEXT, "headline": _TEXT, "reason": _TEXT,
            "details": _list(_TEXT), "action": _maybe(_TEXT), "facts": _map(_TEXT), "cost": _map(_of("Figure")),
            "envelope": _maybe(_of("Envelope")), "observations": _list(_INDEX), "paths": _list(_list(_INDEX)),
            "nearest_free": _maybe(_INDEX), "near_miss": _maybe(_of("NearMiss")), "fingerprint": _TEXT,
            "others": _map(_of("Other")),
        },
        later={
            "modules": _told(_list(_of("Module")), "Where the torch modules of its ops were built."),
            "flips_if": _told(
                _maybe(_of("Flip")), "The nearest condition under which a region that cost declines would be taken."
            ),
            "would_block": _told(
                _list(_INDEX), "Of a declined region, the observations that would block it if what declines it fell."
            ),
            "readers": _told(_list(_INDEX), "Values outside that read a computed inner value."),
            "fixes": _told(_list(_of("Remedy")), "What ends a block, best first."),
        },
        spans=True,
    ),
    "Observation": _object(
        {
            "value": _INDEX, "kind": _TEXT, "name": _maybe(_TEXT), "assumed": _FLAG, "location": _INDEX,
            "value_span": _maybe(_of("Span")), "blocks": _list(_TEXT),
        },
        later={
            "ignored": _told(_FLAG, "Whether the request left it out."),
            "asked": _told(_FLAG, "Whether the request added it."),
            "beside": _told(_FLAG, "Whether what it reads is recomputed, so that it blocks nothing."),
            "would_block": _list(_TEXT),
            "idle": _told(_maybe(_TEXT), "Says that it blocks nothing, and which declined regions it would."),
        },
        spans=True,
    ),
    "Related": _object({"message": _TEXT}, spans=True),
    "Finding": _object(
        {
            "code": _TEXT, "severity": _one_of("error", "warning", "information", "hint"),
            "verdict": _maybe(_of("Verdict")), "pattern": _maybe(_TEXT), "region": _maybe(_TEXT), "headline": _TEXT,
            "details": _list(_TEXT), "related": _list(_of("Related")), "fingerprint": _TEXT,
            "fix": _maybe(_of("Fix")),
        },
        later={"fixes": _told(_list(_of("Fix")), "Every change that ends it, best first.")},
        spans=True,
    ),
    "Liveness": _object(
        {
            "steps": _told(_list(_INDEX), "The root value of each step."), "bytes": _list(_COUNT), "peak_bytes": _COUNT,
            "peak_step": _INDEX, "recorded_bytes": _list(_COUNT), "recorded_peak_bytes": _COUNT,
            "recorded_peak_step": _INDEX,
        },
        later={
            "arena_bytes": _maybe(_COUNT), "spared_bytes": _map(_COUNT),
            "recorded_steps": _told(_list(_INDEX), "The steps where nothing is taken; where left out, ops in order."),
        },
    ),
    "Counts": _object(dict.fromkeys(("taken", "declined", "blocked", "near_miss", "ops", "opaque"), _COUNT)),
    "Totals": {
        "description": "Of a whole run; `unobserved` is the plan without the observations that block, left out where none do.",
        **_object(
            {"recorded": _map(_of("Figure")), "planned": _map(_of("Figure"))}, later={"unobserved": _map(_of("Figure"))}
        ),
    },
    "Named": _object({"value": _INDEX, "name": _TEXT}),
    "Frame": {
        "description": "Path, line, column, end line, end column, function, kind.",
        "type": "array", "prefixItems": [_INDEX, _COUNT, _COUNT, _COUNT, _COUNT, _INDEX, _TEXT], "items": False,
        "minItems": 7,
    },
    "Location": {
        "description": "Scope, and frames from the innermost on.",
        "type": "array", "prefixItems": [_INDEX, _list(_INDEX)], "items": False, "minItems": 2,
    },
}  # fmt: skip

SCHEMA: Final[Schema] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "topos.plan/1",
    "title": "topos.plan/1",
    "description": "A plan as every front end reads it; see docs/formats.md.",
    **_object(
        {
            "schema": {"const": PLAN_SCHEMA}, "target": _TEXT, "consumer": _TEXT, "fidelity": _TEXT, "machine": _TEXT,
            "cost": _TEXT, "dialect": _TEXT, "digest": _TEXT, "paths": _list(_TEXT), "functions": _list(_TEXT),
            "scopes": _list(_list(_TEXT)), "frames": _list(_of("Frame")), "locations": _list(_of("Location")),
            "spans": _list(_INDEX), "names": _list(_TEXT), "types": _list(_TEXT),
            "ops": _object({
                "name": _list(_INDEX), "operands": _list(_list(_INDEX)), "type": _list(_INDEX), "location": _list(_INDEX),
                "attributes": _list(_TEXT),
            }),
            "inputs": _list(_of("Named")), "parameters": _list(_of("Named")), "results": _list(_INDEX),
            "observations": _list(_of("Observation")), "regions": _list(_of("Region")), "findings": _list(_of("Finding")),
            "liveness": _of("Liveness"), "totals": _of("Totals"), "counts": _of("Counts"),
        },
        later={"machine_title": _TEXT, "sources": _list(_TEXT), "built": _list(_maybe(_INDEX))},
    ),
    "$defs": _DEFINITIONS,
}  # fmt: skip


def top_level() -> dict[str, type]:
    """Gives what each required field of a document must be, read from the schema."""
    kinds: dict[str, type] = {"string": str, "array": list, "object": dict}
    found: dict[str, type] = {}
    for name in SCHEMA["required"]:
        schema = SCHEMA["properties"][name]
        schema = _DEFINITIONS[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        if "type" in schema:
            found[name] = kinds[schema["type"]]
    return found
