"""A program with one thing changed is refused, or matched as what it is; what survives is proved equal."""

from __future__ import annotations

import numpy as np
import pytest

from tests.laws.mutations import Tally, tried
from topos_core.matching.catalog import patterns


def tallied(every: int) -> Tally:
    tally = Tally()
    with np.errstate(all="ignore"):
        for pattern in patterns().values():
            tried(pattern, tally, every)
    return tally


def check(tally: Tally, least: int) -> None:
    made = sum(tally.made.values())
    assert made > least
    assert tally.wrong == []
    assert tally.fooled == []
    assert tally.caught + sum(tally.equal.values()) == made
    assert tally.caught > 0.95 * made
    assert {"constant", "axis", "op"} <= tally.made.keys()


def test_changed_programs_are_caught():
    check(tallied(every=7), 80)


@pytest.mark.conformance
@pytest.mark.timeout(3600)
def test_every_changed_program_is_caught():
    tally = tallied(every=1)
    made = sum(tally.made.values())
    print(f"\n{made} changed programs, {tally.caught} caught, {sum(tally.equal.values())} proved equal")
    check(tally, 600)
