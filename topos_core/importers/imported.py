"""What a target is made with decides who records it: topos's own recorder, or an importer.

Frameworks are never imported here: an object of torch can only exist once user code has imported torch.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from topos_core.errors import TraceError
from topos_core.recording import trace as recording
from topos_core.recording.model import entry_of
from topos_core.tape.tape import Tape

_IMPORTS_TORCH: Final = re.compile(r"^\s*(?:import|from)\s+(?:torch|transformers|timm|torchvision)\b", re.MULTILINE)


def trace(function: Callable[..., Any], /, *positional: Any, **named: Any) -> Tape:
    """Records `function` and gives its tape.

    Args:
        function: A function, class or object that can be called, or a module, module class or function of torch,
            or a function of JAX. Marked by
            `tp.model`, it needs no specs here.
        positional, named: Its arguments: specs (`tp.f32[2, 3]`, `"i64[2,48]<100"`, a `TensorType`) become inputs;
            in tuples, lists and dicts too. Anything else is passed as it is: None, numbers, dicts of weights.

    Raises:
        RecordingError: TP401: an expression has no recorded meaning; the span is its own.
        TraceError: TP402: the function itself raised; the span is where it did.
        ConfigurationError: TP502: the specs do not fit the function's arguments; TP503: unknown dtype.
    """
    return record(function, positional, named)


def record(
    found: Any,
    positional: tuple[Any, ...] = (),
    named: Mapping[str, Any] | None = None,
    *,
    sources: Mapping[str, str] | None = None,
    dims: Mapping[str, int] | None = None,
    framework: str | None = None,
) -> Tape:
    """Does what `trace` does, for callers that know more.

    Args:
        found, positional, named: As in `trace`.
        sources: Texts that take precedence over files, by path: an editor's unsaved buffers.
        dims: Extents that specs name, such as `f32[N,3]`.
        framework: Who records it (numpy, jax or torch); without, the mark's own word, else what its code names.

    Raises:
        ToposError: As in `trace`; ConfigurationError TP504 too: an extent without a value; TraceError TP409: the framework
            is missing.
    """
    chosen = _chosen(found, framework)
    if chosen not in (None, "numpy"):
        _import(str(chosen))
    if "torch" in sys.modules and chosen in (None, "torch"):
        from topos_core.importers.torch_export.record import record_torch
        from topos_core.importers.torch_export.target import target_of

        target = target_of(found, told=chosen is not None, fed=bool(positional or named))
        if target is not None:
            return record_torch(target, positional, named, sources=sources, dims=dims)
    if "jax" in sys.modules and chosen in (None, "jax"):
        from topos_core.importers.jax_jaxpr.target import uses_jax

        if chosen or uses_jax(found):
            from topos_core.importers.jax_jaxpr.record import record_jax

            return record_jax(found, positional, named, sources=sources, dims=dims)
    return recording.record(found, positional, named, sources=sources, dims=dims)


def _chosen(found: Any, framework: str | None) -> str | None:
    entry = entry_of(found)
    return framework or (entry.framework if entry is not None else None)


def _import(framework: str) -> None:
    try:
        importlib.import_module(framework)
    except ImportError:
        raise TraceError(
            f"framework={framework} needs {framework} in the Python that runs the code;"
            f" pip install 'topos-inspector[{framework}]'",
            code="TP409",
        ) from None


def weights_of(found: Any, tape: Tape, *, framework: str | None = None) -> Mapping[int, np.ndarray]:
    """Gives values for the parameters of a tape that was recorded without them: the constructor's own, from seed 0.

    `found` and `framework` are what `record` was given.

    Raises:
        ToposError: The weights cannot be made.
    """
    if all(value in tape.defaults for value in tape.parameters) or "torch" not in sys.modules:
        return tape.defaults
    from topos_core.importers.torch_export.record import weights_of_torch
    from topos_core.importers.torch_export.target import target_of

    target = target_of(found, told=_chosen(found, framework) == "torch", fed=bool(tape.inputs))
    return tape.defaults if target is None else weights_of_torch(target, tape)


@contextmanager
def loading(text: str) -> Iterator[None]:
    """Runs a file: where its text imports torch, modules keep the places of their constructor calls."""
    if not _IMPORTS_TORCH.search(text):
        yield
        return
    try:
        import torch  # noqa: F401
    except ImportError:  # the file's own import tells it, at its line
        yield
        return
    from topos_core.importers.torch_export.construction import constructions

    with constructions():
        yield
