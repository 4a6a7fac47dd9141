"""The parts of a region that do not depend on a verdict, and the regions of near misses."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

from topos_core.digest import digest_of
from topos_core.document import facts, phrases
from topos_core.document.codes import CODES
from topos_core.document.display import display
from topos_core.document.finding import Finding, Related
from topos_core.document.numbering import Numbered
from topos_core.document.places import Places
from topos_core.matching.fingerprint import near_miss_fingerprint
from topos_core.matching.match import NearMiss
from topos_core.plan.decision import Number
from topos_core.plan.plan import PlanData
from topos_core.tape.span import Span


def near_told(
    plan: PlanData, places: Places, miss: NearMiss, name: str, numbered: Numbered
) -> tuple[dict[str, Any], Finding]:
    """Gives the region and the finding of a near miss."""
    span, at = places.value(miss.root), places.value(miss.at)
    print_ = near_miss_fingerprint(plan.tape, miss)
    scope = [display(part) for part in plan.tape.location_of(miss.root).scope]
    reason = phrases.near_miss(display(miss.sentence))
    details = [phrases.held(miss.steps_held, miss.steps, display(miss.expected), display(miss.found))]
    title = facts.name(miss.pattern)
    modules = places.modules(sorted({miss.at, miss.root}))
    region = {
        "id": name,
        **identity(numbered, scope, [span], modules),
        "pattern": miss.pattern,
        "verdict": "near_miss",
        "code": "TP201",
        "word": "near-miss",
        "consumer": plan.request.consumer,
        "fidelity": plan.request.fidelity,
        "kernel": None,
        "root": miss.root,
        "nodes": sorted({miss.at, miss.root}),
        "computing": [],
        "bindings": {},
        "named": {},
        "contains": [],
        "parent": None,
        "winner": None,
        "fold": digest_of(print_, str(plan.tape.ops[miss.root].type))[:16],
        "headline": phrases.headline(title, "near_miss"),
        "reason": reason,
        "details": details,
        "action": None,
        "flips_if": None,
        "facts": {name: f"{value:g}" for name, value in miss.numbers.items()},
        "cost": {},
        "envelope": None,
        "observations": [],
        "paths": [],
        "would_block": [],
        "readers": [],
        "nearest_free": None,
        "fixes": [],
        "near_miss": {
            "at": miss.at,
            "code": display(miss.code),
            "expected": display(miss.expected),
            "found": display(miss.found),
            "steps_held": miss.steps_held,
            "steps": miss.steps,
            "span": at._asdict(),
        },
        "fingerprint": print_,
        "others": {},
    }
    related = (Related(phrases.differs_here(), at),) if at != span else ()
    finding = Finding(
        "TP201", CODES["TP201"].severity, "near_miss", miss.pattern, name, reason, tuple(details), span, related,
        built_rows(modules, {span, at}), print_,
    )  # fmt: skip
    return region, finding


def built_rows(modules: Sequence[tuple[str, Span]], known: Collection[Span]) -> tuple[Related, ...]:
    """Labels where modules are built, but for places that are told already."""
    rows = {span: Related(phrases.built_here(name), span) for name, span in reversed(modules) if span not in known}
    return tuple(rows[span] for span in dict.fromkeys(span for _, span in modules) if span in rows)


def identity(
    numbered: Numbered, scope: Sequence[str], spans: Sequence[Span], modules: Sequence[tuple[str, Span]]
) -> dict[str, Any]:
    """Gives the fields that say which region it is and where it stands."""
    return {
        "key": numbered[0],
        "scope": list(scope),
        "occurrence": numbered[1],
        **spans[0]._asdict(),
        "spans": [span._asdict() for span in spans],
        "modules": [{"name": name, **span._asdict()} for name, span in modules],
    }


def number(figure: Number) -> dict[str, Any]:
    """Gives a figure's fields; what JSON cannot hold becomes null."""
    value = figure.value
    return {"value": value if math.isfinite(value) else None, "unit": figure.unit, "basis": figure.basis}
