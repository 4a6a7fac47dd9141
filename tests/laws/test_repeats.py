"""A run of identical blocks is searched once, and that changes nothing: match for match, near miss for near miss."""

from __future__ import annotations

import pytest

from tests.laws.repeating import joined, layered
from topos_core.matching.catalog import patterns
from topos_core.matching.search import search
from topos_core.tape.tape import Tape

SEEDS = 30
MANY = 1500


@pytest.fixture(autouse=True)
def short_programs_count_too(monkeypatch):
    monkeypatch.setattr("topos_core.matching.shortened.WORTH", 8)


def shortened_and_equal(tape: Tape) -> bool:
    """Compares both searches; says whether anything was left out."""
    chosen = tuple(patterns().values())
    whole, once = search(tape, chosen, repeats=False), search(tape, chosen)
    for mine, other in zip(once.matches, whole.matches, strict=True):
        assert mine == other
    for near, other_near in zip(once.near_misses, whole.near_misses, strict=True):
        assert repr(near) == repr(other_near)  # a number may be NaN
    assert whole.repeats == ()
    return bool(once.repeats)


def test_random_layers_are_found_as_if_each_were_searched():
    left_out = sum(shortened_and_equal(layered(seed)) for seed in range(SEEDS))
    assert left_out >= SEEDS // 4, f"of {SEEDS} programs only {left_out} were shortened"


def test_random_blocks_that_nothing_keeps_apart_are_found_as_if_each_were_searched():
    assert sum(shortened_and_equal(joined(seed)) for seed in range(SEEDS)) > 0


@pytest.mark.conformance
@pytest.mark.timeout(3600)
def test_many_random_layers_are_found_as_if_each_were_searched():
    left_out = sum(shortened_and_equal(layered(seed)) for seed in range(SEEDS, MANY))
    assert left_out >= (MANY - SEEDS) // 4


@pytest.mark.conformance
@pytest.mark.timeout(3600)
def test_many_random_blocks_that_nothing_keeps_apart_are_found_as_if_each_were_searched():
    left_out = sum(shortened_and_equal(joined(seed)) for seed in range(SEEDS, MANY))
    assert left_out >= (MANY - SEEDS) // 20
