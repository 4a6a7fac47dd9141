"""Looks at and ends trees of processes: what they hold in memory, who descends from whom."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from typing import Final

BROKEN: Final = 70  # the status of a worker whose own code could not go on
CHANNEL_LOST: Final = 71  # of one whose channel was closed by user code
_SET_DEATH_SIGNAL: Final = 1
_SET_CHILD_SUBREAPER: Final = 36


def descendants(process: int) -> list[int]:
    """Lists a process and everything below it that has not moved away to another parent, parents first."""
    found = [process]
    for parent in found:
        found += children(parent)
    return found


def resident_bytes(process: int) -> int:
    """Adds up the resident memory of a process and its descendants; pages that a fork shares count once each."""
    return sum(_resident(each) for each in descendants(process))


def proportional_bytes(process: int) -> int:
    """Adds up the same with shared pages divided among their holders; slower, and equal where the system has no such count."""
    return sum(_proportional(each) for each in descendants(process))


def children(process: int) -> list[int]:
    """Lists the processes whose parent this is."""
    found: list[int] = []
    if sys.platform == "linux":
        try:
            for thread in os.listdir(f"/proc/{process}/task"):
                with open(f"/proc/{process}/task/{thread}/children", "rb") as file:
                    found += map(int, file.read().split())
        except OSError:
            pass  # it ended while we looked
        return found
    try:
        import psutil  # the user's interpreter may not have it; the process group is then all that is seen

        return [child.pid for child in psutil.Process(process).children()]
    except Exception:
        return []


def processor_ticks(process: int) -> int:
    """Gives the processor time that a process has used, in the system's ticks; 0 where it is not told."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return int(fields[11]) + int(fields[12])
    except (OSError, IndexError):
        return 0  # another system, or it ended while we looked


def kill_tree(process: int) -> None:
    """Kills a process, its group and its descendants at once; those that are gone already are no failure."""
    for each in descendants(process):
        _signal(each, signal.SIGSTOP)  # a fork between the listing and the kill would get away
    for each in descendants(process):
        _signal(each, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it leads no group, or the group is empty by now
        os.killpg(process, signal.SIGKILL)


def adopt_orphans() -> None:
    """Makes this process the parent of descendants whose own parent ends, so that they stay in its tree."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Asks the system to kill this process when its parent's thread ends; ends it if that has happened already."""
    _prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _resident(process: int) -> int:
    if sys.platform == "linux":
        try:
            with open(f"/proc/{process}/statm", "rb") as file:
                return int(file.read().split()[1]) * _PAGE
        except (OSError, IndexError):
            return 0  # it ended while we looked
    try:
        import psutil

        return int(psutil.Process(process).memory_info().rss)
    except Exception:
        return 0


def _proportional(process: int) -> int:
    try:
        with open(f"/proc/{process}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass  # an old kernel, another system, or it ended while we looked
    return _resident(process)


def _signal(process: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it ended meanwhile, or became another user's
        os.kill(process, number)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


_PAGE: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
