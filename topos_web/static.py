"""The built page: found beside the package in an installed wheel, in `web/static` in a checkout; read once."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


@dataclass(frozen=True, slots=True)
class StaticFile:
    """One file of the page, held in memory: a request never names a path on disk."""

    name: str
    body: bytes
    media_type: str
    etag: str


def load() -> dict[str, StaticFile]:
    """Reads the built page.

    Raises:
        FileNotFoundError: Neither the package nor the checkout holds a built page.
    """
    installed = Path(str(resources.files("topos_web"))) / "static"
    checkout = Path(__file__).resolve().parent.parent / "web" / "static"
    for folder in (installed, checkout):
        if (folder / "index.html").is_file():
            files = (p for p in sorted(folder.iterdir()) if p.is_file() and p.suffix in TYPES)
            return {p.name: _read(p) for p in files}
    raise FileNotFoundError(
        f"the page is not built: no index.html in {installed} or {checkout}; run npm run build in web/"
    )


def page(files: dict[str, StaticFile], token: str) -> bytes:
    """Gives index.html with the token on every file that it loads, since a tag cannot send a header."""
    names = "|".join(re.escape(name) for name in files)
    text = files["index.html"].body.decode()
    return re.sub(rf'"(\./(?:{names}))"', rf'"\1?token={token}"', text).encode()


def _read(path: Path) -> StaticFile:
    body = path.read_bytes()
    return StaticFile(path.name, body, TYPES[path.suffix], f'"{hashlib.sha256(body).hexdigest()[:32]}"')
