from __future__ import annotations

import copy
from typing import Any

import pytest

from topos_core.document import codec
from topos_core.errors import ConfigurationError

DOCUMENT: dict[str, Any] = {
    "schema": "topos.plan/1", "target": "model.py:main", "consumer": "home", "fidelity": "fast", "machine": "reference",
    "cost": "model", "dialect": "portable", "digest": "00", "paths": ["model.py"], "functions": ["main"], "scopes": [[]],
    "frames": [[0, 1, 0, 1, 4, 0, "user"]], "locations": [[0, [0]]], "spans": [0], "names": ["input", "abs"],
    "types": ["f32[2]"],
    "ops": {"name": [0, 1], "operands": [[], [0]], "type": [0, 0], "location": [0, 0], "attributes": ["", ""]},
    "inputs": [{"value": 0, "name": "x"}], "parameters": [], "results": [1], "observations": [], "regions": [],
    "findings": [], "liveness": {}, "totals": {}, "counts": {},
}  # fmt: skip


def test_a_document_survives_the_way_through_text() -> None:
    assert codec.load(codec.dump(DOCUMENT)) == DOCUMENT
    assert codec.load(codec.dump(DOCUMENT, indent=2)) == DOCUMENT


def set_at(path: list[Any], value: Any) -> dict[str, Any]:
    broken = copy.deepcopy(DOCUMENT)
    place: Any = broken
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return broken


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["schema"], "topos.plan/2", "schema is 'topos.plan/2', expected 'topos.plan/1'"),
        (["ops"], [], "field 'ops' is list, expected dict"),
        (["ops", "type"], None, "column 'ops.type' is NoneType"),
        (["ops", "type"], [0], "column 'ops.type' has 1 rows, 'ops.name' has 2"),
        (["ops", "name"], [0, 2], "'ops.name' holds 2, expected an index below 2"),
        (["ops", "name"], [0, -1], "'ops.name' holds -1, expected an index below 2"),
        (["ops", "operands"], [[], [1]], "'ops.operands[1]' holds 1, expected an index below 1"),
        (["ops", "location"], [0, 1], "'ops.location' holds 1"),
        (["results"], [2], "'results' holds 2"),
        (["spans"], [0, 1], "'spans' holds 1"),
        (["locations"], [[0, [1]]], "'locations[0]' holds 1"),
        (["frames"], [[1, 1, 0, 1, 4, 0, "user"]], "'frames[0]' holds 1"),
        (["regions"], [{"id": "a@1", "nodes": [1]}, {"id": "a@1", "nodes": [1]}], "two regions"),
        (["regions"], [{"id": "a@1", "nodes": [2]}], "'regions[0].nodes' holds 2"),
    ],
)
def test_a_broken_document_is_refused_with_the_field_and_what_was_expected(
    path: list[Any], value: Any, message: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        codec.check(set_at(path, value))
    assert message in str(caught.value)
    assert caught.value.code == "TP505"


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", '{"schema": 1}'])
def test_text_that_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        codec.load(text)


def test_numbers_that_json_cannot_hold_are_never_written() -> None:
    with pytest.raises(ValueError, match="JSON"):
        codec.dump({"value": float("nan")})
