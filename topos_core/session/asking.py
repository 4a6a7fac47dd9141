"""What is asked of every plan, in one place for all front ends: somebody's own word, else the project's, else the default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from topos_core.session.configuration import Configuration

CHOICES: Final = ("consumer", "fidelity", "machine", "cost", "dialect")
_DEFAULTS: Final = {
    "consumer": "home",
    "fidelity": "fast",
    "machine": "reference",
    "cost": "model",
    "dialect": "portable",
}


def asked_of_plan(
    configuration: Configuration,
    chosen: Mapping[str, Any],
    *,
    machine: str = _DEFAULTS["machine"],
    dims: Iterable[tuple[str, int]] = (),
) -> dict[str, Any]:
    """Gives the `options` of a request.

    Args:
        configuration: The project's `[tool.topos]`.
        chosen: What the command line, the editor or the page says; None leaves a choice to the project.
        machine: The profile where nobody names one: verdicts never depend on the host, times do.
        dims: Extents of the command line, over those of the project.
    """
    project = {name: getattr(configuration, name) for name in CHOICES}
    options = {
        name: chosen.get(name) or project[name] or default
        for name, default in {**_DEFAULTS, "machine": machine}.items()
    }
    others = {name: value for name, value in chosen.items() if name not in CHOICES}
    if off := list(dict.fromkeys((*configuration.off, *(others.pop("off", None) or ())))):
        others["off"] = off
    if known := {**configuration.dims, **dict(dims)}:
        others["dims"] = known
    return {**options, **others}
