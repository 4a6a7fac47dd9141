"""The schema that ships in the package, against documents of real plans and documents that are none."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest

import topos_core as tp
from examples import observed
from tests.web.documents import convolution, decoder, norms
from topos_core.document.schema import PLAN_SCHEMA, SCHEMA

jsonschema = pytest.importorskip("jsonschema_rs", reason="the package jsonschema-rs is missing")
SHIPPED: dict[str, Any] = json.loads((files("topos_core.document") / "plan.schema.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    found: dict[str, Any] = tp.plan(tp.trace(observed.hidden_observed), machine="reference").document()
    return found


def faults(document: dict[str, Any], schema: dict[str, Any] = SHIPPED) -> list[str]:
    errors = jsonschema.validator_for(schema).iter_errors(document)
    return [f"{error.instance_path}: {error.message}" for error in errors]


def test_the_shipped_schema_is_the_one_that_documents_are_checked_by() -> None:
    assert json.loads(json.dumps(SCHEMA)) == SHIPPED
    assert SHIPPED["$id"] == PLAN_SCHEMA


@pytest.mark.parametrize("consumer", ["home", "stablehlo"])
def test_documents_of_real_plans_hold_the_schema(consumer: Any) -> None:
    for model in (observed.hidden_observed, observed.statistics_observed):
        plan = tp.plan(tp.trace(model), machine="reference", consumer=consumer)
        assert faults(plan.document()) == []
        rows = [row for row, each in enumerate(plan.tape.observations) if each.kind != "output"]
        assert faults(plan.what_if(ignore=rows).document()) == []
        assert faults(plan.what_if(beside=rows).document()) == []


def test_every_field_of_a_document_is_in_the_schema(document: dict[str, Any]) -> None:
    """A field that is written and not described would be none to who reads the schema."""
    assert faults(document, closed(SHIPPED)) == []


@pytest.mark.parametrize("made", [convolution(observed=True), norms(), decoder(100)])
def test_the_pages_test_documents_hold_the_schema(made: dict[str, Any]) -> None:
    assert faults(made) == []


@pytest.mark.parametrize(
    ("field", "value"), [("regions", {}), ("totals", {"recorded": {}}), ("schema", "topos.plan/2"), ("results", [-1])]
)
def test_what_is_no_plan_document_is_refused(document: dict[str, Any], field: str, value: Any) -> None:
    assert faults({**document, field: value})


def closed(schema: Any) -> Any:
    """The schema with nothing allowed that it does not name; a place's fields are those of what extends it."""
    span = SHIPPED["$defs"]["Span"]["properties"]

    def close(part: Any) -> Any:
        if isinstance(part, list):
            return [close(one) for one in part]
        if not isinstance(part, dict):
            return part
        found = {name: close(value) for name, value in part.items()}
        if "properties" in part and part.get("type") == "object":
            if part.get("allOf"):
                found["properties"] = {**span, **found["properties"]}
                del found["allOf"]
            found["additionalProperties"] = False
        return found

    return close(schema)
