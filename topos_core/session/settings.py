"""The user's own settings and list of trusted folders, in `$XDG_CONFIG_HOME/topos`, else `~/.config/topos`.

`settings.toml` is written by the user:

    interpreter = "/home/me/ml/.venv/bin/python"    # runs the code of every project
    seconds = 120                                    # time limit of one trace
    memory = "8 GiB"                                 # memory limit of the process that runs the code
    network = true                                   # code may reach the network
    fork = false                                     # a new Python for each trace, for libraries that no fork survives

`trusted` is a list of folders, one a line, which `trust` and `distrust` keep. A project's files cannot change either.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from topos_core.errors import ConfigurationError
from topos_core.session.configuration import Unusable, memory_of, parse_toml, seconds_of, unknown_key
from topos_core.tape.span import Span

_KEYS: Final = {"interpreter": str, "seconds": float, "memory": int, "network": bool, "fork": bool}


@dataclass(frozen=True, slots=True)
class Settings:
    """The user's settings; None where the user leaves a choice to topos."""

    interpreter: str | None = None
    seconds: float | None = None
    memory: int | None = None
    network: bool = False
    fork: bool = True


def settings_folder(environment: Mapping[str, str] | None = None) -> str:
    """Gives the folder of the user's settings."""
    variables = os.environ if environment is None else environment
    base = variables.get("XDG_CONFIG_HOME") or os.path.join(variables.get("HOME") or os.path.expanduser("~"), ".config")
    return os.path.join(base, "topos")


def read_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """Reads the user's settings; the defaults where there is no file.

    Raises:
        ConfigurationError: TP501, with the key and what was expected.
    """
    file = os.path.join(settings_folder(environment), "settings.toml")
    try:
        with open(file, encoding="utf-8") as stream:
            text = stream.read(2**20)
    except FileNotFoundError:
        return Settings()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} cannot be read: {error}", code="TP501") from None
    values: dict[str, Any] = {}
    for key, value in parse_toml(text, file).items():
        try:
            values[key] = _value(key, value)
        except Unusable as error:
            raise ConfigurationError(
                f"{key} is {value!r}, expected {error}", code="TP501", span=_line(text, file, key)
            ) from None
        except KeyError:
            message = unknown_key(key, "settings.toml", _KEYS)
            raise ConfigurationError(message, code="TP501", span=_line(text, file, key)) from None
    return Settings(**values)


def trusted_folders(environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Lists the folders that the user trusts; none where the list belongs to somebody else or others may write it.

    Raises:
        ConfigurationError: TP501, the list cannot be read or may be written by others.
    """
    file = _trust_file(environment)
    try:
        status = os.stat(file)
        with open(file, encoding="utf-8") as stream:
            lines = stream.read(2**20).splitlines()
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} cannot be read: {error}", code="TP501") from None
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        message = f"{file} may be written by others than you, so nothing in it is trusted; `chmod 600` it"
        raise ConfigurationError(message, code="TP501")
    return tuple(line for line in lines if os.path.isabs(line))


def is_trusted(path: str, environment: Mapping[str, str] | None = None) -> bool:
    """Says whether a file or folder, its symlinks followed, lies in a folder that the user trusts."""
    real = os.path.realpath(path)
    return any(
        real == folder or real.startswith(folder.rstrip(os.sep) + os.sep) for folder in trusted_folders(environment)
    )


def trust(folder: str, environment: Mapping[str, str] | None = None) -> None:
    """Adds a folder, its symlinks followed, to the user's list."""
    real = os.path.realpath(folder)
    if real not in trusted_folders(environment):
        _write_trusted((*trusted_folders(environment), real), environment)


def distrust(folder: str, environment: Mapping[str, str] | None = None) -> None:
    """Takes a folder off the user's list."""
    real = os.path.realpath(folder)
    _write_trusted(tuple(each for each in trusted_folders(environment) if each != real), environment)


def _write_trusted(folders: tuple[str, ...], environment: Mapping[str, str] | None) -> None:
    file = _trust_file(environment)
    os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
    temporary = f"{file}.{os.getpid()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as stream:
        stream.write("".join(f"{folder}\n" for folder in folders))
    os.replace(temporary, file)


def _trust_file(environment: Mapping[str, str] | None) -> str:
    return os.path.join(settings_folder(environment), "trusted")


def _value(key: str, value: Any) -> Any:
    match key:
        case "interpreter":
            if not isinstance(value, str) or not os.path.isabs(os.path.expanduser(value)):
                raise Unusable("the absolute path of a Python")
            return os.path.expanduser(value)
        case "seconds":
            return seconds_of(value)
        case "memory":
            return memory_of(value)
        case "network" | "fork":
            if not isinstance(value, bool):
                raise Unusable("true or false")
            return value
    raise KeyError(key)


def _line(text: str, file: str, key: str) -> Span:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip().strip("\"'").startswith(key):
            return Span(file, number, 0, number, max(len(line), 1))
    return Span(file, 1, 0, 1, 1)
