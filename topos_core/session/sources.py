"""Reads source files as Python does: the declared encoding, any line ends, no byte order mark."""

from __future__ import annotations

import io
import os
import stat
import tokenize
from pathlib import Path
from typing import Final

from topos_core.errors import ConfigurationError, TraceError
from topos_core.tape.span import Span

MODEL_FILES: Final = (".onnx", ".mlir")
LISTED: Final = ".onnx"
"""Files whose lines are those of a listing that their trace makes."""

_MAX_BYTES: Final = 16 * 2**20


def refuse_other_kinds(path: str) -> None:
    """Refuses files that topos does not read.

    Raises:
        ConfigurationError: TP505, it is neither Python nor a model file.
    """
    if not path.endswith((".py", *MODEL_FILES)):
        kinds = ", ".join((".py", *MODEL_FILES))
        raise ConfigurationError(
            f"{os.path.basename(path)} is none of the files that topos reads: {kinds}", code="TP505"
        )


def read_source(path: str | Path) -> str:
    """Reads a Python file.

    Raises:
        ConfigurationError: TP505, there is no such file, it is none, it cannot be read, or it is longer than 16 MiB.
        TraceError: TP403, it is not in the encoding that it declares.
    """
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigurationError(f"{path} is a folder or a device, not a file", code="TP505")
        if status.st_size > _MAX_BYTES:
            raise ConfigurationError(
                f"{path} has {status.st_size} bytes, topos reads source files of {_MAX_BYTES} at most", code="TP505"
            )
        data = Path(path).read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read: {(error.strerror or str(error)).lower()}", code="TP505"
        ) from None
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return io.TextIOWrapper(io.BytesIO(data), encoding, newline="").read()
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        message = f"the file is not in the encoding that it declares: {error}"
        raise TraceError(message, code="TP403", span=Span(str(path), 1, 0, 1, 1)) from None
