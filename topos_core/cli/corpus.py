"""What the catalogue recognises in the models of folders, and what it recognises since a saved run.

A region is the same one in two runs where its entry, pattern and fingerprint are: lines, names and extents may change.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from topos_core.cli.main import FINDINGS, OK, exit_code_of
from topos_core.cli.options import request_options
from topos_core.cli.terminal import Terminal
from topos_core.document import phrases
from topos_core.document.formats.errors import place_of, shown
from topos_core.errors import ConfigurationError
from topos_core.session.dimensions import refuse_unknown_dims
from topos_core.session.projects import expand, projects
from topos_core.session.workspace import parse_target

SCHEMA: Final = "topos.corpus/1"
Row = Mapping[str, Any]
_KEPT: Final = ("pattern", "fingerprint", "verdict", "code", "path", "line", "column", "headline")
_DIFFERS: Final = ("expected", "found", "steps_held", "steps", "span")
_TEXTS: Final = ("pattern", "fingerprint", "verdict", "path", "headline")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "--corpus",
        action="append",
        default=[],
        metavar="FOLDER",
        help="recognises everything in the models of a folder, a file or a target; may be repeated",
    )
    parser.add_argument("--against", metavar="RUN.json", help="tells what was gained and lost since a saved run")
    parser.add_argument("--save", metavar="RUN.json", help="keeps this run for a later --against")


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Recognises, compares and prints; exits 1 where a region was lost, 3 where an entry could not be traced."""
    before = None if arguments.against is None else _read(arguments.against)
    rows, status = _recognised(arguments, terminal)
    now = {"schema": SCHEMA, "targets": rows}
    if arguments.save is not None:
        _write(arguments.save, now)
    changes = None if before is None else compared(before, now)
    if changes is not None and changes["lost"]:
        status = max(status, FINDINGS)
    if arguments.json:
        terminal.data(json.dumps(now if changes is None else {**now, **changes}, indent=1, ensure_ascii=False))
    else:
        terminal.data("\n".join(_told(now, changes, terminal)))
    return status


def compared(before: Row, now: Row) -> dict[str, list[dict[str, Any]]]:
    """Lists what only one of two runs has: regions gained and lost, near misses that came and went.

    Entries that one of the runs has not traced say nothing of what was lost in them.
    """
    old, new = (_traced(document) for document in (before, now))
    both = old.keys() & new.keys()
    found: dict[str, list[dict[str, Any]]] = {"gained": [], "lost": [], "near_gained": [], "near_lost": []}
    for target in sorted(new.keys() | old.keys()):
        for near in (False, True):
            mine, theirs = (
                [region for region in run.get(target, ()) if (region["verdict"] == "near_miss") == near]
                for run in (new, old)
            )
            prefix = "near_" if near else ""
            found[f"{prefix}gained"] += _only(target, mine, theirs)
            found[f"{prefix}lost"] += _only(target, theirs, mine) if target in both else []
    gone = [row["target"] for row in before["targets"] if row["target"] not in {r["target"] for r in now["targets"]}]
    return {**found, "missing": [{"target": target} for target in gone]}


def _only(target: str, mine: Iterable[Row], theirs: Iterable[Row]) -> list[dict[str, Any]]:
    """Gives the regions of one run that the other has not, each as often as it is missing there."""
    left = Counter((region["pattern"], region["fingerprint"]) for region in theirs)
    out = []
    for region in mine:
        key = region["pattern"], region["fingerprint"]
        if left[key]:
            left[key] -= 1
        else:
            out.append({"target": target, **region})
    return out


def _traced(document: Row) -> dict[str, Sequence[Row]]:
    return {row["target"]: row["regions"] for row in document["targets"] if row["error"] is None}


def _recognised(arguments: argparse.Namespace, terminal: Terminal) -> tuple[list[dict[str, Any]], int]:
    """Traces every target, found as `topos check` finds them, and gives a row for each entry."""
    rows: list[dict[str, Any]] = []
    replies: list[Row] = []
    status = OK
    with projects(terminal.progress, untrusted=arguments.untrusted) as opened:
        targets = [target for text in arguments.corpus for target in expand(parse_target(text), opened)]
        targets = list(dict.fromkeys(targets))
        for number, target in enumerate(targets):
            workspace = opened.workspace(target.path)
            relative = workspace.relative(target.path)
            terminal.progress(relative, number, len(targets))
            options = request_options(arguments, workspace.configuration, "reference")
            reply = opened.trace(target, {**options, "sources": False})
            replies.append(reply)
            name = f"{relative}:{target.name}" if target.name else relative
            failed = [{"target": name, "error": reply["error"]}] if "error" in reply else []
            for entry in failed or reply["entries"]:
                error = entry.get("error")
                regions = [] if error else [_region(region) for region in entry["document"]["regions"]]
                rows.append({"target": entry["target"], "error": error, "regions": regions})
                status = max(status, exit_code_of(error["code"]) if error else OK)
            if target.path.endswith(".py"):
                opened.agent(workspace).release(target.path)
    if status == OK:
        refuse_unknown_dims(arguments.dim, replies)
    return rows, status


def _region(region: Row) -> dict[str, Any]:
    miss = region["near_miss"]
    differs = None if miss is None else {name: miss[name] for name in _DIFFERS}
    return {**{name: region[name] for name in _KEPT}, "near_miss": differs}


def _told(now: Row, changes: Mapping[str, Sequence[Row]] | None, terminal: Terminal) -> Iterable[str]:
    if changes is None:
        yield from _summary(now, terminal)
        return
    heads = (
        ("gained", "gained", "good"), ("lost", "lost", "warning"), ("near_gained", "nearly matched now", "faint"),
        ("near_lost", "no longer nearly matched", "faint"),
    )  # fmt: skip
    for name, words, colour in heads:
        regions = changes[name]
        if regions:
            yield terminal.paint(f"{words}: {len(regions)}", colour)
        for region in regions:
            verdict = region["verdict"].replace("_", " ")
            yield f"  {place_of(region)}: {shown(region['pattern'])} ({verdict})  {shown(region['target'])}"
            if name.startswith("near"):
                yield from _differs(region)
    for row in changes["missing"]:
        yield f"not in this run: {shown(row['target'])}"
    yield from _errors(now)
    if not any(changes.values()):
        yield f"{_count(now)}: the same regions and near misses as before"


def _summary(now: Row, terminal: Terminal) -> Iterable[str]:
    """Tells by pattern how often it was recognised, with what verdict, and where it almost was."""
    verdicts: dict[str, Counter[str]] = {}
    for row in now["targets"]:
        for region in row["regions"]:
            verdicts.setdefault(region["pattern"], Counter())[region["verdict"]] += 1
    yield terminal.paint(_count(now), "strong")
    for pattern, counted in sorted(verdicts.items()):
        shares = ", ".join(f"{count} {verdict.replace('_', ' ')}" for verdict, count in sorted(counted.items()))
        yield f"  {shown(pattern)}: {shares}"
    for row in now["targets"]:
        for region in row["regions"]:
            if region["verdict"] == "near_miss":
                yield f"  {place_of(region)}: {shown(region['headline'])}  {shown(row['target'])}"
                yield from _differs(region)
    yield from _errors(now)


def _differs(region: Row) -> Iterator[str]:
    """Tells how near it came, and where the first difference stands."""
    miss = region.get("near_miss")
    if miss is None:
        return  # saved before runs told it
    yield f"      {shown(phrases.held(miss['steps_held'], miss['steps'], miss['expected'], miss['found']))}"
    if place_of(miss["span"]) != place_of(region):
        yield f"      {place_of(miss['span'])}: {phrases.differs_here()}"


def _errors(now: Row) -> Iterable[str]:
    for row in now["targets"]:
        if row["error"] is not None:
            yield f"could not be traced: {shown(row['target'])}: {shown(row['error']['message'])}"


def _count(now: Row) -> str:
    rows = [row for row in now["targets"] if row["error"] is None]
    regions = sum(region["verdict"] != "near_miss" for row in rows for region in row["regions"])
    return f"{regions} regions in {len(rows)} {'entry' if len(rows) == 1 else 'entries'}"


def _read(path: str) -> Row:
    """Reads a saved run.

    Raises:
        ConfigurationError: TP505, it is none.
    """
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}", code="TP505") from None
    except ValueError:
        raise ConfigurationError(f"{path} is no JSON; save a run with --save", code="TP505") from None
    if not _is_run(document):
        raise ConfigurationError(f"{path} is no run of {SCHEMA}; save one with --save", code="TP505")
    run: Row = document
    return run


def _is_run(document: Any) -> bool:
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        return False
    rows = document.get("targets")
    return isinstance(rows, list) and all(
        isinstance(row, dict)
        and isinstance(row.get("target"), str)
        and "error" in row
        and isinstance(row.get("regions"), list)
        and all(_is_region(region) for region in row["regions"])
        for row in rows
    )


def _is_region(region: Any) -> bool:
    if not isinstance(region, dict) or not region.keys() >= set(_KEPT):
        return False
    if not (all(isinstance(region[name], str) for name in _TEXTS) and isinstance(region["line"], int)):
        return False
    return region.get("near_miss") is None or _is_difference(region["near_miss"])


def _is_difference(miss: Any) -> bool:
    if not isinstance(miss, dict) or not miss.keys() >= set(_DIFFERS):
        return False
    span = miss["span"]
    numbers = (
        (miss["steps_held"], miss["steps"], span.get("line"), span.get("column")) if isinstance(span, dict) else ()
    )
    texts = (miss["expected"], miss["found"], span.get("path")) if isinstance(span, dict) else (None,)
    return all(isinstance(text, str) for text in texts) and all(isinstance(number, int) for number in numbers)


def _write(path: str, document: Row) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1, ensure_ascii=False)
            file.write("\n")
    except OSError as error:
        raise ConfigurationError(
            f"{os.path.basename(path)} cannot be written: {error.strerror}; name another file", code="TP505"
        ) from None
