"""The failures that reach people.

A *Decline* is a value and lives with the decisions; what is raised is one of

    ToposError                 something that the caller can fix
      ConfigurationError       TP5xx, exit 2: a target, option, spec or setting that cannot be used
      TraceError               TP4xx, exit 3: the program could not be turned into a tape
        RecordingError         TP401: an expression has no recorded meaning as written
    InternalError              exit 4: our own bug; one feature's bug never takes a server down
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:  # spans stand above errors in the layers
    from topos_core.tape.span import Span


TARGET_FORMS: Final = "`path/model.py:name`, `model.onnx` or `module.mlir`"
"""What a target may be, for every message that says so."""


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


class Failure(NamedTuple):
    """One row of the failures' table: what a TP4xx or TP5xx code means and what a reader can do about it."""

    word: str
    title: str
    meaning: str
    remedy: str


FAILURES: Final[Mapping[str, Failure]] = {
    "TP401": Failure(
        "not-recordable",
        "cannot be recorded",
        "An expression has no recorded meaning as written: its value would have to be known while the program is recorded.",
        "Write what the message proposes at that expression.",
    ),
    "TP402": Failure(
        "raised",
        "user code raised",
        "The file, or the entry while it was recorded, raised an exception of its own.",
        "Correct the line that raised; what the code printed stands in the error's output.",
    ),
    "TP403": Failure(
        "syntax-error",
        "syntax error",
        "The file, or a module that it imports, is not Python that the interpreter of the project can parse.",
        "Correct the line, or choose a newer interpreter in the user's settings.",
    ),
    "TP404": Failure(
        "import-error",
        "import error",
        "A module that the file imports was not found, or lacks an imported name.",
        "Install it into the interpreter that the message names, or correct the name.",
    ),
    "TP405": Failure(
        "time-limit",
        "time limit",
        "Importing the file and recording its entries took longer than the time limit, or kept a processor busy afterwards.",
        "Shorten the work that runs on import, or raise `seconds` in `[tool.topos]`.",
    ),
    "TP406": Failure(
        "memory-limit",
        "memory limit",
        "The process grew past the memory limit, or an allocation was refused.",
        "Build the model without its full weights, or raise `memory` in `[tool.topos]`.",
    ),
    "TP407": Failure(
        "process-ended",
        "process ended",
        "The process that runs the code ended before it answered: by exit, by a signal, or by closing what it answers on.",
        "Take exits out of what runs on import; put script code below `if __name__ == '__main__':`.",
    ),
    "TP408": Failure(
        "no-entry",
        "no such entry",
        "The target names no marked entry, or the entry has no input specs.",
        "Mark the function with `@tp.model(...)` or with a comment `# topos: entry inputs=f32[...]` above it.",
    ),
    "TP409": Failure(
        "framework-missing",
        "framework missing",
        "The model needs a framework or an importer that the interpreter does not have.",
        "Install it into the interpreter that the message names.",
    ),
    "TP410": Failure(
        "untrusted",
        "untrusted",
        "The file is not trusted, so it was not run.",
        "Name the file on the command line without `--untrusted`, or trust its folder in the editor.",
    ),
    "TP501": Failure(
        "configuration",
        "configuration file",
        "A configuration file cannot be read, or holds a key or a value that topos does not know.",
        "Correct the key that the message names.",
    ),
    "TP502": Failure(
        "input-spec",
        "input spec",
        "An input spec cannot be read, or does not fit the entry's arguments or the inputs given.",
        "Write `f32[1,3,224,224]`, `i64[2,48]<100` or `name=f32[...]`, separated by commas.",
    ),
    "TP503": Failure(
        "unknown-dtype",
        "unknown dtype",
        "A dtype is none of f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 bool.",
        "Use one of these.",
    ),
    "TP504": Failure(
        "option",
        "option",
        "An option has a value that it cannot have.",
        "Use one of the values that the message lists.",
    ),
    "TP505": Failure(
        "no-target",
        "no such file or target",
        "A file, a folder, a target, a pattern or a document does not exist or cannot be read.",
        f"Correct the path; a target is written {TARGET_FORMS}.",
    ),
    "TP506": Failure(
        "extra-missing",
        "extra missing",
        "The command needs a package that an extra of topos-inspector installs.",
        "Install the extra that the message names.",
    ),
    "TP507": Failure(
        "not-available",
        "not available for this plan",
        "What was asked for cannot be done with this tape or plan: running or emitting an opaque op, running a plan made "
        "for another consumer.",
        "Do what the message proposes.",
    ),
}


def said(error: BaseException) -> str:
    """Gives what an exception of user code says, empty for nothing; its own `__str__` may fail at that."""
    try:
        return str(error).strip()
    except BaseException as failed:
        return f"its message cannot be told, since its `__str__` raises {type(failed).__name__}"
