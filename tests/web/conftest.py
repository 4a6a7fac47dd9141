from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from tests.web.documents import convolution, norms
from tests.web.planners import GivenPlanner
from tests.web.serving import TOKEN, Room
from topos_web.plans import Plans


@pytest.fixture
def planner() -> GivenPlanner:
    return GivenPlanner(convolution(observed=True), norms())


@pytest.fixture(scope="session")
def room() -> Room:
    return Room(GivenPlanner())


@pytest.fixture
def plans(room: Room, planner: GivenPlanner) -> Plans:
    room.furnish(planner)
    room.plans.refresh()
    return room.plans


@pytest.fixture
def stranger(room: Room, plans: Plans) -> Iterator[TestClient]:
    """A client without the token."""
    with TestClient(room.application, base_url="http://127.0.0.1:8470") as client:
        yield client


@pytest.fixture
def client(stranger: TestClient) -> TestClient:
    stranger.headers["authorization"] = f"Bearer {TOKEN}"
    return stranger
