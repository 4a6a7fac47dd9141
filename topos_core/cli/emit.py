"""Prints a model as StableHLO, with what was taken as named ops; --verify runs it on real compilers."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, Final

from topos_core.cli.main import FINDINGS, OK, exit_code_of
from topos_core.cli.options import add_cost, add_dialect, add_dims, add_observe, add_untrusted, request_options
from topos_core.cli.terminal import Terminal
from topos_core.document.formats.errors import shown
from topos_core.errors import ConfigurationError
from topos_core.session.dimensions import refuse_unknown_dims
from topos_core.session.projects import only, projects
from topos_core.session.workspace import parse_target

_BACKENDS: Final = {"xla": "XLA", "iree": "IREE", "reference": "StableHLO's reference interpreter"}
_VERIFY_SECONDS: Final = 600.0  # compilers take their time, and the limit is there for the user's code


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("target", metavar="TARGET")
    parser.add_argument("-o", "--output", metavar="FILE", help="writes the module there, not to standard output")
    parser.add_argument(
        "--verify",
        action="store_true",
        help="parses the module, runs it on XLA and StableHLO's reference interpreter (on IREE too with --dialect iree), and "
        "prints the largest difference from the recorded ops instead",
    )
    add_dialect(parser)
    add_cost(parser)
    add_dims(parser)
    add_observe(parser)
    add_untrusted(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Emits; gives the exit code."""
    target = parse_target(arguments.target)
    with projects(terminal.progress, untrusted=arguments.untrusted) as opened:
        workspace = opened.workspace(target.path)
        options = {**request_options(arguments, workspace.configuration, "reference"), "consumer": "stablehlo"}
        reply = opened.trace(target, {**options, "sources": False})
        refuse_unknown_dims(arguments.dim, [reply])
        if "error" not in reply:
            entry = only(arguments.target, reply)
            reply = entry
            if "error" not in entry:
                agent = opened.agent(workspace)
                seconds = max(agent.limits.seconds, _VERIFY_SECONDS) if arguments.verify else None
                reply = agent.emit(
                    entry["target"], options, verify=arguments.verify, timeout=seconds, progress=terminal.progress
                )
    if "error" in reply:
        terminal.failure(reply["error"])
        return exit_code_of(reply["error"]["code"])
    if arguments.output is not None:
        _write(arguments.output, reply["text"])
    if arguments.verify:
        return _verification(reply["verification"], terminal)
    if arguments.output is None:
        terminal.data(reply["text"])
    return OK


def _verification(found: Mapping[str, Any], terminal: Terminal) -> int:
    """Prints what verification found; a module that is refused or cannot be run fails the command."""
    if not found["verified"]:
        what = "parsed, not verified" if found["parsed"] else "not parsed"
        terminal.data(f"{what}: {shown(found['error'])}")
        return FINDINGS
    terminal.data(f"parsed, verified; inputs from {shown(found['inputs'])}")
    for row in found["backends"]:
        if row["ran"]:
            terminal.data(
                f"run on {_name(row)}: largest difference from the recorded ops {_figure(row['absolute'])} "
                f"({_figure(row['relative'])} of a result's largest magnitude)"
            )
        else:
            terminal.data(f"not run on {_name(row)}: {shown(row['reason'])}")
    return OK if found["ran"] else FINDINGS


def _name(row: Mapping[str, Any]) -> str:
    return _BACKENDS.get(row["backend"], shown(row["backend"]))


def _figure(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.3g}"


def _write(file: str, text: str) -> None:
    try:
        with open(file, "w", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise ConfigurationError(
            f"{shown(file)} cannot be written: {(error.strerror or str(error)).lower()}", code="TP505"
        ) from None
