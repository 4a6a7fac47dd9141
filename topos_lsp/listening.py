"""What tracing tells to whoever shows it."""

from __future__ import annotations

from typing import Protocol

from topos_lsp.files import File


class Listener(Protocol):
    """Who shows what tracing found."""

    def changed(self, file: File) -> None:
        """Is called whenever a file's state, plans or failures changed."""

    def reopening(self) -> None:
        """Is called before projects are read anew."""

    def working(self, file: File) -> Work:
        """Gives what tells the user about a trace that runs."""


class Work(Protocol):
    """One running trace, as the user sees it."""

    def report(self, title: str, done: int, total: int) -> None:
        """Tells a step; from any thread."""

    def end(self) -> None:
        """Takes it away."""


class Silent:
    """Work that nobody is told of."""

    def report(self, title: str, done: int, total: int) -> None:
        """Tells nobody."""

    def end(self) -> None:
        """Has nothing to take away."""
