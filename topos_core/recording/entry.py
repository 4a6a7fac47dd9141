"""From a loaded module to a tape: looks an entry up by name and records it by its mark, or by specs given as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from topos_core.errors import TraceError
from topos_core.recording.model import entry_of
from topos_core.recording.spec import parse_specs
from topos_core.recording.trace import record
from topos_core.tape.tape import Tape


def find_target(namespace: Mapping[str, Any], name: str) -> Any:
    """Looks up a function, class or instance by its dotted name.

    Raises:
        TraceError: TP408: the module has no such name.
    """
    first, *rest = name.split(".")
    if first not in namespace:
        known = [each for each, held in namespace.items() if entry_of(held) is not None]
        marked = f"; marked are {', '.join(known)}" if known else ""
        raise TraceError(f"the file has no {name}{marked}", code="TP408")
    target = namespace[first]
    for part in rest:
        if not hasattr(target, part):
            raise TraceError(f"{first} has no {part}", code="TP408")
        target = getattr(target, part)
    return target


def record_entry(
    namespace: Mapping[str, Any],
    name: str,
    specs: str | None = None,
    *,
    dims: Mapping[str, int] | None = None,
    sources: Mapping[str, str] | None = None,
) -> Tape:
    """Records the entry `name` of a module.

    Args:
        namespace: The module's names.
        name: Of a function, class or instance, dotted inside classes.
        specs: The text of a comment or an option; it takes precedence over `@tp.model`.
        dims: Extents that specs name.
        sources: Texts that take precedence over files, by path.

    Raises:
        TraceError: TP408: no such entry, or it has no input specs; or what recording raises.
        ConfigurationError: What reading the specs raises.
    """
    target = find_target(namespace, name)
    if not callable(target):
        raise TraceError(
            f"{name} is a {type(target).__name__}, which cannot be called; name a function or class", code="TP408"
        )
    if specs is not None and specs.strip():
        positional, named = parse_specs(specs, dims)
        return record(target, positional, named, sources=sources, dims=dims)
    if entry_of(target) is None:
        raise TraceError(
            f"{name} has no input specs; mark it with @tp.model(...), or give them as f32[1,3,224,224]", code="TP408"
        )
    return record(target, sources=sources, dims=dims)
