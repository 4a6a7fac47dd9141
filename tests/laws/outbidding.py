"""What is told of those that are chosen in a match's place, compared with the plan."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from topos_core.matching.order import LAST
from topos_core.plan.decision import Decision
from topos_core.plan.plan import PlanData
from topos_core.plan.reading import boundary
from topos_core.tape.tape import Tape


def in_its_place(tape: Tape, users: list[list[int]], plan: PlanData, d: Decision) -> Sequence[Decision]:
    """Lists what is taken on a declined match's ops and stood for election before it or with it."""
    mine = boundary(tape, users, d.match).claims
    beside = [e for e in plan.taken if boundary(tape, users, e.match).claims & mine]
    named = [e for e in beside if e.match.pattern not in LAST]
    return beside if d.match.pattern in LAST and not named else named


def check_outbid(tape: Tape, users: list[list[int]], plan: PlanData, d: Decision) -> None:
    """Checks what decided between a match and those that are taken in its place."""
    by = d.outbid
    assert by is not None
    mine = boundary(tape, users, d.match).claims
    chosen = in_its_place(tape, users, plan, d)
    assert by.regions == len(chosen)
    assert d.winner in [e.match.id for e in chosen]
    covered = sum(len(boundary(tape, users, e.match).claims) for e in chosen)
    saved = sum(e.numbers["benefit"].value for e in chosen)
    own = d.numbers["benefit"].value
    by_ops = plan.request.consumer != "home" or plan.request.cost == "always"
    if by.theirs is not None and by.own is not None:
        assert by.theirs.value > by.own.value
        assert (by.theirs.value, by.own.value) == ((covered, len(mine)) if by.by == "ops" else (saved, own))
    match by.by:
        case "ops":
            assert by_ops
        case "seconds":
            assert not by_ops
        case "even":
            assert by_ops
            assert covered == len(mine)
        case "order":
            assert saved == pytest.approx(own)
            assert min(e.match.root for e in chosen) <= d.match.root
            assert not by_ops or covered == len(mine)
        case "listed":
            assert [boundary(tape, users, e.match).claims for e in chosen] == [mine]
        case "first":
            assert d.match.pattern in LAST
            assert any(e.match.pattern not in LAST for e in chosen)
        case "aside":
            assert (covered if by_ops else saved) <= (len(mine) if by_ops else own)
        case _:
            raise AssertionError(by)
