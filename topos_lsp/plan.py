"""The last good plan of one entry, and how each open buffer sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from topos_core.session.entries import Comment
from topos_lsp.documents import Document
from topos_lsp.edits import Edit, differences
from topos_lsp.homes import Home
from topos_lsp.view import PlanDocument, View, view


@dataclass(frozen=True, slots=True)
class Stale:
    """Why a plan is not of the buffer's newest text."""

    since: str
    reason: str


@dataclass(slots=True)
class Plan:
    """The last good plan of one entry, and how each open buffer sees it.

    Args:
        target: `path:name`.
        document: `topos.plan/1`.
        off: Lines of `# topos: off[...]` comments that switch something off.
        off_unknown: What is said of each name in such a comment that no pattern has.
        traced: When, as a time of day.
        hidden: Findings, by their number, that a `# topos: ignore[...]` comment leaves out.
        used: Those comments, with their files.
        stale: Why it is not of the newest text; None while it is.
    """

    target: str
    document: PlanDocument
    off: frozenset[int]
    off_unknown: Mapping[str, str]
    traced: str
    hidden: frozenset[int] = frozenset()
    used: frozenset[tuple[str, Comment]] = frozenset()
    stale: Stale | None = None
    _views: dict[str, View | None] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Gives the entry's name."""
        return self.target.rpartition(":")[2]

    def view(self, document: Document, home: Home) -> View | None:
        """Gives the plan as a buffer sees it; None where nothing of it stands there."""
        if document.uri not in self._views:
            self.seen(document, view(self.document, home.workspace.relative(document.path)))
        return self._views[document.uri]

    def seen(self, document: Document, made: View | None) -> None:
        """Takes a view that was made of the traced text, and moves it to the buffer's."""
        if made is not None:
            made.move(differences(made.text.source, document.code))
        self._views[document.uri] = made

    def move(self, uri: str, edits: Sequence[Edit]) -> None:
        """Follows edits of a buffer."""
        seen = self._views.get(uri)
        if seen is not None:
            seen.move(edits)

    def forget(self, uri: str) -> None:
        """Forgets how a closed buffer saw it."""
        self._views.pop(uri, None)
