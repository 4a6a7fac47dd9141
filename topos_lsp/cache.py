"""Where the server keeps what it would otherwise make again at each start."""

from __future__ import annotations

import os
from collections.abc import Mapping


def folder(environment: Mapping[str, str] | None = None) -> str:
    """Gives the user's cache folder of topos."""
    variables = os.environ if environment is None else environment
    base = variables.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "topos")
