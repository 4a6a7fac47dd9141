"""Finds the marks of a text. A long one is read by a process of its own: while Python parses, no other thread of ours gets a word in."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import sys
from typing import Final

import topos_core
from topos_core.session.entries import Marks, find
from topos_core.session.marks_json import read, scanned

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
    return read(answer if process.returncode == 0 else b"", path)


def main() -> None:
    """Reads a text from standard input and writes its marks, or why there are none; the argument is its path."""
    gc.disable()  # the tree of a long text is a million objects, none of which go before the end
    print(scanned(sys.stdin.buffer.read().decode("utf-8", "surrogatepass"), sys.argv[1]))
