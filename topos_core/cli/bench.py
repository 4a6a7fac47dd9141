"""Measures a model and its regions: topos, its interpreter, and torch, XLA, onnxruntime and OpenVINO where installed.

Every contender runs in a process of its own and they take turns; with one thread the process' CPU time counts, with
several wall time.
"""

from __future__ import annotations

import argparse
import json
import os

from topos_core.cli.bench_report import draw, report
from topos_core.cli.main import OK, exit_code_of
from topos_core.cli.options import (
    add_cost,
    add_dims,
    add_fidelity,
    add_machine,
    add_untrusted,
    positive,
    request_options,
)
from topos_core.cli.terminal import Terminal
from topos_core.session.dimensions import refuse_unknown_dims
from topos_core.session.projects import only, projects
from topos_core.session.workspace import parse_target

LIMIT_SECONDS = 3600.0
"""A bench may take longer than other requests; compilers take their time."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("target", metavar="TARGET")
    parser.add_argument("--inputs", metavar="FILE.npz", help="arrays by the names of the inputs, or by position")
    parser.add_argument(
        "--with",
        dest="contenders",
        metavar="NAME,...",
        help="who is measured: home, interpreter, torch, torch.compile, xla, onnxruntime, openvino (default: all)",
    )
    parser.add_argument(
        "--threads", type=positive, metavar="N", help="measures with 1 and with N threads (default: the processors)"
    )
    parser.add_argument("--rounds", type=positive, default=3, metavar="N", help="turns of each contender (default: 3)")
    parser.add_argument(
        "--seconds", type=float, default=0.3, metavar="S", help="how long a turn is (default: 0.3); at least 3 calls"
    )
    parser.add_argument(
        "--regions",
        type=int,
        default=8,
        metavar="N",
        help="how many regions are measured alone, slowest first (default: 8)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of made-up inputs and of `example=` (default: 0)"
    )
    parser.add_argument("--json", action="store_true", help="prints `topos.bench/1`")
    parser.add_argument("--png", metavar="FILE", help="draws the whole model's times; needs matplotlib")
    add_fidelity(parser)
    add_cost(parser)
    add_machine(parser, "host")
    add_dims(parser)
    add_untrusted(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Measures and prints; gives the exit code."""
    target = parse_target(arguments.target)
    with projects(terminal.progress, untrusted=arguments.untrusted) as opened:
        workspace = opened.workspace(target.path)
        options = request_options(arguments, workspace.configuration, "host")
        reply = opened.trace(target, {**options, "machine": "reference", "sources": False})
        refuse_unknown_dims(arguments.dim, [reply])
        if "error" not in reply:
            reply = only(arguments.target, reply)
            if "error" not in reply:
                reply = opened.agent(workspace).bench(
                    reply["target"],
                    inputs=os.path.abspath(arguments.inputs) if arguments.inputs else None,
                    contenders=arguments.contenders.split(",") if arguments.contenders else None,
                    threads=arguments.threads,
                    rounds=arguments.rounds,
                    seconds=arguments.seconds,
                    regions=max(0, arguments.regions),
                    seed=arguments.seed,
                    **{key: options[key] for key in ("fidelity", "cost", "machine")},
                    timeout=LIMIT_SECONDS,
                    progress=terminal.progress,
                )
    if "error" in reply:
        terminal.failure(reply["error"])
        return exit_code_of(reply["error"]["code"])
    result = reply["result"]
    terminal.data(json.dumps(result, indent=2, allow_nan=False) if arguments.json else report(result, terminal))
    if arguments.png:
        draw(result, arguments.png)
        terminal.message(f"drew {arguments.png}")
    return OK
