"""Starts a worker as a new Python where the warm process cannot fork: slower, since it imports everything again, and the same else."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any


def spawn(parent: int, channel: int, output: int, stack: int, settings: Mapping[str, Any]) -> int:
    """Starts `bootstrap.py` again, as a worker that has three descriptors under their own numbers; gives its process.

    No page table is copied, so this works where the system refuses to fork for want of memory. The network namespace is inherited.
    """
    bootstrap = os.path.join(settings["core"], "session", "bootstrap.py")
    worker = {"parent": parent, "channel": channel, "output": output, "stack": stack}
    for descriptor in (channel, output, stack):
        os.set_inheritable(descriptor, True)
    arguments = [sys.executable, bootstrap, json.dumps({**settings, "worker": worker})]
    empty = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
    streams = [(os.POSIX_SPAWN_DUP2, output, number) for number in (1, 2)]
    return os.posix_spawn(
        sys.executable,
        arguments,
        os.environ,
        file_actions=[empty, *streams],
        setsigdef=[signal.SIGCHLD, signal.SIGINT],
    )
