"""Memory limits by the kernel: a control group (version 2) for each worker, where this user may make one.

A user session under systemd owns its slice of the tree and may; a bare container or an old kernel may not, and then the
supervisor watches resident memory itself. Inside a group the kernel kills everything at once, detached children included.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import Final

MOUNT: Final = "/sys/fs/cgroup"


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """One group; `folder` is its place in the mounted tree."""

    folder: str

    def kill(self) -> None:
        """Kills every process of the group; kernels before 5.14 leave that to the caller."""
        with contextlib.suppress(OSError):
            _write(self.folder, "cgroup.kill", "1")

    def was_out_of_memory(self) -> bool:
        """Says whether the kernel killed a process of the group for its memory."""
        try:
            with open(os.path.join(self.folder, "memory.events")) as file:
                counts = dict(line.split() for line in file)
        except (OSError, ValueError):
            return False  # the group is gone, or the kernel does not count
        return int(counts.get("oom_kill", 0)) > 0

    def remove(self) -> None:
        """Removes the group; one that still holds a dying process stays until the system is restarted."""
        with contextlib.suppress(OSError):
            os.rmdir(self.folder)


def make_control_group(name: str, memory: int, *, mount: str = MOUNT, own: str | None = None) -> ControlGroup | None:
    """Makes a group beside this process's own, limited to `memory` bytes without swap; None where that is not allowed.

    `own` is the line of `/proc/self/cgroup` for version 2, such as `0::/user.slice/app.slice/term.scope`.
    """
    path = (own if own is not None else _own_line()).removeprefix("0::").strip()
    if not path.startswith("/"):
        return None
    parent = os.path.dirname(os.path.join(mount, path.strip("/")))
    if path == "/" or not os.path.realpath(parent).startswith(os.path.realpath(mount)):
        return None  # the top of the tree holds processes itself and cannot limit them
    folder = os.path.join(parent, name)
    try:
        with open(os.path.join(parent, "cgroup.subtree_control")) as file:
            if "memory" not in file.read().split():
                return None
        if not os.access(os.path.join(parent, "cgroup.procs"), os.W_OK):
            return None  # moving a process needs the common parent
        os.mkdir(folder)
    except OSError:
        return None  # not ours to change
    group = ControlGroup(folder)
    try:
        _write(folder, "memory.max", str(memory))
        for optional in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
            with contextlib.suppress(OSError):  # a kernel without swap accounting
                _write(folder, *optional)
    except OSError:
        group.remove()
        return None
    return group


def enter(group: ControlGroup, process: int) -> bool:
    """Moves a process into the group; says whether that was allowed."""
    try:
        _write(group.folder, "cgroup.procs", str(process))
    except OSError:
        return False
    return True


def _own_line() -> str:
    try:
        with open("/proc/self/cgroup") as file:
            return next((line for line in file if line.startswith("0::")), "")
    except OSError:
        return ""


def _write(folder: str, name: str, text: str) -> None:
    with open(os.path.join(folder, name), "w") as file:
        file.write(text)
