"""Prints the plan of a model: what was taken, declined and blocked, and why."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from topos_core.cli.main import OK, exit_code_of
from topos_core.cli.options import (
    add_consumer,
    add_cost,
    add_dialect,
    add_dims,
    add_fidelity,
    add_machine,
    add_observe,
    add_untrusted,
    request_options,
)
from topos_core.cli.terminal import Terminal
from topos_core.errors import ConfigurationError
from topos_core.session.dimensions import refuse_unknown_dims
from topos_core.session.projects import Projects, only, projects
from topos_core.session.workspace import Target, parse_target


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("target", metavar="TARGET")
    parser.add_argument(
        "--json", action="store_true", help="prints the document `topos.plan/1`, one a line for each entry"
    )
    parser.add_argument("--html", metavar="FILE", help="writes the viewer's page of the plan into one file")
    add_consumer(parser)
    add_fidelity(parser)
    add_cost(parser)
    add_machine(parser, "reference")
    add_dialect(parser)
    add_dims(parser)
    add_observe(parser)
    add_untrusted(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Plans and prints; gives the exit code."""
    from topos_core.document import codec
    from topos_core.document.formats.text import render_plan

    target = parse_target(arguments.target)
    with projects(terminal.progress, untrusted=arguments.untrusted) as opened:
        options = request_options(arguments, opened.workspace(target.path).configuration, "reference")
        reply = opened.trace(target, {**options, "sources": arguments.html is not None or not arguments.json})
        refuse_unknown_dims(arguments.dim, [reply])
        if arguments.html is not None and "error" not in reply:
            _write_html(opened, target, only(arguments.target, reply), options, arguments.html)
    if "error" in reply:
        terminal.failure(reply["error"])
        return exit_code_of(reply["error"]["code"])
    status = OK
    for entry in reply["entries"]:
        if "error" in entry:
            terminal.failure(entry["error"])
            status = max(status, exit_code_of(entry["error"]["code"]))
        else:
            terminal.data(
                codec.dump(entry["document"])
                if arguments.json
                else render_plan(entry["document"], colour=terminal.colour)
            )
    return status


def _write_html(
    opened: Projects, target: Target, entry: Mapping[str, Any], options: Mapping[str, Any], file: str
) -> None:
    """Writes one entry's plan, and what it emits, with the page's own exporter, which core finds by its entry point."""
    from importlib.metadata import entry_points

    if "error" in entry:
        return  # told with the others
    found = next(iter(entry_points(group="topos.exporters", name="html")), None)
    if found is None:
        raise ConfigurationError(
            "`topos plan --html` is not installed beside topos_core; install topos-inspector with pip", code="TP506"
        )
    agent = opened.agent(opened.workspace(target.path))
    emitted = agent.emit(entry["target"], {**options, "consumer": "stablehlo"}, progress=opened.progress)
    text: str = found.load()(entry["document"], emitted.get("text"), emitted.get("error", {}).get("message"))
    try:
        with open(file, "w", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise ConfigurationError(
            f"{file} cannot be written: {(error.strerror or str(error)).lower()}", code="TP505"
        ) from None
