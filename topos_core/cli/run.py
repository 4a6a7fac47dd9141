"""Runs a model with this machine's kernels, with the interpreter or with XLA, and tells time, outputs and differences."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from topos_core.cli.main import FINDINGS, OK, exit_code_of
from topos_core.cli.options import (
    add_cost,
    add_dims,
    add_fidelity,
    add_machine,
    add_untrusted,
    one_of,
    positive,
    request_options,
)
from topos_core.cli.terminal import Terminal
from topos_core.document.formats.errors import shown
from topos_core.session.dimensions import refuse_unknown_dims
from topos_core.session.projects import only, projects
from topos_core.session.running import BACKENDS
from topos_core.session.workspace import parse_target


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("target", metavar="TARGET")
    parser.add_argument("--inputs", metavar="FILE.npz", help="arrays by the names of the inputs, or by position")
    parser.add_argument(
        "--backend", type=one_of(BACKENDS), default="home", metavar="|".join(BACKENDS), help="default: home"
    )
    parser.add_argument(
        "--compare",
        action="store_true",
        help="compares with the interpreter; exits 1 where the fidelity does not allow the difference",
    )
    parser.add_argument("--threads", type=positive, metavar="N", help="threads that kernels may use")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of made-up inputs and of `example=` (default: 0)"
    )
    parser.add_argument("--json", action="store_true", help="prints the figures as JSON")
    add_fidelity(parser)
    add_cost(parser)
    add_machine(parser, "host")
    add_dims(parser)
    add_untrusted(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Runs and prints; gives the exit code."""
    target = parse_target(arguments.target)
    with projects(terminal.progress, untrusted=arguments.untrusted) as opened:
        workspace = opened.workspace(target.path)
        options = request_options(arguments, workspace.configuration, "host")
        reply = opened.trace(target, {**options, "machine": "reference", "sources": False})
        refuse_unknown_dims(arguments.dim, [reply])
        if "error" not in reply:
            reply = only(arguments.target, reply)
            if "error" not in reply:
                reply = opened.agent(workspace).run(
                    reply["target"],
                    backend=arguments.backend,
                    inputs=os.path.abspath(arguments.inputs) if arguments.inputs else None,
                    compare=arguments.compare,
                    threads=arguments.threads,
                    seed=arguments.seed,
                    **{key: options[key] for key in ("fidelity", "cost", "machine")},
                    progress=terminal.progress,
                )
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
