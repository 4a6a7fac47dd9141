"""A plan as the output of a notebook's cell: the whole page in a frame of its own, or a table where the page is missing."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any, Final

from topos_core.document.formats.text import machine_of, render_plan

Document = Mapping[str, Any]

LARGEST_PAGE: Final = 8 * 2**20
"""Bytes of HTML up to which the page is put into the notebook's file."""
_HEIGHT: Final = 680
_WORDS: Final = {"taken": "taken", "declined": "declined", "blocked": "blocked", "near_miss": "near miss"}


def framed(page: str) -> str:
    """Puts the page into a frame that may run its own script and nothing else: it sees neither notebook nor network."""
    return (
        f'<iframe title="plan" sandbox="allow-scripts allow-downloads allow-popups" srcdoc="{escape(page)}"'
        f' style="width: 100%; height: {_HEIGHT}px; border: 1px solid #8886; border-radius: 6px"></iframe>'
    )


def table(document: Document) -> str:
    """Writes a row per region, and the whole text below it; no script, no style sheet."""
    rows = "".join(_row(region) for region in document["regions"])
    head = "".join(f'<th style="text-align: left">{name}</th>' for name in ("verdict", "region", "place", "why"))
    return (
        f"<div><b>{escape(document['target'])}</b> ({escape(document['consumer'])}, {escape(document['fidelity'])},"
        f" {escape(machine_of(document))})"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f"<details><summary>as text</summary><pre>{escape(render_plan(document))}</pre></details></div>"
    )


def _row(region: Document) -> str:
    place = f"{region['path']}:{region['line']}:{region['column'] + 1}"
    code = f" ({region['code']})" if region["code"] else ""
    cells = (
        f"{_WORDS[region['verdict']]}{code}",
        region["headline"].rpartition(": ")[0] or region["headline"],
        place,
        region["reason"],
    )
    return "<tr>" + "".join(f'<td style="text-align: left">{escape(cell)}</td>' for cell in cells) + "</tr>"
