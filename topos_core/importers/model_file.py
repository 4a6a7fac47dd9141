"""Model files become tapes; what stands in a file decides nothing but its ending, and no importer is loaded for another's file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from topos_core.errors import ConfigurationError, TraceError
from topos_core.tape.tape import Tape

ENTRY: Final = "main"
"""The name of a model file's one entry: `model.onnx:main`."""
MODEL_FILES: Final = (".onnx", ".mlir")
"""How the files end that there are importers for."""


def read_model(path: str, *, dims: Mapping[str, int] | None = None, root: str | None = None) -> Tape:
    """Reads a model file.

    Args:
        path: The file, absolute.
        dims: Extents for the dimensions that the model leaves open, by name.
        root: The project's folder; sources outside of it are never shown.

    Raises:
        ConfigurationError: TP505, it cannot be read or is none; TP209, a dimension without an extent.
        TraceError: TP409, its importer's package is missing; TP402, what it holds cannot be read.
    """
    extension = os.path.splitext(path)[1]
    if not os.path.isfile(path):
        raise ConfigurationError(f"{path} is no file", code="TP505")
    if extension == ".onnx":
        from topos_core.importers.onnx_model.record import record_onnx

        return record_onnx(path, dims=dims, root=root)
    if extension == ".mlir":
        from topos_core.importers.stablehlo_text.record import record_stablehlo

        return record_stablehlo(path, root=root)
    raise TraceError(
        f"{os.path.basename(path)} cannot be read: this version of topos has no importer for {extension} files",
        code="TP409",
    )
