"""Programs that nobody meant to be anything: the search survives them, and what it finds is right."""

from __future__ import annotations

import pytest

from tests.core.matching.check import check
from tests.core.matching.random_programs import SPECS, random_program


def run(count: int, first_seed: int) -> int:
    """Checks random programs; counts matches."""
    found = 0
    for seed in range(first_seed, first_seed + count):
        _, pool = check(random_program(seed), SPECS, seed)
        found += len(pool.matches)
    return found


def test_whatever_is_found_in_random_programs_is_right():
    assert run(500, 800) > 50


@pytest.mark.conformance
@pytest.mark.timeout(3600)
def test_whatever_is_found_in_many_random_programs_is_right():
    assert run(20_000, 1_000_000) > 2_000
