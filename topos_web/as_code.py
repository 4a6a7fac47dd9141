"""What makes a what-if true in the program: comments that switch patterns off, and the command line that asks for the rest."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from topos_core.session.switches import Place, switching_off
from topos_web.payloads import Document

OPTIONS: Final = ("consumer", "fidelity", "machine", "cost", "dialect")


def comments(document: Document, found: Mapping[str, Any], off: Sequence[str]) -> dict[str, Any]:
    """Gives the edits that switch patterns off where a what-if's regions are switched off, and the regions without a place.

    Args:
        document: The plan on the page, with the traced texts.
        found: What the what-if changes.
        off: The patterns that it switches off.
    """
    path = document["target"].rpartition(":")[0]
    switched = [region for region in found["changed"] if region["code"] == "TP208" and region["pattern"] in off]
    places = {region["id"]: _lines(document, region["root"], path) for region in switched}
    wanted = [Place(region["pattern"], *lines) for region in switched if (lines := places[region["id"]]) is not None]
    text = document["sources"][document["paths"].index(path)] if wanted else ""
    edits, lost = switching_off(text, path, wanted)
    nowhere = [
        region["id"]
        for region in switched
        if (lines := places[region["id"]]) is None or Place(region["pattern"], *lines) in lost
    ]
    return {"edits": [edit.to_dict() for edit in edits], "nowhere": nowhere}


def command(target: str, options: Mapping[str, Any], dims: Sequence[tuple[str, int]]) -> str:
    """Writes the command line of the plan under the options; what is left out and what is switched off stand in the program."""
    words = ["topos", "plan", target]
    for name in OPTIONS:
        if options.get(name) is not None:
            words += [f"--{name}", str(options[name])]
    for name, extent in dims:
        words += ["--dim", f"{name}={extent}"]
    for value in options.get("observe", ()):
        words += ["--observe", str(value)]
    return shlex.join(words)


def _lines(document: Document, value: int, path: str) -> tuple[int, int] | None:
    """Finds the lines of the target's own file at which a value is recorded, or called from."""
    _, frames = document["locations"][document["ops"]["location"][value]]
    rows = [document["frames"][frame] for frame in frames]
    return next(((row[1], row[3]) for row in rows if document["paths"][row[0]] == path), None)
