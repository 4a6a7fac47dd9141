"""The replies that may be given again: those of an open buffer, and those of buffers that were closed."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_KEPT: Final = 8
_CLOSED: Final = 8  # files; a packed reply takes tens of kilobytes

Reply = Mapping[str, Any]
_State = tuple[int, int] | None


@dataclass(slots=True)
class _Kept:
    """A reply, packed or not, and the state of each module on disk that it came from; None where it does not say which."""

    reply: Reply | bytes
    imports: Mapping[str, _State] | None


@dataclass(slots=True)
class Replies:
    """Replies by what was asked, so that undoing an edit costs nothing and a poisonous text is not run twice; packed after a while.

    Where they hold no more, as when an imported module changed, a file gets new ones: a reply that comes or is packed later goes
    into the old ones, and with them.
    """

    _kept: OrderedDict[str, _Kept] = field(default_factory=OrderedDict)

    def __contains__(self, key: str) -> bool:
        return key in self._kept

    def get(self, key: str) -> Reply | bytes | None:
        """Gives a reply, packed or not; none that came from a module which is not as it was, watched or not."""
        kept = self._kept.get(key)
        if kept is None or any(_state(path) != state for path, state in (kept.imports or {}).items()):
            return None
        return kept.reply

    def keep(self, key: str, reply: Reply) -> None:
        """Keeps a reply; the oldest goes."""
        imports = {path: _state(path) for path in reply["imports"]} if "imports" in reply else None
        self._kept[key] = _Kept(reply, imports)
        self._kept.move_to_end(key)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)

    def packed(self, key: str, packed: bytes) -> None:
        """Keeps a packed reply in the place of what it was."""
        if key in self._kept:
            self._kept[key].reply = packed

    def outdate(self, path: str) -> None:
        """Lets go of what a changed module may have had a part in."""
        for key in [key for key, kept in self._kept.items() if kept.imports is None or path in kept.imports]:
            del self._kept[key]


@dataclass(slots=True)
class Closed:
    """The replies of buffers that were closed, by path: reopening one asks again. Of the `_CLOSED` closed last."""

    _replies: OrderedDict[str, Replies] = field(default_factory=OrderedDict)

    def keep(self, path: str, replies: Replies) -> None:
        """Keeps what was answered to a buffer that is closed now; what was closed longest ago goes."""
        self._replies[path] = replies
        self._replies.move_to_end(path)
        while len(self._replies) > _CLOSED:
            self._replies.popitem(last=False)

    def take(self, path: str) -> Replies:
        """Takes out what was answered to a buffer that is opened again; empty for another."""
        return self._replies.pop(path, None) or Replies()

    def outdate(self, path: str) -> None:
        """Lets go of what a changed file may have had a part in; what a file's own text gave is kept by that text."""
        for own, replies in self._replies.items():
            if own != path:
                replies.outdate(path)


def _state(path: str) -> _State:
    """Gives what tells one state of a file from another: its time of change and its size; None where there is no such file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
