from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from tests.web.documents import convolution, norms
from tests.web.planners import GivenPlanner
from tests.web.serving import TOKEN
from topos_web import app, static
from topos_web.events import Hub
from topos_web.plans import Plans


@pytest.fixture
def planner() -> GivenPlanner:
    return GivenPlanner(convolution(observed=True), norms())


@pytest.fixture
def plans(planner: GivenPlanner) -> Plans:
    made = Plans(planner)
    made.refresh()
    return made


@pytest.fixture
def stranger(plans: Plans) -> Iterator[TestClient]:
    """A client without the token."""
    application = app.build(plans, Hub(), TOKEN, static.load())
    with TestClient(application, base_url="http://127.0.0.1:8470") as client:
        yield client


@pytest.fixture
def client(stranger: TestClient) -> TestClient:
    stranger.headers["authorization"] = f"Bearer {TOKEN}"
    return stranger
