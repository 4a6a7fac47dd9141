"""What is known of one open file that has entries: its state, its entries, its plans and its failures."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from topos_core.session.entries import Comment, Entry, Marks
from topos_lsp.anchors import Anchors
from topos_lsp.documents import Document
from topos_lsp.edits import Edit
from topos_lsp.homes import Home
from topos_lsp.plan import Plan, Stale
from topos_lsp.replies import Replies

_LONGEST_PAUSE: Final = 2.0  # seconds, unless the user's own is longer
State = Literal["empty", "waiting", "tracing", "traced", "failed", "cancelled", "untrusted", "unasked"]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no newer plan; `place` is an anchor of the file."""

    error: Mapping[str, Any]
    place: int | None
    when: str


@dataclass(slots=True)
class File:
    """One open file.

    Args:
        document: Its buffer.
        home: Its project.
        state: What happens to it.
        marks: The entries and comments of the newest text that could be parsed.
        entries: Entries with their input specs, configured ones too.
        anchors: Places of entries and failures, moved on by every edit.
        names: Per entry, the anchor of its name.
        bodies: Per entry, the anchor of everything from its mark to its end.
        plans: The last good plan per entry.
        failures: Per entry, or for the whole file under "", why there is no newer plan.
        unused: TP601 findings of comments that change nothing, each with its anchor as `place`.
        imports: The files of the user's own modules that the last trace imported; None where it did not come so far.
        traced_text: The text that the agent's owner of this file holds.
        task: What waits for the pause and then for the work.
        work: The blocking request to the agent.
        seconds: How long the last trace took; of one that was ended, at least.
        interrupted: Whether a keystroke has ended a trace since the last one that came to its end.
        replies: What was answered to older texts, as far as it would be answered again.
    """

    document: Document
    home: Home
    state: State = "waiting"
    marks: Marks = field(default_factory=lambda: Marks(()))
    entries: dict[str, str | None] = field(default_factory=dict)
    anchors: Anchors = field(default_factory=Anchors)
    names: dict[str, int] = field(default_factory=dict)
    bodies: dict[str, int] = field(default_factory=dict)
    plans: dict[str, Plan] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    unused: list[dict[str, Any]] = field(default_factory=list)
    imports: frozenset[str] | None = None
    traced_text: str | None = None
    seconds: float = 0.0
    interrupted: bool = False
    replies: Replies = field(default_factory=Replies)
    task: asyncio.Task[None] | None = None
    work: Future[Any] | None = None

    @property
    def uri(self) -> str:
        """Gives the buffer's URI."""
        return self.document.uri

    @property
    def relative(self) -> str:
        """Gives the path as documents have it."""
        return self.home.workspace.relative(self.document.path)

    def depends_on(self, path: str) -> bool:
        """Says whether a changed file can change what its trace gives: an imported one, or any where an import is missing."""
        missing = any(failure.error["code"] == "TP404" for failure in self.failures.values())
        return missing or self.imports is None or path in self.imports

    @property
    def pending(self) -> bool:
        """Says whether newer results are on their way."""
        return self.state in ("waiting", "tracing")

    def mark(self, marks: Marks, entries: dict[str, str | None]) -> None:
        """Takes the entries of the newest text."""
        self.marks, self.entries = marks, entries
        before = self.anchors
        self.anchors, self.names, self.bodies, self.unused = Anchors(), {}, {}, []
        for name, failure in self.failures.items():
            if failure.place is not None:
                moved = self.anchors.add(before.starts[failure.place], before.ends[failure.place])
                self.failures[name] = replace(failure, place=moved)
        text = self.document.text
        for entry in marks.entries:
            self.names[entry.name] = self.anchors.add(*text.place(*entry.span[1:]))
            first = min(entry.mark.line, entry.span.line)
            body = text.offset(first - 1, 0), text.offset(max(entry.end_line, entry.span.line) - 1, 1 << 30)
            self.bodies[entry.name] = self.anchors.add(*body)
        for name in [name for name in self.plans if name not in entries]:
            del self.plans[name]

    def move(self, edits: Sequence[Edit]) -> None:
        """Follows edits of the buffer."""
        self.anchors.move(edits)
        for plan in self.plans.values():
            plan.move(self.uri, edits)

    def pause(self, debounce: float) -> float:
        """Gives the seconds of quiet before a trace: while keystrokes end traces that run, as many as a trace takes."""
        return max(debounce, min(self.seconds, _LONGEST_PAUSE)) if self.interrupted else debounce

    def entry_at(self, offset: int) -> str | None:
        """Gives the innermost entry around an offset."""
        around = [name for name, body in self.bodies.items() if self.anchors.covers(body, offset)]
        return min(around, key=lambda name: self.anchors.length(self.bodies[name]), default=None)

    def failure_of(self, name: str) -> Failure | None:
        """Gives why an entry has no newer plan."""
        return self.failures.get(name) or self.failures.get("")

    def mark_stale(self, name: str, reason: str) -> None:
        """Says of an entry's plan, or of all under "", why it is not the newest."""
        for each, plan in self.plans.items():
            if name in ("", each):
                plan.stale = Stale(plan.traced if plan.stale is None else plan.stale.since, reason)

    def comments(self) -> tuple[Comment, ...]:
        """Lists the `# topos:` comments."""
        return self.marks.comments

    def marked(self) -> Iterator[Entry]:
        """Lists the entries that stand in the text."""
        yield from self.marks.entries
