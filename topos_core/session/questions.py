"""What an agent can be asked, question by question: each is one request as `docs/formats.md` lists them, and gives its checked reply."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from topos_core.session.conversation import Progress


class Questions(ABC):
    """Words requests; `root` is the project's, and `request` sends them."""

    root: str

    @abstractmethod
    def request(
        self, message: Mapping[str, Any], timeout: float | None = None, progress: Progress | None = None
    ) -> dict[str, Any]:
        """Sends one request and waits for its checked reply."""

    def trace(
        self,
        path: str,
        text: str | None = None,
        *,
        entries: Sequence[str] | None = None,
        specs: Sequence[str | None] | None = None,
        options: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Runs a file and records its entries (all marked ones unless named); gives `entries` and `output`, or `error`."""
        request = {
            "do": "trace", "path": path, "text": text, "entries": _list(entries), "specs": _list(specs),
            "root": self.root, "options": dict(options or {}),
        }  # fmt: skip
        return self.request(request, timeout, progress)

    def replan(
        self,
        target: str,
        options: Mapping[str, Any] | None = None,
        *,
        changes: bool = False,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Plans a traced target again on the same tape and match pool; gives `document`, or only its `changes`."""
        request = {"do": "replan", "target": target, "options": dict(options or {}), "changes": changes}
        return self.request(request, timeout)

    def emit(
        self,
        target: str,
        options: Mapping[str, Any] | None = None,
        *,
        verify: bool = False,
        timeout: float | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Emits a traced target as StableHLO; gives `text`, and `verification` where asked for."""
        request = {"do": "emit", "target": target, "options": dict(options or {}), "verify": verify}
        return self.request(request, timeout, progress)

    def phases(
        self,
        target: str,
        values: Sequence[int] | None = None,
        options: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Gives the recorded ops, the group and the loop nest of what runs at some values, or of all that runs; gives `phases`."""
        request = {"do": "phases", "target": target, "values": _list(values), "options": dict(options or {})}
        return self.request(request, timeout)

    def kernels(
        self, target: str, region: str, options: Mapping[str, Any] | None = None, *, timeout: float | None = None
    ) -> dict[str, Any]:
        """Lists the kernels that run a taken region of a traced target, with their texts; gives `listing`."""
        return self.request(
            {"do": "kernels", "target": target, "region": region, "options": dict(options or {})}, timeout
        )

    def certificate(
        self, target: str, region: str, options: Mapping[str, Any] | None = None, *, timeout: float | None = None
    ) -> dict[str, Any]:
        """Gives what algebra says of a taken region of a traced target; gives `certificate`."""
        return self.request(
            {"do": "certificate", "target": target, "region": region, "options": dict(options or {})}, timeout
        )

    def run(
        self,
        target: str,
        *,
        timeout: float | None = None,
        progress: Progress | None = None,
        **arguments: Any,
    ) -> dict[str, Any]:
        """Runs a traced target (`backend inputs compare fidelity threads seed cost machine`); gives `result`."""
        return self.request({"do": "run", "target": target, **arguments}, timeout, progress)

    def bench(
        self,
        target: str,
        *,
        timeout: float | None = None,
        progress: Progress | None = None,
        **arguments: Any,
    ) -> dict[str, Any]:
        """Measures a traced target (`inputs seed threads rounds seconds regions contenders fidelity cost machine`); gives `result`."""
        return self.request({"do": "bench", "target": target, **arguments}, timeout, progress)


def _list(values: Sequence[Any] | None) -> list[Any] | None:
    return None if values is None else list(values)
