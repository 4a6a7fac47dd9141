"""Says for each entry what was taken, declined and blocked, and fails on the codes of --fail-on.

A PATH is a file or a folder, which is walked for marked files; a TARGET names one entry.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from topos_core.cli.main import FINDINGS, INTERNAL, OK, exit_code_of
from topos_core.cli.options import (
    add_consumer,
    add_cost,
    add_dims,
    add_fidelity,
    add_untrusted,
    one_of,
    request_options,
)
from topos_core.cli.report import report
from topos_core.cli.terminal import Terminal
from topos_core.errors import ConfigurationError, ToposError
from topos_core.session.configuration import CODE_FORM
from topos_core.session.dimensions import refuse_unknown_dims
from topos_core.session.messages import failure
from topos_core.session.projects import Projects, expand, projects
from topos_core.session.suppression import suppress, unused_suppressions
from topos_core.session.workspace import Target, parse_target

FORMATS: Final = ("text", "json")
DEFAULT_FAIL_ON: Final = ("TP3xx",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("targets", nargs="+", metavar="PATH|TARGET")
    parser.add_argument(
        "--format",
        action="append",
        type=_format,
        metavar="FORMAT[=FILE]",
        help=f"one of {', '.join(FORMATS)} (default: text), to standard output or a file; may be repeated",
    )
    parser.add_argument(
        "--fail-on",
        type=_codes,
        metavar="CODES",
        help="codes with which the command exits 1, as TP101,TP3xx (default: TP3xx)",
    )
    parser.add_argument("--exit-zero", action="store_true", help="findings never fail the command")
    parser.add_argument(
        "--prove", action="store_true", help="proves that every match is what was recorded; exits 4 where one is not"
    )
    add_consumer(parser)
    add_fidelity(parser)
    add_cost(parser)
    add_dims(parser)
    add_untrusted(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Checks and reports; gives the exit code."""
    formats: list[tuple[str, str | None]] = arguments.format or [("text", None)]
    if sum(file is None for _, file in formats) > 1:
        raise ConfigurationError(
            "--format writes two formats to standard output; give one of them a file", code="TP504"
        )
    rows: list[dict[str, Any]] = []
    status = OK
    with projects(terminal.progress, untrusted=arguments.untrusted) as opened:
        targets: list[Target] = []
        for text in arguments.targets:
            try:
                targets += expand(parse_target(text), opened)
            except ToposError as error:  # of this one: the others are still told
                rows.append(_row(text, error=failure(error.code, error.message)))
        targets = list(dict.fromkeys(targets))
        status = _status(rows, arguments, None)
        replies: list[Mapping[str, Any]] = []
        for number, target in enumerate(targets):
            workspace = opened.workspace(target.path)
            terminal.progress(workspace.relative(target.path), number, len(targets))
            options = request_options(arguments, workspace.configuration, "reference")
            if arguments.prove:
                options["prove"] = True
            reply = opened.trace(target, {**options, "sources": False})
            replies.append(reply)
            found = _check(opened, target, reply)
            rows += found
            status = max(status, _status(found, arguments, workspace.configuration.fail_on))
            if target.path.endswith(".py"):
                opened.agent(workspace).release(target.path)
    if not any(row["error"] for row in rows):
        refuse_unknown_dims(arguments.dim, replies)
    if all(form != "text" for form, file in formats if file is None):
        for row in rows:  # nobody reads JSON in a log
            if row["error"] is not None:
                terminal.failure(row["error"])
    document = {"schema": "topos.check/1", "targets": rows}
    for form, file in formats:
        _write(form, file, document, terminal)
    return status


def _check(opened: Projects, target: Target, reply: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Gives a row of `topos.check/1` for each entry of a traced file, or one for the file where it failed as a whole."""
    workspace = opened.workspace(target.path)
    relative = workspace.relative(target.path)
    if "error" in reply:
        name = f"{relative}:{target.name}" if target.name else relative
        return [_row(name, error=reply["error"])]
    comments: dict[str, tuple[Any, ...]] = {}
    used: frozenset[Any] = frozenset()
    switched: set[int] = set()
    unknown: dict[str, str] = {}
    rows: list[dict[str, Any]] = []
    for entry in reply["entries"]:
        if "error" in entry:
            rows.append(_row(entry["target"], error=entry["error"]))
            continue
        document = entry["document"]
        for path in document["paths"]:
            if path not in comments:
                comments[path] = _comments(opened, target, path)
        switched.update(entry.get("off", ()))
        unknown.update(entry.get("off_unknown", {}))
        kept = suppress(document["findings"], comments)
        used |= kept.used
        row = _row(entry["target"], document=document, findings=kept.findings)
        if "proofs" in entry:
            row["proofs"] = entry["proofs"]
        rows.append(row)
    complete = target.name is None and all("error" not in entry for entry in reply["entries"])
    if complete and rows:  # an entry that was not traced may be what the comment is for
        rows[0]["findings"] = rows[0]["findings"] + unused_suppressions(
            relative, comments.get(relative, ()), used, frozenset(switched), unknown
        )
    return rows


def _comments(opened: Projects, target: Target, path: str) -> tuple[Any, ...]:
    """Reads the comments of a file that a document names; none of one that is not the project's or cannot be read."""
    workspace = opened.workspace(target.path)
    full = os.path.join(workspace.root, path)
    if not os.path.isfile(full) or not path.endswith(".py"):
        return ()
    try:
        return workspace.marks(full).comments
    except ToposError:
        return ()  # the traced file's own errors are told by the trace; another file's comments are that file's business


def _row(
    target: str,
    *,
    document: Mapping[str, Any] | None = None,
    findings: Sequence[Mapping[str, Any]] = (),
    error: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    empty = {"taken": 0, "declined": 0, "blocked": 0, "near_miss": 0, "ops": 0, "opaque": 0}
    return {
        "target": target,
        "traced": document is not None,
        "error": error,
        "metric": None,
        "counts": document["counts"] if document is not None else empty,
        "findings": list(findings),
        "regions": document["regions"] if document is not None else [],
    }


def _status(
    rows: Iterable[Mapping[str, Any]], arguments: argparse.Namespace, configured: tuple[str, ...] | None
) -> int:
    fail_on = arguments.fail_on or configured or DEFAULT_FAIL_ON
    status = OK
    for row in rows:
        if row["error"] is not None:
            status = max(status, exit_code_of(row["error"]["code"]))
        elif any(proof["verdict"] == "refuted" for proof in row.get("proofs", ())):
            status = max(status, INTERNAL)
        elif not arguments.exit_zero and any(_fails(finding["code"], fail_on) for finding in row["findings"]):
            status = max(status, FINDINGS)
    return status


def _fails(code: str, fail_on: Iterable[str]) -> bool:
    return any(re.fullmatch(each.replace("x", r"\d"), code) for each in fail_on)


def _write(form: str, file: str | None, document: Mapping[str, Any], terminal: Terminal) -> None:
    from topos_core.document import codec

    if form == "json":
        written = codec.dump(document, indent=2)
    else:
        written = report(document, terminal if file is None else replace(terminal, colour=False))
    if file is None:
        terminal.data(written)
        return
    try:
        with open(file, "w", encoding="utf-8") as stream:
            stream.write(written if written.endswith("\n") else written + "\n")
    except OSError as error:
        raise ConfigurationError(
            f"{file} cannot be written: {(error.strerror or str(error)).lower()}", code="TP505"
        ) from None


def _format(text: str) -> tuple[str, str | None]:
    form, separator, file = text.partition("=")
    one_of(FORMATS)(form)
    if separator and not file:
        raise argparse.ArgumentTypeError(f"{text!r} names no file after `=`")
    return form, file or None


def _codes(text: str) -> tuple[str, ...]:
    codes = tuple(part.strip() for part in text.split(",") if part.strip())
    wrong = next((code for code in codes if not CODE_FORM.match(code)), None)
    if wrong is not None or not codes:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of codes; write TP101,TP3xx")
    return codes
