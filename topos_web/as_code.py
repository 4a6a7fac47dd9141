"""What makes a what-if true in the program: comments that switch patterns off, and the command line that asks for the rest."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from topos_core.session.switches import Place, switching_off
from topos_web.payloads import Document

OPTIONS: Final = ("consumer", "fidelity", "machine", "cost", "dialect")


Regions = dict[str, Mapping[str, Any]]
Ask = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Plans a what-if with other `off` and `off_at`, and gives what it changes."""


def comments(document: Document, found: Mapping[str, Any], off: Sequence[str], ask: Ask) -> dict[str, Any]:
    """Gives the edits that switch patterns off where a what-if's regions are switched off, and the regions without a place.

    A region is switched off where the what-if says so of it (TP208), where it is gone, and where it would come up in
    the place of those.

    Args:
        document: The plan on the page, with the traced texts.
        found: What the what-if changes.
        off: The patterns that it switches off.
        ask: Plans the what-if with patterns that are off in places only.
    """
    path = document["target"].rpartition(":")[0]
    switched = _switched(document, found, off, ask).values()
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


def _switched(document: Document, found: Mapping[str, Any], off: Sequence[str], ask: Ask) -> Regions:
    """Collects by id the regions that have to be off for the what-if's plan."""
    wanted, gone = _planned(document, found), set(found["removed"])
    regions: Regions = {region["id"]: region for region in document["regions"] if region["id"] in gone}
    regions |= {name: region for name, region in wanted.items() if region["code"] == "TP208"}
    switched = {name: region for name, region in regions.items() if _is_match(region, off)}
    new = switched
    while new:  # every turn adds a match of the tape
        named = {region["pattern"] for region in switched.values()}
        places = [[region["pattern"], region["root"]] for region in switched.values()]
        planned = _planned(document, ask({"off": [name for name in off if name not in named], "off_at": places}))
        new = {
            name: region
            for name, region in planned.items()
            if name not in switched and _is_match(region, named) and _said(region) != _said(wanted.get(name))
        }
        switched = switched | new
    return switched


def _planned(document: Document, found: Mapping[str, Any]) -> Regions:
    gone = set(found["removed"])
    regions: Regions = {region["id"]: region for region in document["regions"] if region["id"] not in gone}
    return regions | {region["id"]: region for region in found["changed"]}


def _is_match(region: Mapping[str, Any], patterns: Collection[str]) -> bool:
    return region["pattern"] in patterns and region["verdict"] != "near_miss"


def _said(region: Mapping[str, Any] | None) -> tuple[str, str | None] | None:
    return None if region is None else (region["verdict"], region["code"])


def _lines(document: Document, value: int, path: str) -> tuple[int, int] | None:
    """Finds the lines of the target's own file at which a value is recorded, or called from."""
    _, frames = document["locations"][document["ops"]["location"][value]]
    rows = [document["frames"][frame] for frame in frames]
    return next(((row[1], row[3]) for row in rows if document["paths"][row[0]] == path), None)
