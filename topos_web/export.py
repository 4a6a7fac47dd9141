"""Writes one plan as one HTML file that works from a file system: page, data and layout worker inline, nothing asked."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from topos_web import payloads, static
from topos_web.payloads import Document
from topos_web.plans import plan_id
from topos_web.static import StaticFile


def html(document: Mapping[str, Any], emitted: str | None = None, refusal: str | None = None) -> str:
    """Gives the file's text for a document with its sources; `emitted` is its StableHLO, `refusal` why it has none."""
    return _compose(static.load(), _data(document, emitted, refusal))


def _data(document: Document, emitted: str | None, refusal: str | None) -> dict[str, Any]:
    state = {
        "id": plan_id(document["target"]),
        "target": document["target"],
        "revision": 1,
        "graph": "inline",
        "counts": document["counts"],
        "error": None,
        "previous": False,
        "profile": False,
    }
    return {
        "state": state,
        "skeleton": {**state, **payloads.skeleton(document), "root": "", "machines": []},
        "graph": payloads.graph_data(document),
        "plan": payloads.plan_data(document),
        "sources": document.get("sources", []),
        "emitted": emitted,
        "refusal": refusal,
    }


def _compose(files: Mapping[str, StaticFile], data: Mapping[str, Any]) -> str:
    script = files["app.js"].body.decode()
    style = files["style.css"].body.decode()
    worker = files["layout.worker.js"].body.decode()
    icon = base64.b64encode(files["favicon.svg"].body).decode()
    for text, tag in ((script, "script"), (worker, "script"), (style, "style")):
        # HTML ends an element at its end tag, and looks past it after "<!--" and another start tag
        if f"</{tag}" in text.lower() or ("<!--" in text and f"<{tag}" in text.lower()):
            raise ValueError(f"the built page names <{tag}> in its own text and cannot be written into one file")
    # a <script> ends at the first "</script": no "<" of the data may stand bare
    packed = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; worker-src blob:; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    head = re.search(r"<title>.*?</title>", files["index.html"].body.decode())
    assert head is not None
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'{head.group()}\n<link rel="icon" href="data:image/svg+xml;base64,{icon}">\n'
        f'<style>{style}</style>\n</head>\n<body>\n<div id="app"></div>\n'
        f'<script type="application/json" id="topos-data">{packed}</script>\n'
        f'<script type="text/plain" id="topos-worker">{worker}</script>\n'
        f'<script type="text/plain" id="topos-notices">{files["NOTICES.txt"].body.decode()}</script>\n'
        f'<script type="module">{script}</script>\n</body>\n</html>\n'
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
