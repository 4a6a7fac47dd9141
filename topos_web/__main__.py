"""`topos view TARGET...`: opens the plan viewer."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from topos_web.stop import Stop

if TYPE_CHECKING:
    from topos_web.plans import Plan


def main(argv: Sequence[str] | None = None) -> int:
    """Serves the page until it is told to stop; returns the exit code."""
    with Stop() as stop:
        return _view(_parser().parse_args(argv), stop)


def _view(options: argparse.Namespace, stop: Stop) -> int:
    import webbrowser

    from topos_core.document.formats.errors import error_lines, from_here
    from topos_core.document.formats.text import render_plan
    from topos_core.errors import ConfigurationError, TraceError
    from topos_web import server
    from topos_web.agents import AgentPlanner
    from topos_web.profiles import read

    try:
        profiles = [read(path) for path in options.profile]
        planner = AgentPlanner(options.targets, untrusted=options.untrusted, dims=options.dim)
    except ConfigurationError as error:
        print(f"topos view: {from_here(str(error))}", file=sys.stderr)
        return 2
    except TraceError as error:
        print(f"topos view: {from_here(str(error))}", file=sys.stderr)
        return 3
    show = not options.no_browser and has_screen()
    told: set[str] = set()
    page: list[str] = []

    def say(text: str) -> None:
        print(f"topos view: {text}", file=sys.stderr, flush=True)

    def listening(url: str) -> None:
        print(url, flush=True)
        page.append(url)
        names = planner.targets()
        what = names[0] if len(names) == 1 else f"{len(names)} targets"
        say(f"tracing {what}; {'the page shows' if show else 'here follows'} each plan as soon as there is one")
        if show:
            webbrowser.open(url)

    def traced(moved: Sequence[Plan]) -> None:
        for plan in moved if stop.asked is None else ():  # on the way out nobody waits for a plan
            if plan.error is not None:
                print("\n".join(error_lines(plan.error, colour=False)), file=sys.stderr, flush=True)
            elif not show and plan.target not in told and plan.document is not None:
                told.add(plan.target)
                print(render_plan(plan.document), flush=True)

    def rested(plans: Sequence[Plan]) -> None:
        if not page or stop.asked is not None:
            return  # told once, and not on the way out
        known = {plan.target for plan in plans}
        for profile in profiles:
            if profile["target"] not in known:
                say(f"{profile['file']} measures {profile['target']}, which is none of the targets")
        say(f"the page at {page.pop()} follows every save; Ctrl+C ends it")

    server.serve(
        planner, options.port, stop, profiles=profiles, framed=options.framed, listening=listening, traced=traced,
        rested=rested,
    )  # fmt: skip
    return 0


def has_screen() -> bool:
    """Whether a browser could show a window here."""
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, as those of the other commands."""

    def error(self, message: str) -> NoReturn:
        """Writes the error and the way to help."""
        self.exit(2, f"{self.prog}: {message}; see `{self.prog} --help`\n")


def _parser() -> argparse.ArgumentParser:
    from topos_core.session.dimensions import DIM

    parser = _Parser(prog="topos view", description="Opens the plan viewer on models.", allow_abbrev=False)
    parser.add_argument(
        "targets", nargs="+", metavar="TARGET", help="model.py:name, model.py, model.onnx or module.mlir"
    )
    parser.add_argument(
        "--port", type=_port, metavar="PORT", default=8470, help="loopback port; a free one is taken where it is in use"
    )
    parser.add_argument("--dim", **DIM)
    parser.add_argument(
        "--profile", action="append", default=[], metavar="FILE",
        help="shows what `topos bench TARGET --json` measured on the drawing; may be repeated",
    )  # fmt: skip
    parser.add_argument("--untrusted", action="store_true", help="run only files of folders that the user trusts")
    parser.add_argument("--no-browser", action="store_true", help="print the plan and the URL, open nothing")
    parser.add_argument("--framed", action="store_true", help="let VS Code show the page in a panel of its own")
    return parser


def _port(text: str) -> int:
    try:
        port = int(text)
    except ValueError:
        port = -1
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{text} is no port; use a number from 0 (any free one) to 65535")
    return port


if __name__ == "__main__":
    sys.exit(main())
