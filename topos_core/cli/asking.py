"""What `run` and `bench` share: which target with which inputs and options, and asking its process to run it."""

from __future__ import annotations

import argparse
import os
from typing import Any

from topos_core.cli.options import add_cost, add_dims, add_fidelity, add_machine, add_untrusted, request_options
from topos_core.cli.terminal import Terminal
from topos_core.session.dimensions import refuse_unknown_dims
from topos_core.session.projects import only, projects
from topos_core.session.workspace import parse_target

MACHINE = "host"


def add_running(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments that say what runs."""
    parser.add_argument("target", metavar="TARGET")
    parser.add_argument("--inputs", metavar="FILE.npz", help="arrays by the names of the inputs, or by position")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of made-up inputs and of `example=` (default: 0)"
    )
    add_fidelity(parser)
    add_cost(parser)
    add_machine(parser, MACHINE)
    add_dims(parser)
    add_untrusted(parser)


def ask(what: str, arguments: argparse.Namespace, terminal: Terminal, **more: Any) -> dict[str, Any]:
    """Traces the target, and asks its process to `run` or `bench` it; gives the reply."""
    target = parse_target(arguments.target)
    with projects(terminal.progress, untrusted=arguments.untrusted) as opened:
        workspace = opened.workspace(target.path)
        options = request_options(arguments, workspace.configuration, MACHINE)
        reply = opened.trace(target, {**options, "machine": "reference", "sources": False})
        refuse_unknown_dims(arguments.dim, [reply])
        if "error" in reply:
            return reply
        reply = only(arguments.target, reply)
        if "error" in reply:
            return reply
        agent = opened.agent(workspace)
        answer: dict[str, Any] = {"run": agent.run, "bench": agent.bench}[what](
            reply["target"],
            inputs=os.path.abspath(arguments.inputs) if arguments.inputs else None,
            threads=arguments.threads,
            seed=arguments.seed,
            **{key: options[key] for key in ("fidelity", "cost", "machine")},
            **more,
            progress=terminal.progress,
        )
        return answer
