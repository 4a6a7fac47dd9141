"""Random convolutions and pools: whatever is found means what the recorded ops mean, and what slides is found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.core.matching.check import check, matches_of
from tests.core.matching.random_windows import Case, random_case, random_layout


def run(make: Callable[[int], Case], count: int, first_seed: int) -> Counter:
    """Checks random programs; counts (slides, found)."""
    tally: Counter = Counter()
    for seed in range(first_seed, first_seed + count):
        case = make(seed)
        _, pool = check(case.function, case.specs, seed)
        tally[case.slides, bool(matches_of(pool, case.pattern))] += 1
        assert not pool.near_misses, f"{case.name}: {pool.near_misses}"
    return tally


@pytest.mark.parametrize("make", [random_case, random_layout], ids=["spellings", "layouts"])
def test_random_programs_are_found_and_none_is_wrong(make):
    tally = run(make, 400, 0)
    missed = tally[True, False]  # pads that are never read, strides over one position: nothing slides after all
    assert missed <= 0.02 * tally[True, True], tally


@pytest.mark.conformance
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("make", [random_case, random_layout], ids=["spellings", "layouts"])
def test_twenty_thousand_random_programs_are_found_and_none_is_wrong(make):
    tally = run(make, 20_000, 1_000_000)
    assert tally[True, False] <= 0.02 * tally[True, True], tally
