"""What callers name, as what a request holds: values, rows of observations and patterns."""

from __future__ import annotations

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
    known = (*patterns(), *VARIANTS)
    unknown = sorted(names - set(known))
    if unknown:
        raise ConfigurationError(f"no pattern {unknown[0]!r}; there are: {' '.join(known)}", code="TP504")
    return names
