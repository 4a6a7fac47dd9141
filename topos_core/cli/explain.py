"""Explains what happened at a line of a model, what a pattern is, or what a code means."""

from __future__ import annotations

import argparse
import difflib
import os
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from topos_core.cli.main import OK, exit_code_of
from topos_core.cli.options import add_consumer, add_cost, add_dims, add_fidelity, add_untrusted, request_options
from topos_core.cli.terminal import Terminal
from topos_core.document.codes import CODES, WORDS
from topos_core.document.formats.errors import place_of, shown
from topos_core.errors import ConfigurationError
from topos_core.session.dimensions import refuse_unknown_dims
from topos_core.session.projects import projects
from topos_core.session.workspace import Target, parse_target


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("subject", metavar="TARGET[:LINE]|PATTERN|CODE")
    add_consumer(parser)
    add_fidelity(parser)
    add_cost(parser)
    add_dims(parser)
    add_untrusted(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Prints the explanation; gives the exit code."""
    subject = arguments.subject
    code = WORDS.get(subject, subject.upper())
    if code in CODES:
        terminal.data(_code(code, terminal))
        return OK
    from topos_core.matching.catalog import patterns

    known = patterns()
    if subject in known:
        terminal.data(known[subject].documentation.strip())
        return OK
    if not os.path.exists(subject) and ":" not in subject:
        raise ConfigurationError(_unknown(subject, [*known, *CODES, *WORDS]), code="TP505")
    return _explain_target(parse_target(subject), arguments, terminal)


def _explain_target(target: Target, arguments: argparse.Namespace, terminal: Terminal) -> int:
    with projects(terminal.progress, untrusted=arguments.untrusted) as opened:
        workspace = opened.workspace(target.path)
        options = request_options(arguments, workspace.configuration, "reference")
        reply = opened.trace(Target(target.path, target.name), {**options, "sources": False})
        refuse_unknown_dims(arguments.dim, [reply])
        relative = workspace.relative(target.path)
    if "error" in reply:
        terminal.failure(reply["error"])
        return exit_code_of(reply["error"]["code"])
    status = OK
    told = 0
    for entry in reply["entries"]:
        if "error" in entry:
            terminal.failure(entry["error"])
            status = max(status, exit_code_of(entry["error"]["code"]))
            continue
        told_here = {
            finding["region"]
            for finding in entry["document"]["findings"]
            if finding["path"] == relative and finding["line"] == target.line
        }
        regions = [
            region
            for region in entry["document"]["regions"]
            if target.line is None or region["id"] in told_here or _covers(region, relative, target.line)
        ]
        if regions:
            terminal.data(terminal.paint(shown(entry["target"]), "strong"))
        for region in regions:
            terminal.data("\n".join(_region(region, entry["document"], terminal)))
        told += len(regions)
    if not told and status == OK:
        where = f"{relative}:{target.line}" if target.line else relative
        terminal.message(f"nothing was recognised at {where}: its ops run as recorded")
    return status


def _covers(region: Mapping[str, Any], path: str, line: int) -> bool:
    return any(span["path"] == path and span["line"] <= line <= span["end_line"] for span in region["spans"])


def _region(region: Mapping[str, Any], document: Mapping[str, Any], terminal: Terminal) -> Iterator[str]:
    code = f" {region['code']}" if region["code"] else ""
    colour = {"taken": "good", "blocked": "warning"}.get(region["verdict"], "faint")
    yield f"  {place_of(region)}: {terminal.paint(region['verdict'].replace('_', ' ') + code, colour)}  {shown(region['headline'])}"
    yield f"      {shown(region['reason'])}"
    for detail in region["details"]:
        yield f"      {shown(detail)}"
    if region["facts"]:
        yield "      " + ", ".join(f"{shown(name)} {shown(str(value))}" for name, value in region["facts"].items())
    for name, number in region["cost"].items():
        yield f"      {shown(name).replace('_', ' ')}: {_figure(number)}"
    for observation in region["observations"]:
        row = document["observations"][observation]
        yield f"      read at {place_of(row)} ({shown(row['kind'])}{' ' + shown(row['name']) if row['name'] else ''})"
    miss = region["near_miss"]
    if miss:
        yield f"      {miss['steps_held']} of {miss['steps']} steps held; expected {shown(miss['expected'])}, found {shown(miss['found'])}"
    if region["action"]:
        yield f"      do: {shown(region['action'])}"
    for consumer, other in region["others"].items():
        yield f"      {shown(consumer)}: {shown(other['reason'])}"


def _figure(number: Mapping[str, Any]) -> str:
    value = number["value"]
    text = f"{value:,.0f}" if isinstance(value, int) or value == int(value) else f"{value:.4g}"
    return f"{text} {shown(number['unit'])} ({shown(number['basis'])})"


def _code(code: str, terminal: Terminal) -> str:
    entry = CODES[code]
    head = terminal.paint(f"{entry.code} {entry.word}", "strong")
    return "\n".join([f"{head}: {entry.title}", "", *textwrap.wrap(entry.explanation, 100)])


def _unknown(subject: str, known: list[str]) -> str:
    near = difflib.get_close_matches(subject, known, 3)
    hint = (
        f"; did you mean {' or '.join(near)}"
        if near
        else "; name a target, a pattern such as convolution, or a code such as TP101"
    )
    return f"{subject!r} is no file, pattern or code{hint}"
