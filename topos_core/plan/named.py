"""What callers name, as what a request holds: values, rows of observations and patterns."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from topos_core.errors import ConfigurationError
from topos_core.kernels.variants import VARIANTS
from topos_core.matching.catalog import patterns
from topos_core.tape.tape import Tape

Named = int | str


def values_named(tape: Tape, wanted: Iterable[Named]) -> tuple[int, ...]:
    """Turns names and numbers into values."""
    found: list[int] = []
    for each in (wanted,) if isinstance(wanted, (str, int)) else wanted:
        if isinstance(each, int):
            found.append(each)
            continue
        values = [value for value, name in tape.names.items() if name == each]
        if not values:
            known = " ".join(sorted(set(tape.names.values()))) or "none"
            raise ConfigurationError(f"no value is named {each!r}; named are: {known}", code="TP504")
        found += values
    return tuple(found)


def rows_named(tape: Tape, wanted: Iterable[Named]) -> frozenset[int]:
    """Turns observed names and row numbers into rows of the tape's observations."""
    found: set[int] = set()
    for each in (wanted,) if isinstance(wanted, (str, int)) else wanted:
        if isinstance(each, int):
            found.add(each)
            continue
        rows = {
            k
            for k, o in enumerate(tape.observations)
            if each in (o.name, tape.names.get(o.value)) and o.kind != "output"
        }
        if not rows:
            known = " ".join(sorted({o.name for o in tape.observations if o.name})) or "none"
            raise ConfigurationError(f"no observation is named {each!r}; named are: {known}", code="TP504")
        found |= rows
    return frozenset(found)


def patterns_named(wanted: Iterable[str]) -> frozenset[str]:
    """Checks the names of patterns and of kernels that can be switched off."""
    names = frozenset((wanted,) if isinstance(wanted, str) else wanted)
    unknown = sorted(names.difference(patterns(), VARIANTS))
    if unknown:
        raise ConfigurationError(no_pattern(unknown[0]), code="TP504")
    return names


def no_pattern(name: str) -> str:
    """Says that no pattern has a name, and which may have been meant.

    That of a kernel is none either: a request and the settings switch it off, a line of a program does not.
    """
    if name in VARIANTS:
        return f'{name} is no pattern but a kernel; switch it off for the whole program, with `off = ["{name}"]` in [tool.topos]'
    known = (*patterns(), *VARIANTS)
    near = difflib.get_close_matches(name, known, 3)
    remedy = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
    return f"no pattern is called {name!r}; {remedy}"
