"""What the agent's replies come to: plans and views, made in a thread; of kept ones too."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from topos_core.errors import ToposError
from topos_core.session.entries import Comment, find
from topos_core.session.suppression import suppress
from topos_lsp.memory import settle
from topos_lsp.plan import Plan
from topos_lsp.replies import Reply
from topos_lsp.view import View, view

if TYPE_CHECKING:  # a file holds its replies
    from topos_lsp.files import File

_DEPTH: Final = 5  # a reply, its entries, an entry, its document, and the rows of a table
_POISON: Final = ("TP405", "TP406", "TP407")  # time, memory, death: the same text would do the same again


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply, and per entry with a document its plan and how the traced text itself sees it."""

    reply: Reply
    plans: Mapping[str, tuple[Plan, View | None]]


def answer(file: File, reply: Reply) -> Answer:
    """Makes plans and views of a reply; in a thread."""
    settle()
    plans = {
        entry["target"].rpartition(":")[2]: (_plan(file, entry), view(entry["document"], file.relative))
        for entry in reply.get("entries", ())
        if "document" in entry
    }
    return Answer(reply, plans)


def pack(reply: Reply) -> bytes:
    """Packs a reply; in a thread, and part by part, since nobody else runs while a part is written."""
    compressor = zlib.compressobj(1)
    packed = [compressor.compress(part.encode()) for part in _parts(reply, _DEPTH)]
    return b"".join((*packed, compressor.flush()))


def _parts(value: Any, depth: int) -> Iterator[str]:
    """Gives the JSON of a value in parts that are small down to a depth."""
    if depth and isinstance(value, dict):
        for number, (name, each) in enumerate(value.items()):
            yield f"{',' if number else '{'}{json.dumps(name)}:"
            yield from _parts(each, depth - 1)
        yield "}" if value else "{}"
    elif depth and isinstance(value, list):
        for number, each in enumerate(value):
            yield "," if number else "["
            yield from _parts(each, depth - 1)
        yield "]" if value else "[]"
    else:
        yield json.dumps(value)


def again(file: File, kept: Reply | bytes) -> Answer:
    """Makes plans and views of a reply that was kept; in a thread."""
    return answer(file, json.loads(zlib.decompress(kept)) if isinstance(kept, bytes) else kept)


def is_final(reply: Reply) -> bool:
    """Says whether the same text would be answered alike: an import that failed may work once something is installed."""
    errors = [row["error"]["code"] for row in (reply, *reply.get("entries", ())) if "error" in row]
    return all(code in _POISON for code in errors)


def now() -> str:
    """Gives the time of day, as plans and failures tell it."""
    return time.strftime("%H:%M:%S")


def _plan(file: File, entry: Mapping[str, Any]) -> Plan:
    document = entry["document"]
    comments = {
        path: _comments(file, path, text) for path, text in zip(document["paths"], document["sources"], strict=True)
    }
    kept = suppress(document["findings"], comments)
    shown = {id(finding) for finding in kept.findings}
    hidden = frozenset(k for k, finding in enumerate(document["findings"]) if id(finding) not in shown)
    return Plan(entry["target"], document, frozenset(entry["off"]), entry["off_unknown"], now(), hidden, kept.used)


def _comments(file: File, path: str, text: str) -> Sequence[Comment]:
    """Gives the `# topos:` comments of a traced text; none of another file's that does not parse by now."""
    if path == file.relative:
        return file.comments()
    if "topos:" not in text or not path.endswith(".py"):
        return ()
    try:
        return find(text, path).comments
    except ToposError:
        return ()
