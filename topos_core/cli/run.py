"""Runs a model with this machine's kernels, with the interpreter or with XLA, and tells time, outputs and differences."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import Any

from topos_core.cli.asking import add_running, ask
from topos_core.cli.main import FINDINGS, OK, exit_code_of
from topos_core.cli.options import one_of, positive
from topos_core.cli.terminal import Terminal
from topos_core.document.formats.errors import shown
from topos_core.session.running import BACKENDS


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    add_running(parser)
    parser.add_argument(
        "--backend", type=one_of(BACKENDS), default="home", metavar="|".join(BACKENDS), help="default: home"
    )
    parser.add_argument(
        "--compare",
        action="store_true",
        help="compares with the interpreter; exits 1 where the fidelity does not allow the difference",
    )
    parser.add_argument("--threads", type=positive, metavar="N", help="threads that kernels may use")
    parser.add_argument("--json", action="store_true", help="prints the figures as JSON")


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Runs and prints; gives the exit code."""
    reply = ask("run", arguments, terminal, backend=arguments.backend, compare=arguments.compare)
    if "error" in reply:
        terminal.failure(reply["error"])
        return exit_code_of(reply["error"]["code"])
    result = reply["result"]
    terminal.data(
        json.dumps(result, indent=2, allow_nan=False) if arguments.json else "\n".join(_told(result, terminal))
    )
    compared = result["compare"]
    return FINDINGS if compared is not None and not compared["inside"] else OK


def _told(result: Mapping[str, Any], terminal: Terminal) -> Iterator[str]:
    seconds = result["seconds"]
    count = f"{result['taken']} {'region' if result['taken'] == 1 else 'regions'} taken, "
    taken = count if result["backend"] != "interpreter" else ""
    yield (
        terminal.paint(shown(result["target"]), "strong")
        + f"  on {shown(result['backend'])}, {taken}inputs from {shown(result['inputs'])}"
    )
    yield f"  {_times(seconds)}"
    for row in result["outputs"]:
        spread = f"{_figure(row['minimum'])} to {_figure(row['maximum'])}, mean {_figure(row['mean'])}"
        odd = f", {row['not_finite']} not finite" if row["not_finite"] else ""
        yield f"  {shown(row['name'])}: {shown(row['type'])}, {spread}{odd}"
    if result["metric"] is not None:
        yield f"  metric {result['metric']:.6g}"
    compared = result["compare"]
    if compared is None:
        return
    for row in compared["outputs"]:
        yield "  " + terminal.paint(
            f"{shown(row['name'])} against {shown(compared['against'])}: {shown(row['sentence'])}",
            "good" if row["inside"] else "error",
        )
    metric = f", metric {compared['metric']:.6g}" if compared["metric"] is not None else ""
    yield f"  {shown(compared['against'])}: {_times(compared['seconds'])}{metric}"


def _times(seconds: Mapping[str, Any]) -> str:
    return f"first run {_time(seconds['first'])}, then {_time(seconds['median'])} (measured)"


def _time(number: Mapping[str, Any]) -> str:
    seconds = number["value"]
    return (
        f"{seconds:.3g} s"
        if seconds >= 1
        else f"{seconds * 1e3:.3g} ms"
        if seconds >= 1e-3
        else f"{seconds * 1e6:.3g} us"
    )


def _figure(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.4g}"
