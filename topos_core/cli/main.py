"""The command `topos`: finds the subcommand, imports it alone, and turns what it raises into an exit code.

Exit codes: 0 fine, 1 findings that fail, 2 usage or configuration, 3 could not trace, 4 internal error; the highest wins.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Final, NamedTuple, NoReturn

from topos_core.cli.terminal import Terminal, open_terminal
from topos_core.errors import ConfigurationError, ToposError
from topos_core.session.client import Cancelled
from topos_core.session.version import VERSION

OK: Final = 0
FINDINGS: Final = 1
USAGE: Final = 2
UNTRACED: Final = 3
INTERNAL: Final = 4

_INTERRUPTED: Final = 130
_BROKEN_PIPE: Final = 141


class Command(NamedTuple):
    """One subcommand: a module with `configure(parser)` and `run(arguments, terminal)`, or a front end's entry point."""

    summary: str
    module: str | None
    usage: str


COMMANDS: Final = {
    "check": Command("say what was taken, declined and blocked; for CI", "topos_core.cli.check", "PATH...|TARGET..."),
    "plan": Command("print the plan of a model", "topos_core.cli.plan", "TARGET"),
    "emit": Command("print a model as StableHLO", "topos_core.cli.emit", "TARGET"),
    "run": Command("run a model, and compare backends", "topos_core.cli.run", "TARGET"),
    "bench": Command("measure a model and its regions against other frameworks", "topos_core.cli.bench", "TARGET"),
    "explain": Command(
        "explain a line of a model, a pattern or a code; show what runs in phases",
        "topos_core.cli.explain",
        "TARGET[:LINE]|PATTERN|CODE",
    ),
    "view": Command("open the plan in a browser", None, "TARGET..."),
    "lsp": Command("serve editors", None, ""),
    "doctor": Command("say what topos finds on this machine", "topos_core.cli.doctor", ""),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; gives its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    terminal = open_terminal()
    try:
        status = _dispatch(arguments, terminal)
        terminal.clear_progress()
        terminal.out.flush()
        return status
    except SystemExit as error:  # argparse has said what was wrong
        return error.code if isinstance(error.code, int) else OK if error.code is None else USAGE
    except ToposError as error:
        terminal.raised(error)
        return exit_code_of(error.code)
    except (KeyboardInterrupt, Cancelled):
        terminal.message("interrupted")
        return _INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has enough; say nothing at exit
        return _BROKEN_PIPE
    except Exception:
        terminal.message(traceback.format_exc())
        terminal.message("topos itself failed; please report this with the lines above")
        return INTERNAL


def exit_code_of(code: str) -> int:
    """Gives the exit code of a TP code: 3 for TP4xx and an extent that nobody gave, 2 for TP5xx, 4 for what is none."""
    if code == "TP209":
        return UNTRACED
    return UNTRACED if code.startswith("TP4") else USAGE if code.startswith("TP5") else INTERNAL


class Parser(argparse.ArgumentParser):
    """A parser whose errors say both values and the remedy, and exit with 2."""

    def error(self, message: str) -> NoReturn:
        """Writes the error and the way to help."""
        self.exit(USAGE, f"{self.prog}: {message}; see `{self.prog} --help`\n")


def _dispatch(arguments: list[str], terminal: Terminal) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        terminal.data(_help())
        return OK if arguments else USAGE
    if arguments[0] in ("-V", "--version"):
        terminal.data(f"topos {VERSION}")
        return OK
    name, *rest = arguments
    if name not in COMMANDS:
        raise ConfigurationError(f"{name!r} is no command of topos; it has {', '.join(COMMANDS)}", code="TP504")
    command = COMMANDS[name]
    if command.module is None:
        return _front_end(name, rest)
    module = importlib.import_module(command.module)
    parser = Parser(prog=f"topos {name}", description=(module.__doc__ or "").partition("\n")[0], allow_abbrev=False)
    module.configure(parser)
    status: int = module.run(parser.parse_args(rest), terminal)
    return status


def _front_end(name: str, arguments: list[str]) -> int:
    from importlib.metadata import entry_points

    found = next(iter(entry_points(group="topos.front_ends", name=name)), None)
    if found is None:
        raise ConfigurationError(
            f"`topos {name}` is not installed beside topos_core; install topos-inspector with pip", code="TP506"
        )
    status: int | None = found.load()(arguments)
    return status or OK


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name.ljust(width)}  {command.summary}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: topos COMMAND [ARGUMENTS]   (topos COMMAND --help tells more)",
            "",
            "Says for every expression of model code what was recognised there, who took it, who declined it and what",
            "blocked it. A TARGET is path/model.py:name, path/model.py (all marked entries), model.onnx or module.mlir.",
            "",
            *lines,
            "",
            "exit codes: 0 fine, 1 findings that fail, 2 usage or configuration, 3 could not trace, 4 internal error",
        ]
    )
