"""Reads `[tool.topos]` of a project's pyproject.toml.

    [tool.topos]
    consumer = "home"                 # home | stablehlo
    fidelity = "fast"                 # exact | fast
    machine = "reference"
    cost = "model"                    # model | always
    dialect = "portable"              # portable | xla | iree
    off = ["layer_norm_linear"]       # patterns that are switched off
    fail-on = ["TP3xx"]               # codes with which `topos check` exits 1
    exclude = ["experiments/*"]       # files that `topos check FOLDER` leaves out
    seconds = 60                      # time limit of one trace
    memory = "8 GiB"                  # memory limit of the process that runs the code

    [tool.topos.dims]                 # extents that specs and model files leave open; --dim on the command line wins
    N = 4

    [tool.topos.entries]              # entries besides the marked ones: target = input specs
    "models/net.py:Net" = "f32[1,3,224,224]"

It never names an executable: which interpreter runs the code is for the user's own settings to say.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, get_args

from topos_core.errors import ConfigurationError
from topos_core.kernels.kernel import Fidelity
from topos_core.plan.request import ConsumerName
from topos_core.tape.span import Span

CONSUMERS: Final = get_args(ConsumerName)
FIDELITIES: Final = get_args(Fidelity)
COSTS: Final = ("model", "always")
DIALECTS: Final = ("portable", "xla", "iree")

_UNITS: Final = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
CODE_FORM: Final = re.compile(r"TP(\d{3}|\dxx|xxx)$")


@dataclass(frozen=True, slots=True)
class Configuration:
    """A project's settings; None where the project leaves a choice to the command.

    `file` is the pyproject.toml, None where there is none. `entries` maps targets to input specs, `dims` names of extents to numbers.
    """

    file: str | None = None
    consumer: str | None = None
    fidelity: str | None = None
    machine: str | None = None
    cost: str | None = None
    dialect: str | None = None
    off: tuple[str, ...] = ()
    fail_on: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    seconds: float | None = None
    memory: int | None = None
    entries: Mapping[str, str] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)


def read_configuration(root: str) -> Configuration:
    """Reads the pyproject.toml of a folder; an empty configuration where there is none.

    Raises:
        ConfigurationError: TP501, with the line of the key that cannot be used.
    """
    file = os.path.join(root, "pyproject.toml")
    if not os.path.isfile(file):
        return Configuration()
    text = _read(file)
    table = parse_toml(text, file).get("tool", {})
    table = table.get("topos", {}) if isinstance(table, dict) else {}
    if not isinstance(table, dict):
        raise ConfigurationError(
            f"tool.topos is {_kind(table)}, expected a table", code="TP501", span=_line(text, file, "topos")
        )
    values: dict[str, Any] = {"file": file}
    for key, value in table.items():
        if key not in _READERS:
            raise ConfigurationError(
                unknown_key(key, "tool.topos", _READERS), code="TP501", span=_line(text, file, key)
            )
        try:
            values[key.replace("-", "_")] = _READERS[key](value)
        except Unusable as error:
            message = f"tool.topos.{key} is {_shown(value)}, expected {error}"
            raise ConfigurationError(message, code="TP501", span=_line(text, file, error.key or key)) from None
    return Configuration(**values)


def parse_toml(text: str, file: str) -> dict[str, Any]:
    """Parses TOML.

    Raises:
        ConfigurationError: TP501, with the parser's place.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line, column = (int(found[1]), int(found[2]) - 1) if found else (1, 0)
        message = f"the file is not TOML: {re.sub(r' *[(]at .*[)]', '', str(error)).lower()}"
        raise ConfigurationError(message, code="TP501", span=Span(file, line, column, line, column + 1)) from None


def unknown_key(key: str, table: str, known: Mapping[str, Any]) -> str:
    """Says that a key is not known, and which one may have been meant."""
    near = difflib.get_close_matches(key, known, 1)
    return f"{table} has no key {key!r}" + (f"; did you mean {near[0]!r}" if near else f"; it has {', '.join(known)}")


def seconds_of(value: Any) -> float:
    """Reads a positive number of seconds; a `Unusable` says what was expected."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 86400:
        raise Unusable("a number of seconds above 0")
    return float(value)


def memory_of(value: Any) -> int:
    """Reads bytes, as a number or as text with a unit."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value) if isinstance(value, str) else None
    if match is None or match[2] not in _UNITS or float(match[1]) <= 0:
        raise Unusable('a size such as "4 GiB"')
    return int(float(match[1]) * _UNITS[match[2]])


def codes_of(value: Any) -> tuple[str, ...]:
    """Reads a list of codes, each `TP101`, `TP3xx` for a family or `TPxxx` for all."""
    codes = _strings(value)
    wrong = next((code for code in codes if not CODE_FORM.match(code)), None)
    if wrong is not None:
        raise Unusable(f"codes such as TP101 or TP3xx, not {wrong!r}")
    return codes


class Unusable(Exception):
    """Says what a value should have been; `key` where a nested key is to blame."""

    def __init__(self, expected: str, key: str | None = None) -> None:
        super().__init__(expected)
        self.key = key


def _one_of(choices: tuple[str, ...]) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in choices:
            raise Unusable(f"one of {', '.join(choices)}")
        return str(value)

    return read


def _string(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise Unusable("a text")
    return value


def _strings(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise Unusable("a list of texts")
    return tuple(value)


def _entries(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise Unusable('a table such as "net.py:Net" = "f32[1,3,8,8]"')
    for target, specs in value.items():
        path, separator, name = target.rpartition(":")
        if not (separator and path and name) or os.path.isabs(path):
            raise Unusable(f"targets written `path/model.py:name` relative to this file, not {target!r}", target)
        if not isinstance(specs, str):
            raise Unusable(f"the input specs of {target!r} as a text", target)
    return {target.replace(os.sep, "/"): specs for target, specs in value.items()}


def _dims(value: Any) -> dict[str, int]:
    if not isinstance(value, dict):
        raise Unusable("a table such as N = 4")
    for name, extent in value.items():
        if isinstance(extent, bool) or not isinstance(extent, int) or extent < 0:
            raise Unusable(f"an extent for {name}, a whole number, not {extent!r}", name)
    return dict(value)


_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "consumer": _one_of(CONSUMERS),
    "fidelity": _one_of(FIDELITIES),
    "machine": _string,
    "cost": _one_of(COSTS),
    "dialect": _one_of(DIALECTS),
    "off": _strings,
    "fail-on": codes_of,
    "exclude": _strings,
    "seconds": seconds_of,
    "memory": memory_of,
    "entries": _entries,
    "dims": _dims,
}


def _read(file: str) -> str:
    try:
        with open(file, encoding="utf-8", newline="") as stream:
            return stream.read(4 * 2**20)
    except (OSError, UnicodeDecodeError) as error:
        message = f"{file} cannot be read: {getattr(error, 'strerror', None) or error}"
        raise ConfigurationError(message, code="TP501", span=Span(file, 1, 0, 1, 1)) from None


def _line(text: str, file: str, key: str) -> Span:
    """Finds the line of a key below `[tool.topos...]`; the first line of the file where it cannot be told."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("["):
            inside = "tool.topos" in line or ("tool" in line and key in line)
            if inside and key in line:
                return Span(file, number, 0, number, len(line))
        elif (inside or "topos" in line) and (
            match := re.match(rf"\s*[\w.\"']*?[\"']?{re.escape(key)}[\"']?\s*=", line)
        ):
            start = len(line) - len(line.lstrip())
            return Span(file, number, start, number, max(len(line), match.end()))
    return Span(file, 1, 0, 1, 1)


def _shown(value: Any) -> str:
    return _kind(value) if isinstance(value, dict) else repr(value)


def _kind(value: Any) -> str:
    kinds: dict[type, str] = {dict: "a table", list: "a list", str: "a text"}
    return kinds.get(type(value), type(value).__name__)
