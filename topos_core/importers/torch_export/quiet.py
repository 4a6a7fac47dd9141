"""torch writes tracebacks and whole graphs before it raises; what it raises says enough, and the streams are the user's."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def quiet() -> Iterator[None]:
    """Silences torch's own loggers and what its export prints; what user code writes passes."""
    loggers = [
        logger
        for name, logger in list(logging.root.manager.loggerDict.items())
        if name.partition(".")[0] == "torch" and isinstance(logger, logging.Logger) and not logger.disabled
    ]
    stream = sys.stderr
    for logger in loggers:
        logger.disabled = True
    sys.stderr = _WithoutTorch(stream)
    try:
        yield
    finally:
        if isinstance(sys.stderr, _WithoutTorch):  # user code may have put a stream of its own there
            sys.stderr = stream
        for logger in loggers:
            logger.disabled = False


class _WithoutTorch:
    """A stream that drops what torch.export itself prints."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes a text, unless torch.export is the caller."""
        if sys._getframe(1).f_globals.get("__name__") == "torch.export._trace":
            return len(text)
        return int(self._stream.write(text) or 0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
