"""Measurements for the page: files of `topos.bench/1`, read once, checked for what the page indexes into."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from topos_core.errors import ConfigurationError

SCHEMA: Final = "topos.bench/1"
LARGEST: Final = 64 * 2**20

Profile = Mapping[str, Any]


def read(path: str) -> Profile:
    """Reads a file that `topos bench TARGET --json` wrote.

    Raises:
        ConfigurationError: TP505, it cannot be read, or holds something else.
    """
    try:
        if Path(path).stat().st_size > LARGEST:
            raise ConfigurationError(f"{path} is larger than {LARGEST} bytes, which no profile is", code="TP505")
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path} cannot be read as a profile: {error}", code="TP505") from error
    fault = fault_of(found)
    if fault is not None:
        raise ConfigurationError(
            f"{path} is no profile: {fault}; write one with topos bench TARGET --json", code="TP505"
        )
    return {**found, "file": Path(path).name}


def fault_of(found: Any) -> str | None:
    """Says what is wrong with a profile, or None."""
    if not isinstance(found, dict):
        return f"it holds {type(found).__name__}, not an object"
    if found.get("schema") != SCHEMA:
        return f"its schema is {found.get('schema')!r}, not {SCHEMA!r}"
    for name, kind in (
        ("target", str),
        ("digest", str),
        ("host", dict),
        ("regions", list),
        ("profile", dict),
        ("model", list),
    ):
        if not isinstance(found.get(name), kind):
            return f"its {name!r} is {type(found.get(name)).__name__}, not {kind.__name__}"
    for name in ("steps", "recorded"):
        rows = found["profile"].get(name)
        if not isinstance(rows, list) or not all(map(_timed, rows)):
            return f"its profile's {name!r} are no values with measured seconds"
    return None


def _timed(row: Any) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("seconds"), dict):
        return False
    seconds = row["seconds"]
    value = seconds.get("value")
    measured = seconds.get("basis") == "measured" and seconds.get("unit") == "second"
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
    return isinstance(row.get("value"), int) and measured and number
