"""Keeps the code of the protocol's classes from one start to the next.

attrs and cattrs write a method as text and compile it, a thousand times at each start of the server: 200 of its 560 ms. What they
compiled is kept as Python keeps its own bytecode: by the text itself, in a folder of the user's that nobody else may write.
"""

from __future__ import annotations

import contextlib
import importlib
import marshal
import os
import stat
import tempfile
from collections.abc import Iterator, MutableMapping
from importlib.util import MAGIC_NUMBER
from types import CodeType
from typing import Any, Final

_COMPILERS: Final = ("attr._make", "cattrs.gen")
_NAME: Final = f"protocol-{MAGIC_NUMBER.hex()}.marshal"
_MOST_BYTES: Final = 16 * 2**20

Known = MutableMapping[tuple[str, str], CodeType]


@contextlib.contextmanager
def kept(folder: str) -> Iterator[None]:
    """Takes compiled methods from a folder, and puts there what was not in it."""
    known = _read(folder)
    before = len(known)

    def compiled(script: str, filename: str, mode: str) -> CodeType:
        code = known.get((script, filename))
        if code is None:
            code = known[script, filename] = compile(script, filename, mode)
        return code

    modules: list[Any] = [importlib.import_module(name) for name in _COMPILERS]
    for module in modules:
        module.compile = compiled  # before the builtin of that name
    try:
        yield
    finally:
        for module in modules:
            del module.compile
        if len(known) > before:
            with contextlib.suppress(OSError):
                _write(folder, known)


def _read(folder: str) -> Known:
    try:
        if not _is_ours(os.lstat(folder)):
            return {}
        with open(os.path.join(folder, _NAME), "rb") as file:
            status = os.fstat(file.fileno())
            if not _is_ours(status) or status.st_size > _MOST_BYTES:
                return {}
            known = marshal.loads(file.read())
    except (OSError, ValueError, EOFError, TypeError):  # it is not there, or was cut short
        return {}
    return known if isinstance(known, dict) else {}


def _write(folder: str, known: Known) -> None:
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if not _is_ours(os.lstat(folder)):
        return
    descriptor, temporary = tempfile.mkstemp(dir=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(marshal.dumps(dict(known)))
    os.replace(temporary, os.path.join(folder, _NAME))


def _is_ours(status: os.stat_result) -> bool:
    """Says whether only this user may have written there."""
    own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    return own and not stat.S_ISLNK(status.st_mode) and not status.st_mode & 0o022
