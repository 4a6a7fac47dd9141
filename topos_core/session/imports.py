"""The files of the user's own that a trace came from, besides the traced one: whoever watches files asks for them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, Final

from topos_core.session.places import is_user_file

_MOST: Final = 4096


def imported_files(path: str, root: str, error: Mapping[str, Any] | None = None) -> list[str]:
    """Lists the files, absolute, of imported modules that are neither installed nor topos's nor `path` itself.

    A module whose import failed is imported no more, so the places of an `error` count too.
    """
    named = [row["path"] for row in (error, *error["related"]) if row["path"]] if error is not None else []
    found = {os.path.normpath(os.path.join(root, name)) for name in named}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)  # whatever user code put there
        if isinstance(file, str) and os.path.isabs(file) and is_user_file(file):
            found.add(os.path.normpath(file))
    return sorted(found - {path})[:_MOST]
