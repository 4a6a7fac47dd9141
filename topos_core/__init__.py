"""Topos: the tape is the spec; a faster form is an offer that a run may take.

    import topos_core as tp
    from topos_core import nn

Nothing is loaded before it is used: `import topos_core` costs next to nothing and loads no framework.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from topos_core import nn
    from topos_core.api import Plan, plan
    from topos_core.errors import (
        ConfigurationError,
        InternalError,
        RecordingError,
        ToposError,
        TraceError,
    )
    from topos_core.importers.imported import trace
    from topos_core.importers.target import load
    from topos_core.recording.elementary import erf, logsumexp, rsqrt, take
    from topos_core.recording.model import model
    from topos_core.recording.observe import observe
    from topos_core.recording.scope import scope
    from topos_core.recording.spec import bf16, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
    from topos_core.recording.spec import boolean as bool
    from topos_core.recording.windows import as_strided, unfold
    from topos_core.tape.tape import Tape

__all__ = [
    "ConfigurationError",
    "InternalError",
    "Plan",
    "RecordingError",
    "Tape",
    "ToposError",
    "TraceError",
    "as_strided",
    "bf16",
    "bool",
    "erf",
    "f16",
    "f32",
    "f64",
    "i8",
    "i16",
    "i32",
    "i64",
    "load",
    "logsumexp",
    "model",
    "nn",
    "observe",
    "plan",
    "rsqrt",
    "scope",
    "take",
    "trace",
    "u8",
    "u16",
    "u32",
    "u64",
    "unfold",
]

_DTYPES: Final = ("f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
_PLACES: Final = {
    "Plan": ("topos_core.api", "Plan"),
    "load": ("topos_core.importers.target", "load"),
    "trace": ("topos_core.importers.imported", "trace"),
    "model": ("topos_core.recording.model", "model"),
    "observe": ("topos_core.recording.observe", "observe"),
    "scope": ("topos_core.recording.scope", "scope"),
    **{name: ("topos_core.recording.windows", name) for name in ("as_strided", "unfold")},
    **{name: ("topos_core.recording.elementary", name) for name in ("erf", "logsumexp", "rsqrt", "take")},
    "Tape": ("topos_core.tape.tape", "Tape"),
    "bool": ("topos_core.recording.spec", "boolean"),
    **{name: ("topos_core.recording.spec", name) for name in _DTYPES},
    **{
        name: ("topos_core.errors", name)
        for name in ("ToposError", "ConfigurationError", "TraceError", "RecordingError", "InternalError")
    },
}  # fmt: skip


class _PlanPackage(ModuleType):
    """The package `topos_core.plan`, which is also the function: `tp.plan(tape)` and `topos_core.plan.request` both work."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Plans a tape; see `topos_core.api.plan`."""
        return importlib.import_module("topos_core.api").plan(*arguments, **options)


class _Package(ModuleType):
    def __setattr__(self, name: str, value: Any) -> None:
        # The import system sets `plan` to the package once a part of it is imported.
        if name == "plan" and isinstance(value, ModuleType):
            value.__class__ = _PlanPackage
        super().__setattr__(name, value)


def __getattr__(name: str) -> Any:
    """Loads a public name when it is first used."""
    if name in ("nn", "plan"):
        return importlib.import_module(f"topos_core.{name}")
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'topos_core' has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    found = getattr(importlib.import_module(place[0]), place[1])
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


sys.modules[__name__].__class__ = _Package
