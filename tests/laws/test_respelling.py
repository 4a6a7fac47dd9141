"""Random spellings of one meaning are all recognised and compute the same; a changed meaning is never taken."""

from __future__ import annotations

import numpy as np
import pytest

from tests.core.patterns.check import agrees, match_at_result
from tests.laws import respelling, respelling_groups
from tests.laws.respelling import Program
from topos_core.matching.catalog import patterns
from topos_core.matching.search import Pool, search
from topos_core.recording.trace import trace
from topos_core.tape.tape import Tape

WRITERS = {**respelling.WRITERS, **respelling_groups.WRITERS}
CHANGES = {**respelling.CHANGES, **respelling_groups.CHANGES}


def found(program: Program) -> tuple[Tape, Pool]:
    tape = trace(program.function, **program.specs)
    return tape, search(tape, patterns().values())


def check_spellings(identifier: str, seeds: range) -> None:
    for seed in seeds:
        tape, pool = found(WRITERS[identifier](identifier, seed))
        match = match_at_result(tape, pool, identifier)
        assert match is not None, f"{identifier} seed {seed}"
        agrees(tape, match)
        assert [m.sentence for m in pool.near_misses] == [], f"{identifier} seed {seed}"


def check_change(identifier: str, change: str, seeds: range) -> int:
    """No changed program is taken for the pattern; gives how many were told why, by it or by a pattern next to it."""
    told = 0
    for seed in seeds:
        tape, pool = found(WRITERS[identifier](identifier, seed, change))
        assert match_at_result(tape, pool, identifier) is None, f"{identifier}, {change}, seed {seed}"
        told += bool(pool.near_misses or any(match.stopped for match in pool.matches))
    return told


CASES = [(identifier, change) for identifier, changes in CHANGES.items() for change in changes]


@pytest.mark.parametrize("identifier", WRITERS)
def test_random_spellings_are_recognised(identifier):
    with np.errstate(all="ignore"):
        check_spellings(identifier, range(40))


@pytest.mark.parametrize(("identifier", "change"), CASES)
def test_a_changed_meaning_is_never_taken(identifier, change):
    check_change(identifier, change, range(12))


@pytest.mark.conformance
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("identifier", WRITERS)
def test_two_thousand_random_spellings_are_recognised(identifier):
    with np.errstate(all="ignore"):
        check_spellings(identifier, range(1000, 3000))


@pytest.mark.conformance
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("identifier", "change"), CASES)
def test_five_hundred_changed_meanings_are_never_taken(identifier, change):
    told = check_change(identifier, change, range(1000, 1500))
    print(f"\n{identifier}: {change}: 0 of 500 taken, {told} told why")
