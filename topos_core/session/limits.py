"""What the process that runs user code may use."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Final

MIB: Final = 2**20
SECONDS: Final = 60.0  # of one request, unless the user or the project says otherwise
EDITOR_SECONDS: Final = 30.0  # the same while somebody types and waits
IDLE_CPU_SECONDS: Final = 10  # threads that user code leaves behind may use this much once the answer is given


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one trace, replan, emit or run.

    Args:
        seconds: Wall time of one request; for the first one this counts from the birth of its process.
        memory: Resident bytes of the process and its children together.
        output: Bytes of printed text that are kept; the middle of more is left out.
        network: Whether user code may reach the network.
        fork: Whether workers are forked from the warm process; each is a new Python where not, or where the system refuses.
        seconds_in, memory_in: Where each limit is raised: the project's table, or the user's file where that has it.
    """

    seconds: float = SECONDS
    memory: int = field(default_factory=lambda: default_memory())
    output: int = 64 * 1024
    network: bool = False
    fork: bool = True
    seconds_in: str = "[tool.topos]"
    memory_in: str = "[tool.topos]"


def default_memory() -> int:
    """Gives half of the machine's memory, 16 GiB at most; 4 GiB where the system does not tell."""
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 4096 * MIB
    return min(physical // 2, 16384 * MIB)
