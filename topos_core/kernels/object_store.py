"""Compiled kernels on disk: a folder of the user's own, every file sealed with the user's own key.

Object code is code, so the folder is private (mode 0700, its owner checked, no symbolic link) and a file whose seal
does not fit the key beside it is compiled anew rather than run. Nothing is pickled.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SEAL_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """Sealed files in one private folder; `folder` is None where no such folder can be had, and nothing is kept."""

    folder: Path | None

    def get(self, name: str) -> bytes | None:
        """Gives what was kept under a name, or None where nothing was or its seal does not fit."""
        if self.folder is None:
            return None
        try:
            sealed = (self.folder / name).read_bytes()
            seal, content = sealed[:SEAL_BYTES], sealed[SEAL_BYTES:]
            return content if hmac.compare_digest(seal, self._seal(name, content)) else None
        except OSError:  # not there, not readable, or the key is gone and no other can be made
            return None

    def put(self, name: str, content: bytes) -> None:
        """Keeps a file, whole or not at all; a full or read-only disk keeps nothing."""
        if self.folder is None:
            return
        temporary = None
        try:
            sealed = self._seal(name, content) + content
            descriptor, temporary = tempfile.mkstemp(dir=self.folder)
            with os.fdopen(descriptor, "wb") as file:
                file.write(sealed)
            os.replace(temporary, self.folder / name)
        except OSError:
            if temporary is not None:
                Path(temporary).unlink(missing_ok=True)

    def _seal(self, name: str, content: bytes) -> bytes:
        assert self.folder is not None
        return hmac.digest(_key(self.folder), name.encode() + b"\0" + content, hashlib.sha256)


def user_store() -> ObjectStore:
    """Opens the user's cache folder: `TOPOS_CACHE_DIR`, else the system's place for caches; nothing without a home."""
    try:
        return ObjectStore(private_folder(_cache_folder() / "kernels"))
    except RuntimeError:  # the user has no home
        return ObjectStore(None)


def _cache_folder() -> Path:
    chosen = os.environ.get("TOPOS_CACHE_DIR")
    if chosen:
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "topos"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "topos"


def private_folder(folder: Path) -> Path | None:
    """Makes a folder that only this user can enter; None where it exists and is anything else."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    if not stat.S_ISDIR(status.st_mode):
        return None
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o077):
        return None
    return folder


def _key(folder: Path) -> bytes:
    """Reads the folder's key; the first caller makes it."""
    path = folder / "key"
    try:
        return path.read_bytes()
    except OSError:
        pass
    descriptor, temporary = tempfile.mkstemp(dir=folder)  # mode 0600
    with os.fdopen(descriptor, "wb") as file:
        file.write(secrets.token_bytes(SEAL_BYTES))
    try:
        os.link(temporary, path)  # whole or not at all: nobody reads half a key
    except FileExistsError:
        pass
    finally:
        os.unlink(temporary)
    return path.read_bytes()
