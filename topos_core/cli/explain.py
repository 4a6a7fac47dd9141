"""Explains what happened at a line of a model, what a pattern is, or what a code means; `--corpus` compares whole folders.

`--phases` shows what runs in its three forms instead.
"""

from __future__ import annotations

import argparse
import difflib
import os
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from topos_core.cli import corpus, phases
from topos_core.cli.main import OK, exit_code_of
from topos_core.cli.options import add_consumer, add_cost, add_dims, add_fidelity, add_untrusted, request_options
from topos_core.cli.terminal import Terminal
from topos_core.document import phrases
from topos_core.document.codes import CODES, WORDS
from topos_core.document.formats.errors import place_of, shown
from topos_core.document.formats.text import figures_of, spared, title_of
from topos_core.errors import ConfigurationError
from topos_core.session.dimensions import refuse_unknown_dims
from topos_core.session.entries import split_lines
from topos_core.session.projects import projects
from topos_core.session.sources import LISTED, read_source
from topos_core.session.workspace import Target, parse_target


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("subject", nargs="?", metavar="TARGET[:LINE[:COLUMN]]|PATTERN|CODE")
    phases.configure(parser)
    corpus.configure(parser)
    parser.add_argument("--json", action="store_true", help="prints what --phases or --corpus tells as JSON")
    add_consumer(parser)
    add_fidelity(parser)
    add_cost(parser)
    add_dims(parser)
    add_untrusted(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Prints the explanation; gives the exit code."""
    subject = arguments.subject
    if arguments.corpus:
        if subject is not None or arguments.phases:
            other = repr(subject) if subject is not None else "--phases"
            raise ConfigurationError(f"--corpus stands alone; drop {other}, or --corpus", code="TP504")
        return corpus.run(arguments, terminal)
    for name in ("against", "save"):
        if getattr(arguments, name):
            raise ConfigurationError(f"--{name} belongs to --corpus FOLDER; name one, or drop --{name}", code="TP504")
    if arguments.json and not arguments.phases:
        raise ConfigurationError(
            "--json belongs to --phases or --corpus FOLDER; name one, or drop --json", code="TP504"
        )
    if subject is None:
        raise ConfigurationError("name a target, a pattern or a code to explain, or --corpus FOLDER", code="TP504")
    code = WORDS.get(subject, subject.upper())
    if code in CODES:
        _refuse_phases(subject, arguments)
        terminal.data(_code(code, terminal))
        return OK
    from topos_core.matching.catalog import patterns

    known = patterns()
    if subject in known:
        _refuse_phases(subject, arguments)
        terminal.data(known[subject].documentation.strip())
        return OK
    if not os.path.exists(subject) and ":" not in subject:
        raise ConfigurationError(_unknown(subject, [*known, *CODES, *WORDS]), code="TP505")
    return _explain_target(parse_target(subject, place=True), arguments, terminal)


def _explain_target(target: Target, arguments: argparse.Namespace, terminal: Terminal) -> int:
    listed = target.path.endswith(LISTED)
    if target.line is not None and os.path.isfile(target.path) and not listed:
        _check_place(target, read_source(target.path))
    with projects(terminal.progress, untrusted=arguments.untrusted) as opened:
        workspace = opened.workspace(target.path)
        options = request_options(arguments, workspace.configuration, "reference")
        reply = opened.trace(Target(target.path, target.name), {**options, "sources": listed})
        refuse_unknown_dims(arguments.dim, [reply])
        relative = workspace.relative(target.path)
        if arguments.phases and "error" not in reply:
            if target.line is not None and listed:
                _check_listed(target, reply, relative)
            agent = opened.agent(workspace)
            return phases.run(reply["entries"], agent, options, relative, target, arguments, terminal)
    if "error" in reply:
        terminal.failure(reply["error"])
        return exit_code_of(reply["error"]["code"])
    if target.line is not None and listed:
        _check_listed(target, reply, relative)
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
            if finding["path"] == relative and finding["line"] == target.line and _in_columns(finding, target)
        }
        regions = [
            region
            for region in entry["document"]["regions"]
            if target.line is None or region["id"] in told_here or _covers(region, relative, target)
        ]
        if regions:
            terminal.data(terminal.paint(shown(entry["target"]), "strong"))
        for region in regions:
            terminal.data("\n".join(_region(region, entry["document"], terminal)))
        told += len(regions)
    if not told and status == OK:
        where = ":".join(str(part) for part in (relative, target.line, target.column) if part is not None)
        documents = (entry["document"] for entry in reply["entries"])
        stands = target.line is None or any(_has_ops(document, relative, target) for document in documents)
        terminal.message(
            f"nothing was recognised at {where}: its ops run as recorded" if stands else f"no op comes from {where}"
        )
    return status


def _has_ops(document: Mapping[str, Any], path: str, target: Target) -> bool:
    """Says whether an expression on the way to an op stands at the line, and at the column where one is asked for."""
    fields = "line", "column", "end_line", "end_column"
    return any(
        document["paths"][at] == path and _stands(dict(zip(fields, places, strict=True)), target)
        for at, *places, _, _ in document["frames"]
    )


def _refuse_phases(subject: str, arguments: argparse.Namespace) -> None:
    if arguments.phases:
        text = f"--phases shows what runs in a model, and {subject} is none; name a target, or drop --phases"
        raise ConfigurationError(text, code="TP504")


def _check_listed(target: Target, reply: Mapping[str, Any], path: str) -> None:
    """Refuses a place that the text of a model file has not: that is the text which its lines count in."""
    for document in (entry["document"] for entry in reply["entries"] if "error" not in entry):
        _check_place(target, str(document["sources"][document["paths"].index(path)]))


def _check_place(target: Target, text: str) -> None:
    """Refuses a line that the text has not, and a column that its line has not.

    Raises:
        ConfigurationError: TP505, with what the text has.
    """
    assert target.line is not None
    name = os.path.basename(target.path)
    lines = split_lines(text)
    if len(lines) > 1 and not lines[-1]:
        del lines[-1]  # what stands behind the last line end is no line to a person
    if not 1 <= target.line <= len(lines):
        raise ConfigurationError(f"{name} has lines 1 to {len(lines)}, not {target.line}", code="TP505")
    columns = len(lines[target.line - 1]) + 1
    if target.column is not None and not 1 <= target.column <= columns:
        text = f"line {target.line} of {name} has columns 1 to {columns}, not {target.column}"
        raise ConfigurationError(text, code="TP505")


def _covers(region: Mapping[str, Any], path: str, target: Target) -> bool:
    """Says whether one of a region's expressions stands at the line, and at the column where one is asked for."""
    return any(span["path"] == path and _stands(span, target) for span in region["spans"])


def _stands(span: Mapping[str, Any], target: Target) -> bool:
    line = target.line
    return line is not None and span["line"] <= line <= span["end_line"] and _in_columns(span, target)


def _in_columns(span: Mapping[str, Any], target: Target) -> bool:
    if target.line is None or target.column is None:
        return True
    at = target.line, target.column - 1
    return (span["line"], span["column"]) <= at < (span["end_line"], span["end_column"])


def _region(region: Mapping[str, Any], document: Mapping[str, Any], terminal: Terminal) -> Iterator[str]:
    code = f" {region['code']}" if region["code"] else ""
    colour = {"taken": "good", "blocked": "warning"}.get(region["verdict"], "faint")
    yield f"  {place_of(region)}: {terminal.paint(region['verdict'].replace('_', ' ') + code, colour)}  {shown(title_of(region))}"
    yield f"      {shown(region['reason'])}"
    for detail in region["details"]:
        yield f"      {shown(detail)}"
    if region["facts"]:
        yield "      " + ", ".join(f"{shown(name)} {shown(str(value))}" for name, value in region["facts"].items())
    for line in (*figures_of(region, document["machine"]), *spared(region, document)):
        yield f"      {shown(line)}"
    for observation in (*region["observations"], *region["would_block"]):
        row = document["observations"][observation]
        yield f"      read at {place_of(row)} ({shown(row['kind'])}{' ' + shown(row['name']) if row['name'] else ''})"
    miss = region["near_miss"]
    if miss and place_of(miss["span"]) != place_of(region):
        yield f"      {place_of(miss['span'])}: {phrases.differs_here()}"
    if region["flips_if"]:
        yield f"      {shown(region['flips_if']['text'])}"
    if region["action"]:
        yield f"      you can: {shown(region['action'])}"
    for consumer, other in region["others"].items():
        yield f"      {shown(consumer)}: {shown(other['reason'])}"


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
