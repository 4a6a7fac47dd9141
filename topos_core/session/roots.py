"""The folder in which user code is run: it may be renamed or deleted while its files are open somewhere."""

from __future__ import annotations

import os

from topos_core.errors import ConfigurationError


def enter_root(root: str) -> None:
    """Makes a project's root the working directory.

    Raises:
        ConfigurationError: TP505, it is gone, or it cannot be entered.
    """
    try:
        os.chdir(root)
    except OSError as error:
        raise left_root(root, error) from None


def left_root(root: str, error: OSError) -> ConfigurationError:
    """Says why nothing is run in a project's root."""
    if os.path.lexists(root):
        return ConfigurationError(
            f"the project's folder {root} cannot be entered: {(error.strerror or str(error)).lower()}", code="TP505"
        )
    return ConfigurationError(
        f"the project's folder {root} is gone, renamed or deleted; open the file where it is now", code="TP505"
    )
