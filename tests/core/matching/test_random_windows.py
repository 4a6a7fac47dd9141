"""Random convolutions and pools: whatever is found means what the recorded ops mean, and what slides is found."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.core.matching.check import check, matches_of
from tests.core.matching.random_windows import random_case


def run(count: int, first_seed: int) -> Counter:
    """Checks random programs; counts (slides, found)."""
    tally: Counter = Counter()
    for seed in range(first_seed, first_seed + count):
        case = random_case(seed)
        _, pool = check(case.function, case.specs, seed)
        tally[case.slides, bool(matches_of(pool, case.pattern))] += 1
        assert not pool.near_misses, f"{case.name}: {pool.near_misses}"
    return tally


def test_six_hundred_random_programs_are_found_and_none_is_wrong():
    tally = run(600, 0)
    missed = tally[True, False]  # pads that are never read, strides over one position: nothing slides after all
    assert missed <= 0.02 * tally[True, True], tally


@pytest.mark.conformance
@pytest.mark.timeout(1800)
def test_twenty_thousand_random_programs_are_found_and_none_is_wrong():
    tally = run(20_000, 1_000_000)
    assert tally[True, False] <= 0.02 * tally[True, True], tally
