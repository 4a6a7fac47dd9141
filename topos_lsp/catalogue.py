"""The catalogue of codes as a file that editors can open from a diagnostic's code."""

from __future__ import annotations

import os
from collections.abc import Mapping

from topos_core.document.codes import markdown
from topos_core.session.version import VERSION
from topos_lsp.cache import folder
from topos_lsp.documents import uri_of


def links(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Writes the catalogue into the user's cache folder and gives each code's link; empty where nothing can be written."""
    file = os.path.join(folder(environment), f"codes-{VERSION}.md")
    text = markdown()
    try:
        os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
        _write(file, text)
    except OSError:
        return {}
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("## TP"):
            found[line.split()[1]] = f"{uri_of(file)}#L{number}"
    return found


def _write(file: str, text: str) -> None:
    try:
        with open(file, encoding="utf-8") as stream:
            if stream.read() == text:
                return
    except FileNotFoundError:
        pass
    temporary = f"{file}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as stream:
        stream.write(text)
    os.replace(temporary, file)
