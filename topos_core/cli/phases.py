"""`topos explain TARGET[:LINE[:COLUMN]] --phases`: the recorded ops, their groups and the fused loop nests, as text and as diffs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from topos_core.cli.main import OK, exit_code_of
from topos_core.cli.terminal import Terminal
from topos_core.document.formats.errors import shown
from topos_core.document.formats.phases import phase_lines
from topos_core.session.client import Agent
from topos_core.session.workspace import Target

SCHEMA: Final = "topos.phases/1"
Document = Mapping[str, Any]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "--phases",
        action="store_true",
        help="shows what runs in three forms, each marked with what the one before has not: the recorded ops, the group "
        "that they make, its fused loop nest",
    )


def run(
    entries: Sequence[Mapping[str, Any]],
    agent: Agent,
    options: Mapping[str, Any],
    path: str,
    target: Target,
    arguments: argparse.Namespace,
    terminal: Terminal,
) -> int:
    """Asks for the phases of every traced entry and prints them; gives the exit code."""
    rows, status, told = [], OK, 0
    for entry in entries:
        error, groups = entry.get("error"), []
        if error is None:
            values = None if target.line is None else _values_at(entry["document"], path, target)
            if values != []:
                reply = agent.phases(entry["target"], values, options)
                error = reply.get("error")
                groups = [{**group, **_place(entry["document"], group)} for group in reply.get("phases", ())]
        if error is not None:
            status = max(status, exit_code_of(error["code"]))
            if not arguments.json:
                terminal.failure(error)
        rows.append({"target": entry["target"], "error": error, "phases": groups})
        told += len(groups)
    if arguments.json:
        terminal.data(json.dumps({"schema": SCHEMA, "targets": rows}, indent=1, ensure_ascii=False))
        return status
    for row in rows:
        if row["phases"]:
            terminal.data(terminal.paint(shown(row["target"]), "strong"))
            terminal.data("\n".join(phase_lines(row["phases"], terminal.paint)))
    if not told and status == OK:
        where = ":".join(str(part) for part in (path, target.line, target.column) if part is not None)
        terminal.message(f"nothing runs at {where}: no recorded op stands there")
    return status


def _values_at(document: Document, path: str, target: Target) -> list[int]:
    """Lists the ops that stand at a line, and at a column where one is asked for; else those that are called from there."""
    if path not in document["paths"]:
        return []
    index = document["paths"].index(path)
    at = {number for number, frame in enumerate(document["frames"]) if frame[0] == index and _covers(frame, target)}
    own = {number for number, frame in enumerate(document["spans"]) if frame in at}
    called = {number for number, (_, frames) in enumerate(document["locations"]) if at.intersection(frames)}
    places = document["ops"]["location"]
    return _among(places, own) or _among(places, called)


def _among(places: Iterable[int], wanted: set[int]) -> list[int]:
    return [value for value, location in enumerate(places) if location in wanted]


def _covers(frame: Sequence[Any], target: Target) -> bool:
    _, line, column, end_line, end_column = frame[:5]
    assert target.line is not None
    if target.column is None:
        return bool(line <= target.line <= end_line)
    return bool((line, column) <= (target.line, target.column - 1) < (end_line, end_column))


def _place(document: Document, group: Mapping[str, Any]) -> dict[str, Any]:
    """Says where the last op of a group stands, as the document shows it."""
    frame = document["frames"][document["spans"][document["ops"]["location"][group["values"][-1]]]]
    return {"path": document["paths"][frame[0]], "line": frame[1], "column": frame[2]}
