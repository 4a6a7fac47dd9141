"""Documents to JSON and back, with a check of what was read. Nothing here knows what a plan is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice, repeat
from typing import Any, Final

from topos_core.document.schema import PLAN_SCHEMA, top_level
from topos_core.errors import ConfigurationError

CHECK_SCHEMA: Final = "topos.check/1"

_FIELDS: Final[Mapping[str, Mapping[str, type]]] = {PLAN_SCHEMA: top_level(), CHECK_SCHEMA: {"targets": list}}


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
            raise ConfigurationError(
                f"document field {name!r} is {type(document.get(name)).__name__}, expected {kind.__name__}",
                code="TP505",
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
    _rows_inside("ops.operands[{}]", ops["operands"], range(count))
    _inside("results", document["results"], count)
    _inside("spans", document["spans"], len(document["frames"]))
    _inside("built", [row for row in document.get("built", ()) if row is not None], len(document["frames"]))
    locations = document["locations"]
    _rows_inside("locations[{}]", [[scope] for scope, _ in locations], repeat(len(document["scopes"])))
    _rows_inside("locations[{}]", [frames for _, frames in locations], repeat(len(document["frames"])))
    _rows_inside("frames[{}]", [[frame[0]] for frame in document["frames"]], repeat(len(document["paths"])))
    regions = {region["id"] for region in document["regions"]}
    if len(regions) != len(document["regions"]):
        raise ConfigurationError("two regions of the document have one id", code="TP505")
    _rows_inside("regions[{}].nodes", [region["nodes"] for region in document["regions"]], repeat(count))


def _rows_inside(where: str, rows: Sequence[Any], lengths: Iterable[int]) -> None:
    """Checks many rows of indices; looked at one by one where something is wrong, to say which."""
    lengths = list(islice(lengths, len(rows)))
    if {*map(type, chain.from_iterable(rows))} <= {int} and all(
        min(row) >= 0 and max(row) < length for row, length in zip(rows, lengths, strict=True) if row
    ):
        return
    for index, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        _inside(where.format(index), row, length)


def _inside(where: str, indices: Any, length: int) -> None:
    for index in indices:
        if type(index) is not int or not 0 <= index < length:
            raise ConfigurationError(
                f"document field {where!r} holds {index!r}, expected an index below {length}", code="TP505"
            )
