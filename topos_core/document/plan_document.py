"""Serialises a plan as `topos.plan/1`: columns instead of an object per op, tables instead of repeated text."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from topos_core.digest import tape_digest
from topos_core.document import phrases
from topos_core.document.compose import Composer
from topos_core.document.display import display
from topos_core.document.places import Places
from topos_core.document.region import number
from topos_core.document.schema import PLAN_SCHEMA
from topos_core.plan.plan import Decided, PlanData
from topos_core.recording.collector import collector_paused
from topos_core.tape.op import Op
from topos_core.tape.span import UNKNOWN, Frame
from topos_core.tape.tape import Tape

_SAID_BY_TYPE: Final = frozenset(("type", "shape", "dtype", "types"))
_VERDICTS: Final = ("taken", "declined", "blocked", "near_miss")


class _Table:
    """Interns rows; equal rows have one index."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._index: dict[Hashable, int] = {}

    def add(self, key: Hashable, row: Any) -> int:
        index = self._index.get(key)
        if index is None:
            index = self._index[key] = len(self.rows)
            self.rows.append(row)
        return index


def plan_document(
    plan: PlanData,
    target: str,
    *,
    others: Sequence[Decided] = (),
    root: str | None = None,
    sources: bool = True,
    curve: bool = True,
    plain: Callable[[], Decided] | None = None,
    unobserved: PlanData | None = None,
) -> dict[str, Any]:
    """Gives the document of a plan. Documents of one planner share their tables: nobody writes into a document.

    Args:
        plan: What the regions' verdicts are.
        target: `path:name`, as the person wrote it.
        others: What is decided on the same tape and pool for the other consumers; a region lists their verdicts.
        root: The project's folder; paths inside it are shown relative to it.
        sources: Whether the traced texts come along.
        curve: Whether the live bytes along the schedule come along.
        plain: Gives what is decided where nothing is observed, ignored or switched off by the request; None where that is
            the plan itself.
        unobserved: The plan without the observations that block; None where none do.
    """
    with collector_paused():
        return _document(plan, target, others, root, sources, curve, plain, unobserved)


def _document(
    plan: PlanData,
    target: str,
    others: Sequence[Decided],
    root: str | None,
    sources: bool,
    curve: bool,
    plain: Callable[[], Decided] | None,
    unobserved: PlanData | None,
) -> dict[str, Any]:
    totals = dict(plan.totals) | ({} if unobserved is None else {"unobserved": unobserved.totals["planned"]})
    tape = plan.tape
    composer = Composer(plan, others, root, plain)
    places = composer.places
    tables = plan.once(("locations", root), lambda: _locations(tape, places))
    return {
        "schema": PLAN_SCHEMA,
        "target": display(target),
        "consumer": plan.request.consumer,
        "fidelity": plan.request.fidelity,
        "machine": plan.machine.name,
        **({"machine_title": display(plan.machine.title)} if plan.machine.name != "reference" else {}),
        "cost": plan.request.cost,
        "dialect": plan.request.dialect,
        "digest": plan.once("digest", lambda: tape_digest(tape)),
        **tables,
        **({"sources": _sources(tape, places, tables["paths"])} if sources else {}),
        **plan.once("ops", lambda: _ops(tape)),
        "inputs": [{"value": v, "name": _name(tape, v)} for v in tape.inputs],
        "parameters": [{"value": v, "name": _name(tape, v)} for v in tape.parameters],
        "results": list(tape.results),
        "observations": _observations(plan, places, composer.regions),
        "regions": composer.regions,
        "findings": [finding.to_dict() for finding in composer.findings],
        **({"liveness": _liveness(plan)} if curve else {}),
        "totals": {
            side: {name: number(figure) for name, figure in figures.items()} for side, figures in totals.items()
        },
        "counts": {
            **{verdict: sum(r["verdict"] == verdict for r in composer.regions) for verdict in _VERDICTS},
            "ops": len(tape.ops),
            "opaque": sum(op.name == "opaque" for op in tape.ops),
        },
    }


def attributes_text(op: Op) -> str:
    """Writes an op's attributes for people: `stride=2 fill=0.0`; what the type says already is left out."""
    return " ".join(f"{name}={_attribute(value)}" for name, value in op.attributes.items() if name not in _SAID_BY_TYPE)


def _attribute(value: Any) -> str:
    match value:
        case np.ndarray():
            return "table"
        case tuple() | list():
            return ",".join(map(_attribute, value))
        case np.generic():
            return display(str(value.item()))
    return display(str(value))


def _ops(tape: Tape) -> dict[str, Any]:
    names, types = _Table(), _Table()
    texts: dict[int, str] = {}  # attribute mappings are often shared; each is written once
    attributes = []
    for op in tape.ops:
        text = texts.get(id(op.attributes))
        if text is None:
            text = texts[id(op.attributes)] = attributes_text(op)
        attributes.append(text)
    return {
        "ops": {
            "name": [names.add(op.name, display(op.name)) for op in tape.ops],
            "operands": [list(op.operands) for op in tape.ops],
            "type": [types.add(op.type, str(op.type)) for op in tape.ops],
            "location": [op.location for op in tape.ops],
            "attributes": attributes,
        },
        "names": names.rows,
        "types": types.rows,
    }


def _name(tape: Tape, value: int) -> str:
    return display(tape.names.get(value) or f"%{value}")


def _locations(tape: Tape, places: Places) -> dict[str, Any]:
    paths, functions, scopes, frames = _Table(), _Table(), _Table(), _Table()
    scopes.add((), [])
    locations: list[list[Any]] = []
    spans: list[int] = []
    built: list[int | None] = []

    def frame_row(frame: Frame) -> int:
        path = places.path(frame.span.path)
        row = (
            paths.add(path, path),
            *frame.span[1:],
            functions.add(frame.function, display(frame.function)),
            frame.kind,
        )
        return frames.add(row, list(row))

    for location in tape.locations:
        rows = [frame_row(frame) for frame in location.frames] or [frame_row(Frame(UNKNOWN, "", "library"))]
        shown = next((k for k, frame in enumerate(location.frames) if frame.kind == "user"), 0)
        locations.append([scopes.add(location.scope, [display(name) for name in location.scope]), rows])
        spans.append(rows[shown])
        built.append(frame_row(location.built) if location.built is not None else None)
    return {
        "paths": paths.rows,
        "functions": functions.rows,
        "scopes": scopes.rows,
        "frames": frames.rows,
        "locations": locations,
        "spans": spans,
        "built": built if any(row is not None for row in built) else [],
    }


def _sources(tape: Tape, places: Places, paths: Sequence[str]) -> list[str]:
    """Gives one text per path. Source is shown line by line, so line breaks stay; its consumers escape for themselves."""
    texts: Mapping[str, str] = {places.path(path): text for path, text in tape.sources.items()}
    return [texts.get(path, "") for path in paths]


def _observations(plan: PlanData, places: Places, regions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    blocks: dict[int, list[str]] = {}
    declined: dict[int, list[Mapping[str, Any]]] = {}
    for region in regions:
        for row in region["observations"]:
            blocks.setdefault(row, []).append(region["id"])
        for row in region["would_block"]:
            declined.setdefault(row, []).append(region)
    return [
        {
            "value": o.value,
            "kind": o.kind,
            "name": display(o.name) if o.name is not None else None,
            "assumed": o.assumed,
            "ignored": row in plan.request.ignore,
            "beside": row in plan.request.beside,
            "asked": row >= len(plan.tape.observations),
            "location": o.location,
            **places.location(o.location)._asdict(),
            "value_span": places.value(o.value)._asdict(),
            "blocks": blocks.get(row, []),
            "would_block": [region["id"] for region in declined.get(row, ())],
            "idle": None
            if row in blocks
            else phrases.blocks_nothing(
                list(dict.fromkeys(region["headline"].rpartition(": ")[0] for region in declined.get(row, ())))
            ),
        }
        for row, o in enumerate(plan.observations)
    ]


def _liveness(plan: PlanData) -> dict[str, Any]:
    """Gives the planned curve step by step, and the recorded one op by op: what does not run changes nothing."""
    planned, recorded = plan.liveness, plan.recorded_liveness
    after = {step.value: live for step, live in zip(plan.recorded_schedule.steps, recorded.bytes, strict=True)}
    live, curve = 0, []
    for value in range(len(plan.tape.ops)):
        live = after.get(value, live)
        curve.append(live)
    steps = plan.recorded_schedule.steps
    return {
        "steps": [step.value for step in plan.schedule.steps],
        "bytes": list(planned.bytes),
        "peak_bytes": planned.peak_bytes,
        "peak_step": planned.peak_step,
        "arena_bytes": plan.arena.bytes if plan.request.consumer == "home" else None,
        "spared_bytes": {str(root): size for root, size in planned.spared.items()},
        "recorded_bytes": curve,
        "recorded_peak_bytes": recorded.peak_bytes,
        "recorded_peak_step": steps[recorded.peak_step].value if steps else 0,
    }
