"""Says what topos finds on this machine: which Python runs the code, with which packages and limits.

It starts the project's interpreter, but runs no code of the project.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Iterator

from topos_core.cli.main import OK, exit_code_of
from topos_core.cli.terminal import Terminal
from topos_core.document.formats.errors import from_here, shown
from topos_core.errors import ConfigurationError, ToposError
from topos_core.session.client import Agent
from topos_core.session.limits import EDITOR_SECONDS, MIB
from topos_core.session.settings import settings_folder, trusted_folders
from topos_core.session.version import VERSION
from topos_core.session.workspace import Workspace, open_workspace


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "path", nargs="?", default=".", help="a file or folder of the project (default: the working directory)"
    )


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Prints what was found; exits with 2 or 3 if something has to be put right first."""
    if not os.path.exists(arguments.path):
        raise ConfigurationError(
            f"{shown(arguments.path)} does not exist; name a file or folder of the project", code="TP505"
        )
    status = OK
    rows = [("topos", f"{VERSION}, in {os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}")]
    rows.append(("runs on", f"Python {platform.python_version()}, {sys.executable}, {os.cpu_count()} processors"))
    try:
        workspace = open_workspace(arguments.path)
        rows += _project(workspace)
    except ToposError as error:
        rows.append(("problem", shown(str(error))))
        status = exit_code_of(error.code)
    width = max(len(name) for name, _ in rows)
    terminal.data(
        "\n".join(f"{terminal.paint(name.ljust(width), 'strong')}  {from_here(shown(text))}" for name, text in rows)
    )
    return status


def _trust(trusted: bool, folders: int) -> str:
    """Says who runs the project's code without being told to: a command is told by naming its path."""
    if trusted:
        return "commands and editors run this project's code: you trust its folder"
    known = {0: "you trust no folder yet", 1: "it is not in the one folder that you trust"}
    why = known.get(folders, f"it is in none of the {folders} folders that you trust")
    return f"commands run this project's code, editors ask first: {why}"


def _project(workspace: Workspace) -> Iterator[tuple[str, str]]:
    configured = workspace.configuration.file
    yield "project", f"{workspace.root}, {'settings in pyproject.toml' if configured else 'no pyproject.toml'}"
    folder = settings_folder()
    yield "user", f"settings in {folder}" + ("" if os.path.isdir(folder) else " (there are none)")
    yield "trust", _trust(workspace.is_trusted(workspace.root), len(trusted_folders()))
    chosen = workspace.interpreter(trusted=True)
    yield "code runs in", f"{chosen.path} ({chosen.origin})"
    for reason in chosen.skipped:
        yield "skipped", reason
    limits = workspace.limits()
    with Agent(workspace.root, interpreter=chosen.path, limits=limits) as agent:
        hello = agent.hello()
    packages = hello["packages"]
    listed = ", ".join(f"{name} {version}" for name, version in packages.items())
    yield "with", f"Python {hello['python']}, {listed}"
    missing = [name for name in ("torch", "jax", "onnx") if name not in packages]
    if missing:
        yield "without", f"{', '.join(missing)}: models of these cannot be read"
    offline = f"open, since {hello['network_reason']}" if hello["network_reason"] else "open, as you set it"
    yield "network", offline if hello["network"] else "taken away from code while it is traced and run"
    editor = workspace.limits(EDITOR_SECONDS).seconds
    shorter = f" ({editor:g} s in an editor)" if editor != limits.seconds else ""
    yield "limits", f"{limits.seconds:g} s{shorter} and {limits.memory // MIB} MiB for each request"
    if os.environ.get("PYTHONNODEBUGRANGES"):
        yield "columns", "switched off by PYTHONNODEBUGRANGES, so places are whole lines; unset it"
