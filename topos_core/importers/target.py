"""Loads a target by its name: `path/model.py:name`, or a model file."""

from __future__ import annotations

import importlib.util
import os
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from topos_core.errors import TARGET_FORMS, ConfigurationError, ToposError, TraceError
from topos_core.importers.imported import loading, record, weights_of
from topos_core.importers.model_file import ENTRY, MODEL_FILES, read_model
from topos_core.tape.tape import Tape

LARGEST_WEIGHTS: Final = 256 * 2**20
"""Bytes of weights that are made for a class of torch, so that its plan runs."""


def load(target: str, *specs: Any, **named: Any) -> Tape:
    """Loads `path/model.py:name` and records it, or reads a model file (`model.onnx`, `module.mlir`).

    A program's file is run as a script's module would be: from the folder it stands in; specs may be given where the entry has
    none of its own. A class of torch is built without its weights; up to 256 MiB they are made afterwards, from torch's seed 0,
    so that its plan runs. A model file has inputs of its own; extents that it leaves open are given by name:
    `load("model.onnx", N=4)`.

    Raises:
        ConfigurationError: TP505, no such file or name; TP507, a format that this build does not read; TP209, an open extent.
        TraceError: TP4xx, the entry could not be recorded or the model not read.
    """
    file = target.removesuffix(f":{ENTRY}")
    if file.endswith(MODEL_FILES):
        return _read(file, specs, named)
    path, _, name = target.rpartition(":")
    if not path or not path.endswith(".py"):
        suffix = Path(target).suffix or "no suffix"
        if target.endswith(".py"):
            raise ConfigurationError(f"{target} names no entry; write {target}:NAME", code="TP505")
        raise ConfigurationError(
            f"{target} ({suffix}) cannot be read by this build; a target is written {TARGET_FORMS}",
            code="TP507",
        )
    found = _attribute(_module(path), name, path)
    tape = record(found, specs, named)
    if sum(tape.type_of(value).bytes for value in tape.parameters) > LARGEST_WEIGHTS:
        return tape
    return replace(tape, defaults=weights_of(found, tape))


def _read(file: str, specs: Sequence[Any], dims: Mapping[str, Any]) -> Tape:
    if specs or any(type(extent) is not int for extent in dims.values()):
        raise ConfigurationError(
            f"{file} has inputs of its own; give the extents that it leaves open as numbers by name: N=4", code="TP505"
        )
    path = os.path.abspath(file)
    return read_model(path, dims=dims, root=os.path.dirname(path))


def _module(path: str) -> Any:
    file = Path(path).resolve()
    if not file.is_file():
        raise ConfigurationError(f"no file {path}; a target is written {TARGET_FORMS}", code="TP505")
    name = file.stem
    known = sys.modules.get(name)
    if known is not None:
        if getattr(known, "__file__", None) == str(file):
            return known
        name = f"{name}_{zlib.crc32(str(file).encode()):08x}"  # another module has the name
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up while it runs
    folder = str(file.parent)
    sys.path.insert(0, folder)
    try:
        with loading(file.read_text(errors="replace")):
            spec.loader.exec_module(module)
    except ToposError:
        del sys.modules[name]
        raise
    except Exception as error:
        del sys.modules[name]
        code = "TP403" if isinstance(error, SyntaxError) else "TP404" if isinstance(error, ImportError) else "TP402"
        raise TraceError(f"{path} raised {type(error).__name__}: {error}", code=code) from error
    finally:
        sys.path.remove(folder)
    return module


def _attribute(module: Any, name: str, path: str) -> Any:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise ConfigurationError(f"{path} has no {name!r}", code="TP505")
        found = getattr(found, part)
    return found
