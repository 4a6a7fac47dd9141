"""Which part of a long set of random cases this commit tries: another one each time, the same for who looks again."""

from __future__ import annotations

import subprocess
from pathlib import Path


def part_of(parts: int) -> int:
    """Gives a number below `parts` from the hash of the commit that is checked out; 0 where there is no repository."""
    asked = ["git", "-C", str(Path(__file__).parents[2]), "rev-parse", "HEAD"]
    try:
        told = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return int(told.stdout.strip(), 16) % parts if told.returncode == 0 else 0
