"""Options that several commands share, and how they become the agent's `options`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from topos_core.session.configuration import CONSUMERS, COSTS, DIALECTS, FIDELITIES, Configuration
from topos_core.session.dimensions import DIM, known_dims


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
    """Merges the command line, the project's configuration and the defaults, in this order, into `options` of a request."""

    def chosen(name: str, default: str) -> str:
        return getattr(arguments, name, None) or getattr(configuration, name, None) or default

    options: dict[str, Any] = {
        "consumer": chosen("consumer", "home"),
        "fidelity": chosen("fidelity", "fast"),
        "machine": chosen("machine", machine),
        "cost": chosen("cost", "model"),
        "dialect": chosen("dialect", "portable"),
    }
    if configuration.off:
        options["off"] = list(configuration.off)
    if observe := getattr(arguments, "observe", None):
        options["observe"] = [int(name) if name.lstrip("%").isdecimal() else name for name in observe]
    if dims := known_dims(configuration, getattr(arguments, "dim", None) or ()):
        options["dims"] = dims
    return options


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
