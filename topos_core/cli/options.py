"""Options that several commands share, and how they become the agent's `options`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from topos_core.session.asking import CHOICES, asked_of_plan
from topos_core.session.configuration import CONSUMERS, COSTS, DIALECTS, FIDELITIES, Configuration
from topos_core.session.dimensions import DIM


def add_consumer(parser: argparse.ArgumentParser) -> None:
    """Adds `--consumer`."""
    parser.add_argument(
        "--consumer",
        type=one_of(CONSUMERS),
        metavar="|".join(CONSUMERS),
        help="whose verdicts are shown (default: home)",
    )


def add_cost(parser: argparse.ArgumentParser) -> None:
    """Adds `--cost`."""
    parser.add_argument(
        "--cost",
        type=one_of(COSTS),
        metavar="|".join(COSTS),
        help="`always` takes every legal match, whatever it costs (default: model)",
    )


def add_fidelity(parser: argparse.ArgumentParser) -> None:
    """Adds `--fidelity`."""
    parser.add_argument(
        "--fidelity",
        type=one_of(FIDELITIES),
        metavar="|".join(FIDELITIES),
        help="`exact`: the same bits as the recorded ops; `fast`: inside a measured envelope (default: fast)",
    )


def add_machine(parser: argparse.ArgumentParser, default: str) -> None:
    """Adds `--machine`."""
    parser.add_argument("--machine", metavar="M", help=f"the machine profile that prices regions (default: {default})")


def add_dims(parser: argparse.ArgumentParser) -> None:
    """Adds `--dim`."""
    parser.add_argument("--dim", **DIM)


def add_observe(parser: argparse.ArgumentParser) -> None:
    """Adds `--observe`."""
    parser.add_argument(
        "--observe",
        action="append",
        default=[],
        metavar="NAME",
        help="observes one more value, by its name or number; may be repeated",
    )


def add_dialect(parser: argparse.ArgumentParser) -> None:
    """Adds `--dialect`."""
    parser.add_argument(
        "--dialect",
        type=one_of(DIALECTS),
        metavar="|".join(DIALECTS),
        help="whose StableHLO it is (default: portable)",
    )


def add_untrusted(parser: argparse.ArgumentParser) -> None:
    """Adds `--untrusted`."""
    parser.add_argument(
        "--untrusted",
        action="store_true",
        help="runs only what lies in a folder that you trust; without it, naming a path trusts it",
    )


def request_options(arguments: argparse.Namespace, configuration: Configuration, machine: str) -> dict[str, Any]:
    """Gives the `options` of a request, as the command line says them."""
    chosen: dict[str, Any] = {name: getattr(arguments, name, None) for name in CHOICES}
    if observe := getattr(arguments, "observe", None):
        chosen["observe"] = [int(value) if (value := name.removeprefix("%")).isdecimal() else name for name in observe]
    return asked_of_plan(configuration, chosen, machine=machine, dims=getattr(arguments, "dim", None) or ())


def one_of(choices: Sequence[str]) -> Callable[[str], str]:
    """Makes a reader of one of some words."""

    def read(text: str) -> str:
        if text not in choices:
            raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(choices)}")
        return text

    return read


def positive(text: str) -> int:
    """Reads a whole number above 0."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return int(text)
