"""Watches the traced files and asks for a new trace when one is saved."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Final

INTERVAL_SECONDS: Final = 0.25  # polled: works on every file system, and a handful of stats costs microseconds

Stamp = tuple[int, int]


class Watcher:
    """Polls modification times in a thread, and names the files that were saved.

    A file still being written is waited for until it rests one tick.
    """

    def __init__(self, files: Callable[[], Sequence[str]], changed: Callable[[Sequence[str]], None]) -> None:
        self._files = files
        self._changed = changed
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="topos-watch", daemon=True)
        self._seen = stamps(files())

    def start(self) -> None:
        """Starts polling."""
        self._thread.start()

    def stop(self) -> None:
        """Stops polling and waits for the thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=2 * INTERVAL_SECONDS)

    def _run(self) -> None:
        moving: dict[str, Stamp | None] = {}
        while not self._stop.wait(INTERVAL_SECONDS):
            now = stamps(self._files())
            saved = {name: stamp for name, stamp in now.items() if stamp != self._seen.setdefault(name, stamp)}
            if saved and saved == moving:
                self._seen.update(now)  # before the trace: a save meanwhile is seen on the next tick
                moving = {}
                self._changed(sorted(saved))
            else:
                moving = saved


def stamps(files: Sequence[str]) -> dict[str, Stamp | None]:
    """Gives each file's modification time and size; None where it is missing, as it is for a moment in many saves."""
    found: dict[str, Stamp | None] = {}
    for name in files:
        try:
            status = os.stat(name)
        except OSError:
            found[name] = None
        else:
            found[name] = (status.st_mtime_ns, status.st_size)
    return found
