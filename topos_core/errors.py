"""The failures that reach people.

A *Decline* is a value and lives with the decisions; what is raised is one of

    ToposError                 something that the caller can fix
      ConfigurationError       TP5xx, exit 2: a target, option, spec or setting that cannot be used
      TraceError               TP4xx, exit 3: the program could not be turned into a tape
        RecordingError         TP401: an expression has no recorded meaning as written
    InternalError              exit 4: our own bug; one feature's bug never takes a server down
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # spans stand above errors in the layers
    from topos_core.tape.span import Span


class ToposError(Exception):
    """Tells what is wrong, both values, where and the remedy, in one lower-case sentence."""

    def __init__(self, message: str, *, code: str, span: Span | None = None, related: tuple[Span, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.span = span
        self.related = related

    def __str__(self) -> str:
        return f"{self.span}: {self.message}" if self.span is not None else self.message


class ConfigurationError(ToposError):
    """A target, option, input spec or setting that cannot be used (TP5xx)."""


class TraceError(ToposError):
    """The program could not be turned into a tape (TP4xx)."""


class RecordingError(TraceError):
    """An expression has no recorded meaning as written (TP401); the message says what to write instead."""

    def __init__(self, message: str, *, span: Span | None = None, related: tuple[Span, ...] = ()) -> None:
        super().__init__(message, code="TP401", span=span, related=related)


class InternalError(Exception):
    """A bug of topos itself; never the caller's fault."""
