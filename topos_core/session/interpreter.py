"""Finds the Python that runs a project's code, and says by which rule it was found."""

from __future__ import annotations

import glob
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from topos_core.errors import ConfigurationError
from topos_core.session.settings import Settings

_WINDOWS = sys.platform == "win32"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """One Python and why it was chosen; `skipped` tells which ones came earlier in the order and why they cannot serve."""

    path: str
    origin: str
    skipped: tuple[str, ...] = ()


def find_interpreter(
    folder: str,
    settings: Settings,
    *,
    trusted: bool,
    environment: Mapping[str, str] | None = None,
) -> Interpreter:
    """Chooses the interpreter of a folder: the user's setting, else the nearest `.venv` above the folder if the folder is
    trusted, else `VIRTUAL_ENV`, else the one that runs topos, else PATH's.

    An environment without Python 3.11 or NumPy is skipped; that is read from its files, nothing is run. A project's own
    configuration never names an executable.

    Raises:
        ConfigurationError: TP501, the setting names no executable, or no Python is found at all.
    """
    variables = os.environ if environment is None else environment
    if settings.interpreter is not None:
        if not os.access(settings.interpreter, os.X_OK) or os.path.isdir(settings.interpreter):
            raise ConfigurationError(
                f"the user's settings name the interpreter {settings.interpreter}, which is no executable file",
                code="TP501",
            )
        return Interpreter(settings.interpreter, "the user's settings")
    skipped: list[str] = []
    if trusted:
        for above in _upwards(folder):
            environment_folder = os.path.join(above, ".venv")
            # a link that leads nowhere too: its owner wonders why it is not used
            if os.path.lexists(environment_folder) and (found := _usable(environment_folder, skipped)):
                return Interpreter(found, f"the nearest .venv, in {above}", tuple(skipped))
    if (active := variables.get("VIRTUAL_ENV")) and (found := _usable(active, skipped)):
        return Interpreter(found, "VIRTUAL_ENV", tuple(skipped))
    if sys.executable:
        return Interpreter(sys.executable, "the interpreter that runs topos", tuple(skipped))
    for name in ("python3", "python"):
        if on_path := shutil.which(name, path=variables.get("PATH")):
            return Interpreter(on_path, "PATH", tuple(skipped))
    raise ConfigurationError("no Python was found; set `interpreter` in the user's settings", code="TP501")


def _upwards(folder: str) -> list[str]:
    found = [os.path.abspath(folder)]
    while (above := os.path.dirname(found[-1])) != found[-1]:
        found.append(above)
    return found


def _usable(environment: str, skipped: list[str]) -> str | None:
    """Gives an environment's Python, or None and a reason in `skipped`."""
    python = os.path.join(environment, "Scripts" if _WINDOWS else "bin", "python.exe" if _WINDOWS else "python")
    if not os.access(python, os.X_OK):
        skipped.append(f"{environment} has no Python")
        return None
    version = _version(environment)
    if version is not None and version < (3, 11):
        skipped.append(f"{environment} is Python {version[0]}.{version[1]}, topos needs 3.11 or newer")
        return None
    if not _has_numpy(environment):
        skipped.append(f"{environment} has no NumPy")
        return None
    return python


def _version(environment: str) -> tuple[int, int] | None:
    """Reads the version that an environment's pyvenv.cfg tells; None where it tells none."""
    try:
        with open(os.path.join(environment, "pyvenv.cfg"), encoding="utf-8", errors="replace") as file:
            pairs = [line.partition("=") for line in file]
    except OSError:
        return None  # a conda environment, or none that a venv tool made: the handshake will tell
    for key, _, value in pairs:
        if key.strip() in ("version", "version_info"):
            numbers = value.strip().split(".")
            if len(numbers) >= 2 and numbers[0].isdigit() and numbers[1].isdigit():
                return int(numbers[0]), int(numbers[1])
    return None


def _has_numpy(environment: str) -> bool:
    patterns = ("lib/python3*/site-packages", "lib64/python3*/site-packages", "Lib/site-packages")
    folders = [folder for pattern in patterns for folder in glob.glob(os.path.join(glob.escape(environment), pattern))]
    if _inherits(environment):
        return True  # the system's packages are visible too; the handshake will tell
    return any(
        os.path.isdir(os.path.join(folder, "numpy")) or glob.glob(os.path.join(glob.escape(folder), "*.pth"))
        for folder in folders
    )


def _inherits(environment: str) -> bool:
    try:
        with open(os.path.join(environment, "pyvenv.cfg"), encoding="utf-8", errors="replace") as file:
            return any(line.replace(" ", "").lower().strip() == "include-system-site-packages=true" for line in file)
    except OSError:
        return True  # not made by venv: the handshake will tell
