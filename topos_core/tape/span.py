"""Places in source text: spans, the frames around them, and the interned locations that ops point to."""

from __future__ import annotations

from typing import Literal, NamedTuple

FrameKind = Literal["user", "library", "framework"]


class Span(NamedTuple):
    """A stretch of source text; lines count from 1, columns from 0 in code points, the end is exclusive."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column + 1}"


class Frame(NamedTuple):
    """One call on the way to an op.

    `user` frames are the document's own code, `library` frames are topos formulas (`nn`), `framework` frames are
    another package's (torch, transformers); recorder and NumPy internals are never kept.
    """

    span: Span
    function: str
    kind: FrameKind


class Location(NamedTuple):
    """Where an op was recorded: its call path, innermost frame first, and the module scope it ran in.

    `scope` runs from the outermost name to the innermost (`("encoder", "layer0")`); it is empty at the top. `built` is the
    constructor's call of the module that the op ran in, where such a module was seen being built by the user's code.
    """

    frames: tuple[Frame, ...]
    scope: tuple[str, ...] = ()
    built: Frame | None = None

    @property
    def span(self) -> Span:
        """The innermost user frame's span; the innermost frame of any kind where no user frame exists."""
        for frame in self.frames:
            if frame.kind == "user":
                return frame.span
        return self.frames[0].span if self.frames else UNKNOWN

    def span_in(self, path: str) -> Span:
        """The innermost frame inside the document `path`, else `span`."""
        for frame in self.frames:
            if frame.span.path == path:
                return frame.span
        return self.span


UNKNOWN = Span("<unknown>", 1, 0, 1, 0)
