"""The open buffers: their own text with their own lines, moved on by every change."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

from lsprotocol import types as lsp
from pygls.uris import from_fs_path, to_fs_path

from topos_lsp.edits import Edit, differences
from topos_lsp.positions import Encoding, Text

_MARK: Final = "\ufeff"  # an editor that keeps the byte order mark of a file in its buffer sends it along


@dataclass(slots=True)
class Document:
    """One open buffer.

    Args:
        uri: As the editor writes it.
        path: Absolute; for a buffer without a file, where it would stand.
        version: The editor's count of its changes.
        text: The buffer, saved or not.
        saved: Whether there is a file behind it.
    """

    uri: str
    path: str
    version: int
    text: Text
    saved: bool = True

    @property
    def code(self) -> str:
        """Gives the text as Python reads it: a form feed, which it skips, stands for a byte order mark, so every place stays."""
        source = self.text.source
        return f"\f{source[1:]}" if source.startswith(_MARK) else source

    def change(
        self, changes: Sequence[lsp.TextDocumentContentChangeEvent], version: int, encoding: Encoding
    ) -> list[Edit]:
        """Takes changes in order and gives the edits that they come to.

        Whole texts are what we ask for; a client that sends ranges all the same is understood.
        """
        before = self.text.source
        for change in changes:
            if isinstance(change, lsp.TextDocumentContentChangePartial):
                start = self.text.offset_at(change.range.start, encoding)
                end = self.text.offset_at(change.range.end, encoding)
                source = self.text.source
                self.text = Text(source[:start] + change.text + source[max(start, end) :])
            else:
                self.text = Text(change.text)
        self.version = version
        return differences(before, self.text.source)


@dataclass(slots=True)
class Documents:
    """Every open Python buffer by its URI."""

    _open: dict[str, Document] = field(default_factory=dict)

    def open(self, item: lsp.TextDocumentItem, folder: str) -> Document | None:
        """Opens a buffer; None for what topos does not look at (cells of notebooks, other languages, other schemes).

        `folder` is where a buffer without a file is taken to stand.
        """
        scheme = urlsplit(item.uri).scheme
        if scheme not in ("file", "untitled") or item.language_id not in ("python", "py"):
            return None
        path = path_of(item.uri)
        saved = scheme == "file" and path is not None
        if path is None or not saved:
            stem = os.path.splitext(os.path.basename(unquote(urlsplit(item.uri).path)))[0] or "untitled"
            path = os.path.join(folder, "".join(c if c.isalnum() else "_" for c in stem) + ".py")
        document = Document(item.uri, path, item.version, Text(item.text), saved)
        self._open[item.uri] = document
        return document

    def close(self, uri: str) -> Document | None:
        """Forgets a buffer."""
        return self._open.pop(uri, None)

    def get(self, uri: str) -> Document | None:
        """Gives an open buffer."""
        return self._open.get(uri)

    def at(self, path: str) -> Document | None:
        """Gives the open buffer of a file."""
        return next((each for each in self._open.values() if each.path == path), None)

    def __iter__(self) -> Iterator[Document]:
        return iter(list(self._open.values()))


def path_of(uri: str) -> str | None:
    """Gives the absolute path of a `file:` URI, normalised; None for other schemes."""
    if urlsplit(uri).scheme != "file":
        return None
    path = to_fs_path(uri)
    return os.path.normpath(path) if path and "\0" not in path else None  # no file's name holds a NUL


def uri_of(path: str) -> str:
    """Gives the `file:` URI of a path."""
    return str(from_fs_path(path))
