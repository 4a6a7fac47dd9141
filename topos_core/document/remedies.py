"""What ends a block, each with what it is predicted to change: asked as a what-if, and written as edits where the syntax says how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from topos_core.document import advice
from topos_core.document.display import display
from topos_core.document.fixes import Sources
from topos_core.document.region import number
from topos_core.plan.decision import Decision, Number
from topos_core.plan.plan import PlanData

_WRITTEN: Final = ("observe", "print")  # calls that stand in the program, and may stand there for debug runs alone


def remedies(plan: PlanData, sources: Sources, d: Decision) -> list[dict[str, Any]]:
    """Lists the fixes of a blocked decision: `stop`, `move`, `beside`, `debug`, as far as each can be asked.

    `asks` is what a what-if adds to its request (rows of observations, and values), `unobserve` what it no longer asks. Times
    are those of a run under the plan's request. What is returned stays returned, so nothing but `beside` is left then.
    """
    rows, own = d.observations, len(plan.tape.observations)
    written = [row for row in rows if row < own]
    asked = [plan.observations[row].value for row in rows if row >= own]
    kinds = [plan.observations[row].kind for row in rows]
    names, observes = _names(plan, sources, rows), all(kind == "observe" for kind in kinds)
    price, beside = d.numbers["price"], d.numbers["beside"]
    saved = Number(-price.value, price.unit, price.basis)
    asks = {"ignore": written, "unobserve": asked}
    found = []
    if "output" not in kinds:
        found.append(_remedy("stop", advice.fix_stop(names, observes=observes), saved, asks))
        if d.nearest_free is not None:
            text = advice.fix_instead(sources.places.called(d.nearest_free), observes=observes)
            found.append(_remedy("move", text, saved, {**asks, "observe": [d.nearest_free]}))
    if not asked:
        delta = Number(beside.value - price.value, price.unit, price.basis)
        text = advice.fix_beside(names, observes=observes)
        edits = [
            sources.beside(plan.observations[row], _made(plan, d, path))
            for row, path in zip(rows, d.paths, strict=True)
        ]
        known = [edit.to_dict() for one in edits for edit in one] if all(edits) else []
        found.append(_remedy("beside", text, delta, {"beside": written}, known))
        if all(kind in _WRITTEN for kind in kinds):
            guarded = [edit.to_dict() for row in written for edit in sources.in_debug_runs(plan.observations[row])]
            text = advice.fix_debug(names, observes=observes)
            found.append(_remedy("debug", text, saved, asks, guarded))
    return found


def _names(plan: PlanData, sources: Sources, rows: Sequence[int]) -> list[str]:
    observed = [plan.observations[row] for row in rows]
    return list(dict.fromkeys(f"`{display(o.name)}`" if o.name else sources.places.called(o.value) for o in observed))


def _made(plan: PlanData, d: Decision, path: Sequence[int]) -> list[int]:
    """Lists what a region would not make of what leads to an observed value."""
    found, todo = set[int](), list(path)
    while todo:
        value = todo.pop()
        if value not in found and (value in path or value in d.match.interior):
            found.add(value)
            todo += plan.tape.ops[value].operands
    return sorted(found)


def _remedy(
    name: str, text: str, delta: Number, asks: dict[str, list[int]], edits: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    whole = {"ignore": [], "beside": [], "observe": [], "unobserve": [], **asks}
    return {"id": name, "text": text, "delta": number(delta), "asks": whole, "edits": list(edits)}
