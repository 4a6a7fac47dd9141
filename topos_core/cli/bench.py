"""Measures a model and its regions: topos, its interpreter, and torch, XLA, onnxruntime and OpenVINO where installed.

Every contender runs in a process of its own and they take turns; with one thread the process' CPU time counts, with
several wall time.
"""

from __future__ import annotations

import argparse
import json

from topos_core.cli.asking import add_running, ask
from topos_core.cli.bench_report import draw, report
from topos_core.cli.main import OK, exit_code_of
from topos_core.cli.options import positive
from topos_core.cli.terminal import Terminal

LIMIT_SECONDS = 3600.0
"""A bench may take longer than other requests; compilers take their time."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    add_running(parser)
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
    parser.add_argument("--json", action="store_true", help="prints `topos.bench/1`")
    parser.add_argument("--png", metavar="FILE", help="draws the whole model's times; needs matplotlib")


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Measures and prints; gives the exit code."""
    reply = ask(
        "bench", arguments, terminal,
        contenders=arguments.contenders.split(",") if arguments.contenders else None, rounds=arguments.rounds,
        seconds=arguments.seconds, regions=max(0, arguments.regions), timeout=LIMIT_SECONDS,
    )  # fmt: skip
    if "error" in reply:
        terminal.failure(reply["error"])
        return exit_code_of(reply["error"]["code"])
    result = reply["result"]
    terminal.data(json.dumps(result, indent=2, allow_nan=False) if arguments.json else report(result, terminal))
    if arguments.png:
        draw(result, arguments.png)
        terminal.message(f"drew {arguments.png}")
    return OK
