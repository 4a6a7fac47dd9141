"""Documents to JSON and back, with a check of what was read. Nothing here knows what a plan is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from topos_core.errors import ConfigurationError

PLAN_SCHEMA: Final = "topos.plan/1"
CHECK_SCHEMA: Final = "topos.check/1"

# Field -> what it must be; "?" marks fields that may be null or left out.
_PLAN_FIELDS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "target": str, "consumer": str, "fidelity": str, "machine": str, "cost": str, "dialect": str, "digest": str,
    "paths": list, "functions": list, "scopes": list, "frames": list, "locations": list, "spans": list, "names": list,
    "types": list, "ops": dict, "inputs": list, "parameters": list, "results": list, "observations": list,
    "regions": list, "findings": list, "liveness": dict, "totals": dict, "counts": dict,
}  # fmt: skip
_CHECK_FIELDS: Final[Mapping[str, type | tuple[type, ...]]] = {"targets": list}
_FIELDS: Final = {PLAN_SCHEMA: _PLAN_FIELDS, CHECK_SCHEMA: _CHECK_FIELDS}


def dump(document: Mapping[str, Any], *, indent: int | None = None) -> str:
    """Writes a document as JSON text; keys keep their order, so equal documents give equal text."""
    separators = (",", ":") if indent is None else (",", ": ")
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators)


def load(text: str | bytes, schema: str = PLAN_SCHEMA) -> dict[str, Any]:
    """Reads a document and checks its schema, its fields and that every index points into its table.

    Raises:
        ConfigurationError: TP505, the text is no JSON, another schema, or a field is missing or points nowhere.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"a document must be JSON: {error}", code="TP505") from None
    check(document, schema)
    return dict(document)


def check(document: Any, schema: str = PLAN_SCHEMA) -> None:
    """Checks a document that came from outside.

    Raises:
        ConfigurationError: TP505, with the field and what was expected there.
    """
    if not isinstance(document, dict):
        raise ConfigurationError(f"a document must be an object, not {type(document).__name__}", code="TP505")
    found = document.get("schema")
    if found != schema:
        raise ConfigurationError(
            f"the document's schema is {found!r}, expected {schema!r}; write it anew with this version", code="TP505"
        )
    for name, kind in _FIELDS[schema].items():
        if not isinstance(document.get(name), kind):
            expected = kind.__name__ if isinstance(kind, type) else " or ".join(k.__name__ for k in kind)
            raise ConfigurationError(
                f"document field {name!r} is {type(document.get(name)).__name__}, expected {expected}", code="TP505"
            )
    if schema == PLAN_SCHEMA:
        _check_tables(document)


def _check_tables(document: Mapping[str, Any]) -> None:
    """Checks that columns have one length and that indices stay inside their tables."""
    ops = document["ops"]
    columns = {name: ops.get(name) for name in ("name", "operands", "type", "location", "attributes")}
    for name, column in columns.items():
        if not isinstance(column, list):
            raise ConfigurationError(
                f"document column 'ops.{name}' is {type(column).__name__}, expected list", code="TP505"
            )
    count = len(ops["name"])
    for name, column in columns.items():
        if column is not None and len(column) != count:
            raise ConfigurationError(
                f"document column 'ops.{name}' has {len(column)} rows, 'ops.name' has {count}", code="TP505"
            )
    _inside("ops.name", ops["name"], len(document["names"]))
    _inside("ops.type", ops["type"], len(document["types"]))
    _inside("ops.location", ops["location"], len(document["locations"]))
    for index, operands in enumerate(ops["operands"]):
        _inside(f"ops.operands[{index}]", operands, index)
    _inside("results", document["results"], count)
    _inside("spans", document["spans"], len(document["frames"]))
    for index, (scope, frames) in enumerate(document["locations"]):
        _inside(f"locations[{index}]", [scope], len(document["scopes"]))
        _inside(f"locations[{index}]", frames, len(document["frames"]))
    for index, frame in enumerate(document["frames"]):
        _inside(f"frames[{index}]", [frame[0]], len(document["paths"]))
    regions = {region["id"] for region in document["regions"]}
    if len(regions) != len(document["regions"]):
        raise ConfigurationError("two regions of the document have one id", code="TP505")
    for index, region in enumerate(document["regions"]):
        _inside(f"regions[{index}].nodes", region["nodes"], count)


def _inside(where: str, indices: Any, length: int) -> None:
    for index in indices:
        if type(index) is not int or not 0 <= index < length:
            raise ConfigurationError(
                f"document field {where!r} holds {index!r}, expected an index below {length}", code="TP505"
            )
