"""The command `topos`: finds the subcommand, imports it alone, and turns what it raises into an exit code.

Exit codes: 0 fine, 1 findings that fail, 2 usage or configuration, 3 could not trace, 4 internal error; the highest wins. A command that is
told to stop ends with its children: with 130 for Ctrl-C and 143 for SIGTERM, `view` with 0, since that is its usual end, and `lsp` with 1.

What it needs is imported once signals are taken: an interrupt meets the first tenth of a second as often as any other.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from topos_core.cli.terminal import Terminal

OK: Final = 0
FINDINGS: Final = 1
USAGE: Final = 2
UNTRACED: Final = 3
INTERNAL: Final = 4

_INTERRUPTED: Final = 128 + signal.SIGINT
_TERMINATED: Final = 128 + signal.SIGTERM
_BROKEN_PIPE: Final = 141


class Command(NamedTuple):
    """One subcommand: a module with `configure(parser)` and `run(arguments, terminal)`, or a front end's entry point.

    `stopped` is the exit code of a server that a signal ends.
    """

    summary: str
    module: str | None
    usage: str
    stopped: int | None = None


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
    "view": Command("open the plan in a browser", None, "TARGET...", stopped=OK),
    "lsp": Command("serve editors", None, "", stopped=FINDINGS),
    "doctor": Command("say what topos finds on this machine", "topos_core.cli.doctor", ""),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; gives its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    stopped = COMMANDS[arguments[0]].stopped if arguments and arguments[0] in COMMANDS else None
    try:
        with _signals(stopped):
            return _guarded(arguments)
    except KeyboardInterrupt:  # before there was a terminal, or a second one on the way out
        sys.stderr.write("interrupted\n")
        return _INTERRUPTED
    except SystemExit as error:  # argparse has said what was wrong, or SIGTERM came
        return error.code if isinstance(error.code, int) else OK if error.code is None else USAGE


def exit_code_of(code: str) -> int:
    """Gives the exit code of a TP code: 3 for TP4xx and an extent that nobody gave, 2 for TP5xx, 4 for what is none."""
    if code == "TP209":
        return UNTRACED
    return UNTRACED if code.startswith("TP4") else USAGE if code.startswith("TP5") else INTERNAL


@contextlib.contextmanager
def _signals(stopped: int | None) -> Iterator[None]:
    """Has SIGTERM raise, so that what was started is ended; both signals end a server at once until it takes them itself."""

    def leave(*_: object) -> None:
        os._exit(stopped or OK)  # nothing is started yet, and an exception would be told by whatever import it meets

    def terminate(*_: object) -> None:
        sys.exit(_TERMINATED)

    taken = {signal.SIGTERM: terminate} if stopped is None else {signal.SIGINT: leave, signal.SIGTERM: leave}
    kept: dict[int, Any] = {}
    with contextlib.suppress(ValueError):  # only the main thread may take signals
        kept = {number: signal.signal(number, handler) for number, handler in taken.items()}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def _guarded(arguments: list[str]) -> int:
    from topos_core.cli.terminal import open_terminal
    from topos_core.errors import ToposError
    from topos_core.session.client import Cancelled

    terminal = open_terminal()
    try:
        status = _dispatch(arguments, terminal)
        terminal.clear_progress()
        terminal.out.flush()
        return status
    except ToposError as error:
        terminal.raised(error)
        return exit_code_of(error.code)
    except (KeyboardInterrupt, Cancelled):
        terminal.message("interrupted")
        return _INTERRUPTED
    except SystemExit:
        terminal.clear_progress()
        raise
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has enough; say nothing at exit
        return _BROKEN_PIPE
    except Exception:
        import traceback

        terminal.message(traceback.format_exc())
        terminal.message("topos itself failed; please report this with the lines above")
        return INTERNAL


def _dispatch(arguments: list[str], terminal: Terminal) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        terminal.data(_help())
        return OK if arguments else USAGE
    if arguments[0] in ("-V", "--version"):
        from topos_core.session.version import VERSION

        terminal.data(f"topos {VERSION}")
        return OK
    name, *rest = arguments
    if name not in COMMANDS:
        from topos_core.errors import ConfigurationError

        raise ConfigurationError(f"{name!r} is no command of topos; it has {', '.join(COMMANDS)}", code="TP504")
    command = COMMANDS[name]
    if command.module is None:
        return _front_end(name, rest)
    import importlib

    from topos_core.cli.parser import Parser

    module = importlib.import_module(command.module)
    parser = Parser(prog=f"topos {name}", description=(module.__doc__ or "").partition("\n")[0], allow_abbrev=False)
    module.configure(parser)
    status: int = module.run(parser.parse_args(rest), terminal)
    return status


def _front_end(name: str, arguments: list[str]) -> int:
    from importlib.metadata import entry_points

    from topos_core.errors import ConfigurationError

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
            "exit codes: 0 fine, 1 findings that fail, 2 usage or configuration, 3 could not trace, 4 internal error;",
            "130 after Ctrl-C and 143 after SIGTERM, which end `view` with 0",
        ]
    )
