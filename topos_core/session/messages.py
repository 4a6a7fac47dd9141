"""The frames that the agent and its client exchange: length-prefixed JSON objects, never pickle.

A frame is four bytes of length, big endian, then one JSON object in UTF-8. `docs/formats.md` lists the requests and
their replies. Whatever comes from a process that runs user code is checked here before anybody uses it.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final

from topos_core.document import codec
from topos_core.document.display import display
from topos_core.errors import ToposError

PROTOCOL: Final = 1
MAX_FRAME: Final = 256 * 2**20
HEADER: Final = struct.Struct(">I")

_SOURCE_TEXT: Final = (
    "sources",
    "text",
    "generated",
)  # shown line by line, or written into a file; whoever shows it escapes it

_NOT_PLAIN: Final = re.compile(r"[^ -~]")
_HOLDING_TEXT: Final = (str, list, dict)


class MessageError(Exception):
    """A frame that cannot be what a well-behaved peer sends; says what was found."""


def encode(message: Mapping[str, Any]) -> bytes:
    """Makes one frame.

    Raises:
        MessageError: The message is longer than `MAX_FRAME` or holds what JSON cannot.
    """
    try:
        body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, RecursionError) as error:
        raise MessageError(f"a message holds what JSON cannot: {error}") from error
    if len(body) > MAX_FRAME:
        raise MessageError(f"a message of {len(body)} bytes is longer than the limit of {MAX_FRAME}")
    return HEADER.pack(len(body)) + body


class Frame(dict[str, Any]):
    """A frame that was read.

    Attributes:
        escaped: How many escapes its text has, quotes, slashes and backslashes not counted; None where it has characters that
            are no printable ASCII, which a count of escapes then says nothing of.
    """

    __slots__ = ("escaped",)

    def __init__(self, message: Mapping[str, Any], escaped: int | None) -> None:
        super().__init__(message)
        self.escaped = escaped


class Decoder:
    """Collects bytes and hands out whole frames, in order."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """Adds bytes and gives the frames that they completed.

        Raises:
            MessageError: A length over `MAX_FRAME`, or a body that is no JSON object.
        """
        self._buffer += data
        frames: list[Frame] = []
        start = 0
        while len(self._buffer) - start >= HEADER.size:
            (length,) = HEADER.unpack_from(self._buffer, start)
            if length > MAX_FRAME:
                raise MessageError(f"a frame announces {length} bytes, the limit is {MAX_FRAME}")
            end = start + HEADER.size + length
            if len(self._buffer) < end:
                break
            frames.append(_parse(bytes(self._buffer[start + HEADER.size : end])))
            start = end
        del self._buffer[:start]
        return frames


def failure(
    code: str,
    message: str,
    *,
    path: str | None = None,
    line: int | None = None,
    column: int | None = None,
    end_line: int | None = None,
    end_column: int | None = None,
    related: list[dict[str, Any]] | None = None,
    output: str = "",
) -> dict[str, Any]:
    """Makes the `error` object of a reply; its message is for display, its output is as it was printed."""
    return {
        "code": code, "message": display(message), "path": path, "line": line, "column": column, "end_line": end_line,
        "end_column": end_column, "related": related or [], "output": output,
    }  # fmt: skip


def check_reply(do: str, reply: Mapping[str, Any]) -> None:
    """Checks that a reply has the shape that `docs/formats.md` gives for its request.

    Raises:
        MessageError: What is missing or of the wrong kind.
    """
    if not all(isinstance(path, str) for path in _need({"imports": [], **reply}, "imports", list)):
        raise MessageError("'imports' holds what is no path")
    if "error" in reply:
        _check_error(reply["error"])
        return
    plain = _is_plain(reply)
    match do:
        case "trace":
            if not all(isinstance(name, str) for name in _need({"modules": [], **reply}, "modules", list)):
                raise MessageError("'modules' holds what is no name")
            entries = _need(reply, "entries", list)
            for entry in entries:
                if not isinstance(entry, dict):
                    raise MessageError(f"an entry is {type(entry).__name__}, not an object")
                _need(entry, "target", str)
                if "error" in entry:
                    _check_error(entry["error"])
                else:
                    check_document(_need(entry, "document", dict), plain=plain)
                    if not all(isinstance(line, int) for line in _need(entry, "off", list)):
                        raise MessageError("an entry's 'off' holds what is no line")
                    if not all(isinstance(said, str) for said in _need(entry, "off_unknown", dict).values()):
                        raise MessageError("an entry's 'off_unknown' holds what is no text")
                    if not all(isinstance(name, str) for name in _need({"dims": [], **entry}, "dims", list)):
                        raise MessageError("an entry's 'dims' holds what is no name")
                    _check_proofs(entry.get("proofs", []))
        case "prepare":
            return
        case "replan" if "changes" in reply:
            check_changes(_need(reply, "changes", dict))
        case "replan":
            check_document(_need(reply, "document", dict), plain=plain)
        case "emit":
            _need(reply, "text", str)
        case "phases":
            for group in _need(reply, "phases", list):
                if not isinstance(group, dict):
                    raise MessageError("'phases' holds what is no group")
                _need(group, "recorded", list)
            _check_display(reply["phases"], "phases")
        case "kernels":
            _check_display(_need(_need(reply, "listing", dict), "kernels", list), "kernels")
        case "certificate":
            said = _need(reply, "certificate", dict)
            for key in ("answer", "text"):
                _need(said, key, str)
            _check_display(said, "certificate")
        case "run":
            _need(reply, "result", dict)
        case "bench":
            result = _need(reply, "result", dict)
            for key in ("contenders", "model", "regions"):
                _need(result, key, list)
            _check_display(result, "bench")
        case _:
            raise MessageError(f"no request is called {do!r}")


def check_document(document: Mapping[str, Any], *, plain: bool = False) -> None:
    """Checks the parts of a plan document that front ends index into, and every place in it.

    `plain` says that its text, the sources left out, is known to be printable ASCII.

    Raises:
        MessageError: What is missing, of the wrong kind, or out of range.
    """
    try:
        codec.check(document)
        if not plain:
            _check_display(document, "")
        for key in ("regions", "findings", "observations"):
            for row in document[key]:
                _check_place(key, row)
    except ToposError as error:
        raise MessageError(error.message) from error
    except (TypeError, ValueError, LookupError) as error:  # a table's rows are not of the kind that the check unpacks
        raise MessageError(f"a document's tables are not as documented: {error}") from error


def _is_plain(reply: Mapping[str, Any]) -> bool:
    """Says whether whatever is written as an escape in a reply's frame is a character of its documents' sources.

    Each character that is no printable ASCII took an escape of its own: where there are no more of these than of those in the
    sources, all other text is plain, and need not be looked at.
    """
    escaped = reply.escaped if isinstance(reply, Frame) else None
    return escaped is not None and escaped == sum(len(_NOT_PLAIN.findall(text)) for text in _sources(reply))


def _sources(reply: Mapping[str, Any]) -> Iterator[str]:
    entries = reply.get("entries")
    for row in (reply, *(entries if isinstance(entries, list) else ())):
        document = row.get("document") if isinstance(row, dict) else None
        texts = document.get("sources") if isinstance(document, dict) else None
        yield from (text for text in (texts if isinstance(texts, list) else ()) if isinstance(text, str))


def check_changes(changes: Mapping[str, Any]) -> None:
    """Checks what another plan changes in a document as the document itself is checked, but for its tables.

    Raises:
        MessageError: What is missing or of the wrong kind.
    """
    for key in ("changed", "removed", "findings", "observations"):
        _need(changes, key, list)
    for key in ("counts", "totals"):
        _need(changes, key, dict)
    if changes.get("liveness") is not None:
        _need(changes, "liveness", dict)
    try:
        _check_display(changes, "")
        for key in ("changed", "findings", "observations"):
            for row in changes[key]:
                _check_place(key, row)
    except (TypeError, ValueError, LookupError) as error:  # a row is not of the kind that the check unpacks
        raise MessageError(f"the changes are not as documented: {error}") from error


def _check_display(value: Any, key: str) -> None:
    """Checks that text cannot forge or hide output: everything but source text has passed `display()`.

    A document says the same words again and again: each text is looked at once.
    """
    _check_texts(value, key, set())


def _check_texts(value: Any, key: str, seen: set[str]) -> None:
    kind = type(value)
    if kind is str:
        if value not in seen:
            if not (value.isascii() and value.isprintable()) and display(value, len(value)) != value:
                raise MessageError(f"a document's {key!r} holds characters that `display()` escapes")
            seen.add(value)
    elif kind is list:
        for each in value:
            if type(each) in _HOLDING_TEXT:
                _check_texts(each, key, seen)
    elif kind is dict:
        for name, each in value.items():
            if name not in seen:
                _check_texts(name, key, seen)
            if type(each) in _HOLDING_TEXT and name not in _SOURCE_TEXT and (type(each) is not str or each not in seen):
                _check_texts(each, name, seen)


def _check_place(kind: str, row: Any) -> None:
    if not isinstance(row, dict):
        raise MessageError(f"one of {kind} is {type(row).__name__}, not an object")
    for key in ("line", "column", "end_line", "end_column"):
        if not (row.get(key) is None or (isinstance(row[key], int) and row[key] >= 0)):
            raise MessageError(f"one of {kind} has {key} {row[key]!r}, which is no position")
    if not isinstance(row.get("path"), str | None):
        raise MessageError(f"one of {kind} has the path {row['path']!r}, which is no text")


def _check_proofs(rows: Any) -> None:
    if not isinstance(rows, list):
        raise MessageError(f"an entry's proofs are {type(rows).__name__}, not a list")
    for row in rows:
        if not isinstance(row, dict):
            raise MessageError(f"a proof is {type(row).__name__}, not an object")
        for key in ("id", "pattern", "verdict", "answer", "reason"):
            _need(row, key, str)
        _need(row, "samples", int)
        _check_display(row, "proofs")


def _check_error(error: Any) -> None:
    if not isinstance(error, dict):
        raise MessageError(f"an error is {type(error).__name__}, not an object")
    _need(error, "code", str)
    _need(error, "message", str)
    _check_display([error["code"], error["message"]], "message")
    _check_place("errors", error)
    if not isinstance(error.get("related", []), list):
        raise MessageError("an error's related places are no list")
    for row in error.get("related", []):
        _check_place("related places", row)
    if not isinstance(error.get("output", ""), str):
        raise MessageError("an error's output is no text")


def _need(row: Mapping[str, Any], key: str, kind: type) -> Any:
    if key not in row:
        raise MessageError(f"{key!r} is missing")
    if not isinstance(row[key], kind):
        raise MessageError(f"{key!r} is {type(row[key]).__name__}, not {kind.__name__}")
    return row[key]


def _parse(body: bytes) -> Frame:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise MessageError(f"a frame is no JSON: {error}") from error
    if not isinstance(message, dict):
        raise MessageError(f"a frame holds {type(message).__name__}, not an object")
    return Frame(message, _escaped(body) if body.isascii() and b"\x7f" not in body else None)


def _escaped(body: bytes) -> int:
    """Counts the escapes of a JSON text that stand for something else than a quote, a slash or a backslash."""
    single = body.replace(b"\\\\", b"")
    return single.count(b"\\") - single.count(b'\\"') - single.count(b"\\/")
