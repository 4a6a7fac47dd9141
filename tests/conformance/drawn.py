"""What of a long suite CI runs: drawn by the commit, so that it differs between commits and is the same for one."""

from __future__ import annotations

import os
import subprocess
import zlib
from collections.abc import Iterable


def commit() -> str:
    """Gives the commit that CI tests."""
    given = os.environ.get("GITHUB_SHA")
    if given:
        return given
    found = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "none"


def drawn(names: Iterable[str], share: int) -> list[str]:
    """Draws one name in `share`, on average; at least one."""
    seed = commit()
    ranked = sorted((zlib.crc32((seed + name).encode()), name) for name in names)
    chosen = [name for number, name in ranked if number % share == 0]
    return chosen or [name for _, name in ranked[:1]]
