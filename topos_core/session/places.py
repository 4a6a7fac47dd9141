"""Turns an exception of user code into an `error` that names code, message, place and the calls around it."""

from __future__ import annotations

import errno
import linecache
import os
import re
import sys
import sysconfig
from functools import cache
from types import CodeType, TracebackType
from typing import Any, Final

from topos_core.errors import ToposError, TraceError, said
from topos_core.session.entries import split_lines
from topos_core.session.messages import failure
from topos_core.tape.span import Span

FRAMEWORKS: Final = frozenset(
    {"torch", "jax", "jaxlib", "onnx", "transformers", "timm", "flax", "equinox", "tensorflow"}
)
EXTRAS: Final = frozenset({"torch", "jax", "onnx"})
_STACK_LINE: Final = re.compile(r'^\s*File "(?P<path>.*)", line (?P<line>\d+) in (?P<function>.*)$')
_HOME: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_OURS: Final = tuple(_HOME + package + os.sep for package in ("topos_core", "topos_lsp", "topos_web"))
_PACKAGE: Final = sys.modules["topos_core"]  # as it was before any code of the user's ran


def error_of(error: BaseException, path: str, root: str, output: str = "") -> dict[str, Any]:
    """Describes an exception that importing `path`, or recording an entry of it, raised.

    The place is the innermost frame in the file itself; without one the innermost frame that is neither topos nor an
    installed package. The other frames of such files, innermost first, are `related`.
    """
    if isinstance(error, TraceError) and error.code == "TP402" and error.__cause__ is not None:
        error = error.__cause__  # the recorder says that the function raised; what it raised says more
    code, message = _describe(error)
    spans = _spans(error.__traceback__)
    place = next((span for span in spans if span.path == path), spans[0] if spans else None)
    related: list[tuple[str, Span]] = []
    if isinstance(error, ToposError) and error.span is not None:
        if place is None or error.span.path == path or place.path != path:
            place = error.span
        else:  # it happened in a helper, which the file called
            related = [("raised here", error.span)]
        related += [("this belongs to it", span) for span in error.related if span != place]
    elif isinstance(error, SyntaxError) and error.filename:
        place = _syntax_span(error)
    known = {(span.path, span.line) for _, span in related}
    related += [(text, span) for text, span in _calls(spans, place) if (span.path, span.line) not in known]
    if code == "internal":
        message += f" ({_innermost(error.__traceback__)})"
    return failure(
        code,
        message,
        **position(place, root),
        related=[{"message": text, **position(span, root)} for text, span in related],
        output=output,
    )


def place_in_stack(stack: str, path: str, text: str | None = None) -> Span | None:
    """Finds where a stopped process was: the innermost frame in `path` of a fault handler's dump, as a whole line.

    `text` is what was run as `path`; None means the file's own.
    """
    frames = [match for line in stack.splitlines() if (match := _STACK_LINE.match(line))]
    places = [(frame["path"], int(frame["line"])) for frame in frames if is_user_file(frame["path"])]
    found = next((place for place in places if place[0] == path), places[0] if places else None)
    if found is None:
        return None
    linecache.checkcache(found[0])  # this process may have read the file long ago
    lines = split_lines(text) if text is not None and found[0] == path else linecache.getlines(found[0])
    line = lines[found[1] - 1].rstrip() if found[1] <= len(lines) else ""
    return Span(found[0], found[1], len(line) - len(line.lstrip()), found[1], max(len(line), 1))


def position(span: Span | None, root: str) -> dict[str, Any]:
    """Gives the five keys of a place, the path relative to `root` where it is inside; all None without a place."""
    if span is None:
        return {"path": None, "line": None, "column": None, "end_line": None, "end_column": None}
    return {**span._asdict(), "path": relative_path(span.path, root)}


def relative_path(path: str, root: str) -> str:
    """Gives `path` relative to `root` with forward slashes where it is inside, else as it is."""
    if os.path.isabs(path) and (path == root or path.startswith(root.rstrip(os.sep) + os.sep)):
        return os.path.relpath(path, root).replace(os.sep, "/")
    return path


def is_user_file(path: str) -> bool:
    """Says whether a file is neither topos nor the standard library nor an installed package nor made up (`<string>`)."""
    if path.startswith((*_OURS, "<")):
        return False
    installed = tuple(entry + os.sep for entry in sys.path if entry.endswith(("site-packages", "dist-packages")))
    return not path.startswith((*_interpreters_folders(), *installed))


@cache
def _interpreters_folders() -> tuple[str, ...]:
    """Lists the interpreter's own folders; asking for them costs 80 us, and a trace of torch asks about 5,000 files."""
    folders = {sysconfig.get_path(key) for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    return tuple(sorted(folder + os.sep for folder in folders if folder))


def instruction_span(code: CodeType, offset: int) -> Span:
    """Gives the expression of an instruction; the whole line where the interpreter keeps no columns."""
    positions = list(code.co_positions())
    line, end_line, column, end_column = positions[offset // 2] if offset // 2 < len(positions) else (None,) * 4
    if line is None:
        return _line_span(code.co_filename, code.co_firstlineno)
    if end_line is None or column is None or end_column is None:
        return _line_span(code.co_filename, line)
    return Span(
        code.co_filename,
        line,
        _code_points(code.co_filename, line, column),
        end_line,
        _code_points(code.co_filename, end_line, end_column),
    )


def _describe(error: BaseException) -> tuple[str, str]:
    if sys.modules.get("topos_core") is not _PACKAGE:
        return "TP402", (
            "the code took modules that are in use out of `sys.modules`, topos_core among them, so nothing can be recorded; "
            "take out your own modules alone"
        )
    kind = type(error).__name__
    text = said(error) or "no message"
    match error:
        case ToposError():
            return error.code, error.message
        case SyntaxError():
            return "TP403", f"syntax error: {error.msg}"
        case ImportError():
            return _describe_import(error, text)
        case MemoryError():
            return "TP406", f"an allocation was refused ({text}); build the model without its full weights"
        case SystemExit():
            return "TP407", (
                f"the code asks to exit with status {_exit_status(error)}; "
                "put script code below `if __name__ == '__main__':`"
            )
        case EOFError():
            return "TP402", f"{kind}: {text}; the code reads standard input, which is empty here"
        case OSError() if _is_network(error):
            return "TP402", f"{kind}: {text}; code has no network here, download what it needs beforehand"
        case AttributeError() if error.obj is _PACKAGE:
            return _describe_missing(str(error.name))
    if _is_ours(error.__traceback__):
        return "internal", f"topos itself failed: {kind}: {text}; please report this"
    return "TP402", _with_remedy(f"{kind}: {text}", error)


def _describe_missing(name: str) -> tuple[str, str]:
    """Says that the code asks topos_core for a name that it does not have: most often a dtype."""
    if re.fullmatch(r"b?[a-z]\d+(_\w+)?", name):
        from topos_core.tape.type import DTYPE_NAMES  # and NumPy with it, which servers do not load

        return "TP503", f"unknown dtype tp.{name}; use one of {' '.join(DTYPE_NAMES)}"
    return "TP402", f"topos_core has no {name!r}; dir(topos_core) lists what it has"


def _describe_import(error: ImportError, text: str) -> tuple[str, str]:
    name = error.name or ""
    if name == "topos_core" and text.startswith("cannot import name"):
        return "TP404", f"{text}; dir(topos_core) lists what it has"
    if name.partition(".")[0] == "topos_core":
        return "internal", f"topos itself failed: {text}; please report this"
    if _is_ours(error.__traceback__):  # asked for by the command, not by the code
        return "TP409", f"this needs {name or text} in {sys.executable}; install topos-inspector there"
    if isinstance(error, ModuleNotFoundError):
        top = name.partition(".")[0]
        if top in FRAMEWORKS:
            extra = f" (pip install 'topos-inspector[{top}]')" if top in EXTRAS else ""
            return "TP409", f"{sys.executable} has no {top}; install it there{extra}, or choose another interpreter"
        return "TP404", f"no module named {name!r} in {sys.executable}; install it there, or correct the name"
    return "TP404", _with_remedy(text, error)


def _with_remedy(message: str, error: BaseException) -> str:
    from topos_core.recording.hints import with_remedy  # and the recorder, NumPy included, which servers do not load

    return with_remedy(message, error)


def _exit_status(error: SystemExit) -> str:
    return "0" if error.code is None else repr(error.code)


def _is_network(error: OSError) -> bool:
    return type(error).__name__ in ("gaierror", "URLError") or error.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH)


def _is_ours(traceback: TracebackType | None) -> bool:
    """Says whether the innermost frame that is no installed package belongs to topos rather than to the user."""
    ours = False
    while traceback is not None:
        path = traceback.tb_frame.f_code.co_filename
        if path.startswith(_OURS):
            ours = True
        elif is_user_file(path):
            ours = False
        traceback = traceback.tb_next
    return ours


def _innermost(traceback: TracebackType | None) -> str:
    """Names our innermost frame, for whoever reads the report."""
    found = "no traceback"
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename.startswith(_OURS):
            found = f"{code.co_filename.removeprefix(_HOME)}:{traceback.tb_lineno} in {code.co_name}"
        traceback = traceback.tb_next
    return found


def _spans(traceback: TracebackType | None) -> list[Span]:
    """Lists the places of user frames, innermost first, without repeats."""
    spans: list[Span] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if is_user_file(code.co_filename):
            span = instruction_span(code, traceback.tb_lasti)
            if span not in spans:
                spans.insert(0, span)
        traceback = traceback.tb_next
    return spans[:20]


def _calls(spans: list[Span], place: Span | None) -> list[tuple[str, Span]]:
    """Names the other frames: those inside of the place raised, those outside called."""
    found: list[tuple[str, Span]] = []
    inside = any(_same_line(span, place) for span in spans)
    for span in spans:
        if _same_line(span, place):
            inside = False
        else:
            found.append(("raised here" if inside else "called from here", span))
    return found


def _same_line(span: Span, place: Span | None) -> bool:
    return place is not None and (span.path, span.line) == (place.path, place.line)


def _syntax_span(error: SyntaxError) -> Span:
    assert error.filename is not None
    line = error.lineno or 1
    column = max((error.offset or 1) - 1, 0)
    end_line = error.end_lineno or line
    end_column = max((error.end_offset or 0) - 1, 0)
    if (end_line, end_column) <= (line, column):
        end_line, end_column = line, column + 1
    return Span(error.filename, line, column, end_line, end_column)


def _line_span(path: str, line: int) -> Span:
    text = linecache.getline(path, line).rstrip()
    return Span(path, line, len(text) - len(text.lstrip()), line, max(len(text), 1))


def _code_points(path: str, line: int, column: int) -> int:
    """Turns a UTF-8 byte column, which is what CPython keeps, into code points."""
    return len(linecache.getline(path, line).encode()[:column].decode("utf-8", "ignore"))
