"""One plan document as one file sees it: where its ops, regions and findings stand in that file's buffer.

An op is shown at the innermost frame that lies in the file: in the file of a helper at the helper's line, in the file that
calls the helper at the call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from topos_lsp.anchors import Anchors
from topos_lsp.edits import Edit
from topos_lsp.positions import Text

PlanDocument = Mapping[str, Any]
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Region:
    """A region or near miss with its places in the file, the root's first."""

    row: Row
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding, its number in the document, its place in the file, and those of its related places that are in the file too."""

    row: Row
    number: int
    place: int
    related: tuple[int | None, ...] = ()


@dataclass(slots=True)
class View:
    """A plan in one file.

    Args:
        document: The plan.
        text: The file as it was traced.
        anchors: The places, moved on by every edit since.
        ops: Per place, the values that were made there.
        calls: Per place, the values that were made by what is called there, in this file or another.
        regions: In the document's order.
        findings: In the document's order.
        observations: Per place, the rows of `observations` that read there.
        built: Per place, the values that were made by a module that is built there.
        functions: Per place, the function that it stands in.
    """

    document: PlanDocument
    text: Text
    anchors: Anchors = field(default_factory=Anchors)
    ops: dict[int, list[int]] = field(default_factory=dict)
    calls: dict[int, list[int]] = field(default_factory=dict)
    regions: list[Region] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    observations: dict[int, list[int]] = field(default_factory=dict)
    built: dict[int, list[int]] = field(default_factory=dict)
    functions: dict[int, str] = field(default_factory=dict)

    def move(self, edits: Sequence[Edit]) -> None:
        """Follows edits of the buffer."""
        self.anchors.move(edits)

    def at(self, offset: int) -> tuple[int, list[int]] | None:
        """Gives the shortest place around an offset at which ops were made, else called for, else their modules built; and these."""
        for made in (self.ops, self.calls, self.built):
            found = [i for i in made if self.anchors.covers(i, offset) and not self.anchors.gone(i)]
            if found:
                place = min(found, key=self.anchors.length)
                return place, made[place]
        return None


def view(document: PlanDocument, path: str) -> View | None:
    """Gives a plan's view of a file; None where nothing of it stands there."""
    if path not in document["paths"]:
        return None
    number = document["paths"].index(path)
    made = View(document, Text(document["sources"][number]))
    places = _Places(document, number, made)
    locations = document["ops"]["location"]
    constants = {row for row, name in enumerate(document["names"]) if name == "constant"}
    at = [places.of(location) for location in locations]
    for value, (place, name) in enumerate(zip(at, document["ops"]["name"], strict=True)):
        if place is not None and name not in constants:
            made.ops.setdefault(place, []).append(value)
            for outer in places.around(locations[value]):
                made.calls.setdefault(outer, []).append(value)
    for value, location in enumerate(locations if document["built"] else ()):
        place = places.built(location)
        if place is not None:
            made.built.setdefault(place, []).append(value)
    for region in document["regions"]:
        kept = dict.fromkeys([at[region["root"]], *[at[value] for value in sorted(region["nodes"], reverse=True)]])
        kept.pop(None, None)
        if kept:
            made.regions.append(Region(region, tuple(kept)))
    for row, observation in enumerate(document["observations"]):
        place = places.of(observation["location"])
        if place is not None and observation["kind"] != "output":
            made.observations.setdefault(place, []).append(row)
    _add_findings(made, places)
    return made


def _add_findings(made: View, places: _Places) -> None:
    document = made.document
    regions = {region["id"]: region for region in document["regions"]}
    for number, finding in enumerate(document["findings"]):
        region = regions.get(finding["region"])
        location = None
        if region is not None and finding["code"] == "TP101" and region["observations"]:
            location = document["observations"][region["observations"][0]]["location"]
        elif region is not None:
            location = document["ops"]["location"][region["root"]]
        place = places.written(finding)
        if place is None:
            place = places.of(location) if location is not None else places.called(finding)
        if place is not None:
            related = tuple(places.written(row) for row in finding["related"])
            made.findings.append(Finding(finding, number, place, related))


class _Places:
    """Turns a document's locations into anchors of one file."""

    def __init__(self, document: PlanDocument, path: int, made: View) -> None:
        self._document = document
        self._path = path
        self._made = made
        self._built: Sequence[int | None] = document["built"]  # empty where no module was seen being built
        self._known: dict[int, int | None] = {}
        self._framed: dict[int, int] = {}
        self._around: dict[int, tuple[int, ...]] = {}

    def of(self, location: int) -> int | None:
        """Gives the place of a location: its innermost frame in the file."""
        if location not in self._known:
            frames = self._document["frames"]
            rows = self._document["locations"][location][1]
            found = next((row for row in rows if frames[row][0] == self._path), None)
            self._known[location] = self._frame(found) if found is not None else None
        return self._known[location]

    def around(self, location: int) -> tuple[int, ...]:
        """Gives the places of the other frames of a location in the file: the calls that lead to its own place."""
        known = self._around.get(location)
        if known is None:
            frames, rows = self._document["frames"], self._document["locations"][location][1]
            outer = [row for row in rows if frames[row][0] == self._path][1:]
            known = self._around[location] = tuple(dict.fromkeys(map(self._frame, outer)))
        return known

    def built(self, location: int) -> int | None:
        """Gives the place where the module of a location was built, where that is in the file."""
        row = self._built[location] if self._built else None
        return self._frame(row) if row is not None and self._document["frames"][row][0] == self._path else None

    def _frame(self, row: int) -> int:
        """Gives the place of a row of `frames`, which many locations share."""
        known = self._framed.get(row)
        if known is None:
            frame = self._document["frames"][row]
            known = self._framed[row] = self._add(*frame[1:5])
            self._made.functions.setdefault(known, self._document["functions"][frame[5]])
        return known

    def written(self, row: Row) -> int | None:
        """Gives the place that a row itself names, where it is in the file."""
        if row["path"] != self._document["paths"][self._path]:
            return None
        return self._add(row["line"], row["column"], row["end_line"], row["end_column"])

    def called(self, row: Row) -> int | None:
        """Gives the place in the file from which a row's own place was reached."""
        frames, spans = self._document["frames"], self._document["spans"]
        wanted = (row["path"], row["line"], row["column"], row["end_line"], row["end_column"])
        for location, shown in enumerate(spans):
            frame = frames[shown]
            if (self._document["paths"][frame[0]], *frame[1:5]) == wanted:
                place = self.of(location)
                if place is not None:
                    return place
        return None

    def _add(self, line: int, column: int, end_line: int, end_column: int) -> int:
        return self._made.anchors.add(*self._made.text.place(line, column, end_line, end_column))
