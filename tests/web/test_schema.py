"""The API against its own description: schemathesis makes requests from it and judges the answers."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings

from tests.web.documents import convolution, norms
from tests.web.planners import GivenPlanner
from tests.web.serving import TOKEN
from topos_web import app, static
from topos_web.events import Hub
from topos_web.plans import Plans, plan_id

schemathesis = pytest.importorskip("schemathesis", reason="the package schemathesis is missing")
NotSet = type(pytest.importorskip("schemathesis.core").NOT_SET)


def described() -> Any:
    plans = Plans(GivenPlanner(convolution(observed=True), norms()))
    plans.refresh()
    application = app.build(plans, Hub(), TOKEN, static.load())
    headers = {"authorization": f"Bearer {TOKEN}"}
    found = schemathesis.openapi.from_asgi("/api/v1/openapi.json", application, headers=headers)
    return found.exclude(path_regex="/events$")  # a stream never ends


SCHEMA = described()
KNOWN = plan_id("models/norms.py:block")


ALIKE: Final = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True, "database": None}


@SCHEMA.parametrize()
@settings(max_examples=5, **ALIKE)
def test_every_answer_is_as_described(case: Any) -> None:
    judge(case)


@pytest.mark.conformance
@SCHEMA.parametrize()
@settings(max_examples=60, **ALIKE)
def test_every_answer_to_many_more_requests_is_as_described(case: Any) -> None:
    judge(case)


def judge(case: Any) -> None:
    case.call_and_validate(headers={"authorization": f"Bearer {TOKEN}"})
    if "plan_id" in (case.path_parameters or {}) and isinstance(case.body, dict | NotSet):
        case.path_parameters["plan_id"] = KNOWN  # once more, where there is something to answer
        if isinstance(case.body, dict) and "base" in case.body:
            case.body["base"] = 1
        assert case.call(headers={"authorization": f"Bearer {TOKEN}"}).status_code < 500
