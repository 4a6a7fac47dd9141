"""What a decline by another region says is so: of every example and spelling, whoever decides and however."""

from __future__ import annotations

import re
from typing import Any

import pytest

import topos_core as tp
from tests.conformance.coverage import groups
from tests.laws.outbidding import check_outbid, in_its_place
from tests.laws.test_certificates import EXAMPLES, shipped
from topos_core.matching.order import LAST
from topos_core.tape.tape import Tape

WORDS = {
    "ops": r"covers? more( together)?: \d+ ops, it \d+",
    "seconds": "saves? more",
    "first": "before what only groups ops",
}
WAYS: tuple[dict[str, Any], ...] = ({}, {"cost": "always"}, {"consumer": "stablehlo"})


def check(tape: Tape) -> list[str]:
    """Checks every sentence about a rival in every way of electing; lists what falls to its own parts, covering less."""
    users, parts = tape.users(), []
    for options in WAYS:
        plan = tp.plan(tape, machine="reference", **options)
        reasons = {region["id"]: region["reason"] for region in plan.document()["regions"]}
        for d in plan.data.decisions:
            if d.outbid is None or d.would_block:
                continue
            check_outbid(tape, users, plan.data, d)
            if d.match.id in reasons and d.outbid.by in WORDS:
                assert re.search(WORDS[d.outbid.by], reasons[d.match.id]), reasons[d.match.id]
            whole = d.match.interior | d.match.produced
            inside = all(e.match.produced <= whole for e in in_its_place(tape, users, plan.data, d))
            if inside and d.outbid.by == "ops" and d.match.pattern not in LAST:
                parts.append(d.match.id)
    return parts


@pytest.mark.parametrize("pattern", groups())
def test_of_spellings(pattern: str) -> None:
    group = groups()[pattern]
    for name, function in {**group.taken, **group.other}.items():
        assert not check(tp.trace(function, **group.specs)), name


@pytest.mark.parametrize("target", shipped())
def test_of_examples(target: str) -> None:
    assert not check(tp.load(f"{EXAMPLES}/{target}"))
