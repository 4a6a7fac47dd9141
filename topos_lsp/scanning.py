"""Finds the marks of a text. A long one is read by a process of its own: while Python parses, no other thread of ours gets a word in."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import sys
from dataclasses import astuple
from typing import Any, Final

import topos_core
from topos_core.errors import ConfigurationError, ToposError, TraceError
from topos_core.session.entries import Comment, Entry, Marks, find
from topos_core.tape.span import Span

_LONG: Final = 60_000  # characters, which are parsed in 25 to 40 ms; a file of 500 lines has 20,000
_PROGRAM: Final = "from topos_lsp.scanning import main; main()"
_FOLDER: Final = os.path.dirname(os.path.dirname(os.path.abspath(topos_core.__file__)))


async def scan(text: str, path: str) -> Marks:
    """Finds the entries and comments of a text.

    Raises:
        TraceError: TP403, the text does not parse.
        ConfigurationError: TP501, a comment that topos does not know.
    """
    if len(text) < _LONG or "topos" not in text:
        return await asyncio.to_thread(find, text, path)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-c", _PROGRAM, path, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (_FOLDER, os.environ.get("PYTHONPATH"))))},
    )  # fmt: skip
    try:
        answer, _ = await process.communicate(text.encode("utf-8", "surrogatepass"))
    finally:
        if process.returncode is None:  # nobody waits for it any more
            with contextlib.suppress(ProcessLookupError):
                process.kill()
    if process.returncode:
        raise TraceError("the text is too long or too deep to be parsed", code="TP403", span=Span(path, 1, 0, 1, 1))
    return _read(json.loads(answer))


def main() -> None:
    """Reads a text from standard input and writes its marks, or why there are none; the argument is its path."""
    gc.disable()  # the tree of a long text is a million objects, none of which go before the end
    text = sys.stdin.buffer.read().decode("utf-8", "surrogatepass")
    print(json.dumps(_written(text, sys.argv[1])))


def _written(text: str, path: str) -> dict[str, Any]:
    try:
        found = find(text, path)
    except ToposError as error:
        return {"error": [error.message, error.code, error.span]}
    return {"entries": [astuple(entry) for entry in found.entries], "comments": [astuple(c) for c in found.comments]}


def _read(answer: dict[str, Any]) -> Marks:
    if "error" in answer:
        message, code, span = answer["error"]
        kind = ConfigurationError if code.startswith("TP5") else TraceError
        raise kind(message, code=code, span=Span(*span))
    return Marks(
        tuple(
            Entry(name, kind, specs, Span(*span), Span(*mark), end_line)
            for name, kind, specs, span, mark, end_line in answer["entries"]
        ),
        tuple(
            Comment(kind, tuple(names), text, Span(*span), line, Span(*removal))
            for kind, names, text, span, line, removal in answer["comments"]
        ),
    )
