"""Keeps forks and BLAS calls apart.

OpenBLAS ends its threads before a fork. One that is at work at that moment forgets that it shall end, and the fork waits for
it for ever; a product of another thread waits for ever for a thread that has ended, and a lock that it has just taken is
taken in the child for good. So a fork waits for the calls that have begun, and calls wait for a fork. Calls do not wait for
each other. Only calls of ours are known: a caller's own products have OpenBLAS's own luck.
"""

from __future__ import annotations

import os
import threading
import time
from threading import get_ident
from typing import Final

LOOK_SECONDS: Final = 0.0001
"""How often a fork that waits looks again."""


class _Gate:
    """Threads that are inside; entered by `with`, at the price of some 0.3 microseconds.

    Whoever enters says so before it looks whether somebody forks, and a fork says so before it looks who is inside: one sees
    the other. The thread that forks is never inside a call itself, even where a signal's handler forks.
    """

    __slots__ = ("fork", "forker", "inside")

    def __init__(self) -> None:
        self.inside: set[int] = set()
        self.forker: int | None = None
        self.fork = threading.RLock()

    def __enter__(self) -> None:
        me = get_ident()
        self.inside.add(me)
        while self.forker is not None and self.forker != me:
            self.inside.discard(me)
            with self.fork:
                self.inside.add(me)

    def __exit__(self, *_: object) -> None:
        self.inside.discard(get_ident())

    def close(self) -> None:
        """Waits until nobody is inside; whoever comes waits for the fork."""
        me = get_ident()
        self.inside.discard(me)
        self.fork.acquire()
        self.forker = me
        while self.inside:
            time.sleep(LOOK_SECONDS)

    def open(self) -> None:
        self.forker = None
        self.fork.release()

    def open_child(self) -> None:
        self.inside.clear()  # threads that had come and were about to wait
        self.open()


BLAS: Final = _Gate()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=BLAS.close, after_in_parent=BLAS.open, after_in_child=BLAS.open_child)
