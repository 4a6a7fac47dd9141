"""A plan for a terminal. Verdicts are words first; colour only repeats them and is off unless asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from topos_core.document import facts, figures, phrases
from topos_core.document.ranking import VERDICTS, is_left
from topos_core.plan.decision import Number

Document = Mapping[str, Any]

_COLOURS: Final = {
    "taken": "32",
    "declined": "33",
    "blocked": "35",
    "near_miss": "36",
    "error": "31",
    "dim": "2",
    "bold": "1",
}
_INDENT: Final = " " * 10


def render_plan(document: Document, *, colour: bool = False) -> str:
    """Renders a `topos.plan/1` document: totals, every region, the larger before the smaller, the readers, notes."""
    paint = _Paint(colour)
    machine = document["machine"]
    settings = [document["consumer"], document["fidelity"], machine_of(document)]
    if document["cost"] != "model":
        settings.append(f"cost {document['cost']}")
    if document["consumer"] == "stablehlo":
        settings.append(f"dialect {document['dialect']}")
    lines = [f"{paint('bold', document['target'])}  ({', '.join(settings)})", f"  {_counts(document['counts'], paint)}"]
    lines += _totals(document, machine)
    told = _told(document["regions"])
    for region, alike in _collapsed(region for region in told if not _is_left(region)):
        lines += ["", *_region(region, alike, machine, paint)]
    left = Counter(region["pattern"] for region in told if _is_left(region))
    if left:
        lines += [
            "",
            f"{'left':<9} {phrases.left([(facts.name(pattern), count) for pattern, count in left.items()], machine)}",
        ]
    readers = [o for o in document["observations"] if o["kind"] != "output" and not o["ignored"]]
    if readers:
        lines += ["", "observed"]
        for o in readers:
            name = f" `{o['name']}`" if o["name"] else ""
            effect = _effect(o, document["regions"])
            lines.append(
                f"  {_where(o)}: %{o['value']}{name} by {phrases.reader(o['kind'], None, asked=o['asked'])}; {effect}"
            )
    notes = [finding for finding in document["findings"] if finding["code"].startswith("TP7")]
    if notes:
        lines += ["", "noted", *(f"  {_where(note)}: {note['code']} {note['headline']}" for note in notes)]
    return "".join(f"{line}\n" for line in lines)


class _Paint:
    def __init__(self, colour: bool) -> None:
        self.colour = colour

    def __call__(self, name: str, text: str) -> str:
        return f"\x1b[{_COLOURS[name]}m{text}\x1b[0m" if self.colour else text


def _where(place: Document) -> str:
    return f"{place['path']}:{place['line']}:{place['column'] + 1}"


def _counts(counts: Document, paint: _Paint) -> str:
    near = counts["near_miss"]
    parts = [
        paint("taken", f"{counts['taken']} taken") if counts["taken"] else "0 taken",
        paint("declined", f"{counts['declined']} declined") if counts["declined"] else "0 declined",
        paint("blocked", f"{counts['blocked']} blocked") if counts["blocked"] else "0 blocked",
        f"{near} near miss{'' if near == 1 else 'es'}",
        f"{counts['ops']} op{'' if counts['ops'] == 1 else 's'}",
    ]
    if counts["opaque"]:
        parts.append(f"{counts['opaque']} opaque")
    return ", ".join(parts)


def _totals(document: Document, machine: str) -> list[str]:
    recorded, planned = document["totals"]["recorded"], document["totals"]["planned"]
    lines = []
    for name, title in (("seconds", "time"), ("calls", "calls")):
        before, after = _number(recorded[name]), _number(planned[name])
        lines.append(f"  {title} {figures.figure(before)} -> {figures.with_basis(after, machine)}")
    live = document["liveness"]
    apart = live.get("spared_bytes", {})
    before, moved = (side["bytes_read"]["value"] + side["bytes_written"]["value"] for side in (recorded, planned))
    # every region counts its own copies; those that its neighbours make needless are neither written nor read
    before, after = (Number(size, "byte", "counted") for size in (before, moved - 2 * sum(apart.values())))
    lines.append(f"  traffic {figures.figure(before)} -> {figures.with_basis(after, machine)}")
    before, after = (Number(live[name], "byte", "counted") for name in ("recorded_peak_bytes", "peak_bytes"))
    lines.append(f"  peak {figures.figure(before)} -> {figures.with_basis(after, machine)}")
    if live.get("arena_bytes") is not None:
        lines.append(f"  arena {figures.with_basis(Number(live['arena_bytes'], 'byte', 'counted'), machine)}")
    if apart:
        lines.append(f"  layouts {phrases.layouts(len(apart), Number(sum(apart.values()), 'byte', 'counted'))}")
    return lines


def _told(regions: Sequence[Document]) -> list[Document]:
    """Orders by verdict, what loses most first, then by tape; a region with a parent follows it."""
    children: dict[str, list[Document]] = {}
    known = {region["id"] for region in regions}
    tops = []
    for region in regions:
        if region["parent"] in known:
            children.setdefault(region["parent"], []).append(region)
        else:
            tops.append(region)
    ordered: list[Document] = []

    def add(region: Document) -> None:
        ordered.append(region)
        for child in children.get(region["id"], ()):
            add(child)

    for region in sorted(tops, key=lambda r: (VERDICTS.index(r["verdict"]), r["root"])):
        add(region)
    return ordered


def _is_left(region: Document) -> bool:
    """Tells what is counted at the end: each is told where it stands, not in a list."""
    return region["code"] == "TP202" and is_left(region)


def _collapsed(regions: Iterable[Document]) -> list[tuple[Document, int]]:
    """Folds structurally equal regions of one place and verdict into the first, with their number."""
    found: dict[tuple[Any, ...], tuple[Document, int]] = {}
    for region in regions:
        key = (
            region["fold"],
            region["verdict"],
            region["code"],
            region["path"],
            region["line"],
            region["column"],
            region["headline"],
        )
        known = found.get(key)
        found[key] = (region, 1) if known is None else (known[0], known[1] + 1)
    return list(found.values())


def _region(region: Document, alike: int, machine: str, paint: _Paint) -> list[str]:
    verdict = region["verdict"]
    word = f"{verdict.replace('_', ' '):<9}"
    title = title_of(region)
    count = f" {phrases.repeats(alike)}" if alike > 1 else ""
    code = f" {region['code']}" if region["code"] else ""
    inside = f" (inside {region['parent']})" if region["parent"] else ""
    scope = f" in {'.'.join(region['scope'])}" if region["scope"] else ""
    lines = [f"{paint(verdict, word)} {paint('bold', title)}{count}{code}{inside}", f"{_INDENT}{_where(region)}{scope}"]
    lines.append(f"{_INDENT}{region['reason'].partition(': ')[2]}")
    if region["kernel"] and not region["reason"].endswith(region["kernel"]):
        lines.append(f"{_INDENT}runs as {region['kernel']}")
    lines += [f"{_INDENT}{detail}" for detail in region["details"]]
    if region["flips_if"]:
        lines.append(f"{_INDENT}{region['flips_if']['text']}")
    if region["action"]:
        lines.append(f"{_INDENT}you can: {region['action']}")
    for consumer, other in region["others"].items():
        lines.append(f"{_INDENT}{consumer}: {other['reason']}")
    return lines


def _effect(observation: Document, regions: Sequence[Document]) -> str:
    if observation["blocks"]:
        return f"blocks {', '.join(observation['blocks'])}"
    for region in regions:
        for name, values in region["named"].items():
            if region["verdict"] == "taken" and observation["value"] in values:
                return f"kept: {name} of {region['id']}"
    return observation.get("idle") or phrases.blocks_nothing(())  # older documents do not say more


def machine_of(document: Document) -> str:
    """Names the machine, and says whose figures it has where they are not those of its name."""
    title = document.get("machine_title")
    return f"machine {document['machine']}{f' ({title})' if title else ''}"


def title_of(region: Document) -> str:
    """Says what was recognised, without the verdict."""
    title: str = region["headline"].rpartition(": ")[0]
    return title


def spared(region: Document, document: Document) -> list[str]:
    """Says what a taken region does not copy; nothing where it copies all that it could."""
    size = document.get("liveness", {}).get("spared_bytes", {}).get(str(region["root"]))
    return [phrases.spared(Number(size, "byte", "counted"))] if size and region["verdict"] == "taken" else []


def figures_of(region: Document, machine: str) -> list[str]:
    """Writes every figure of a region's cost, a line each, with its unit and how it is known."""
    return [
        f"{name.replace('seconds', 'time').replace('_', ' ')}: "
        + ("not finite" if data["value"] is None else figures.with_basis(_number(data), machine))
        for name, data in region["cost"].items()
    ]


def _number(data: Document) -> Number:
    return Number(data["value"], data["unit"], data["basis"])
