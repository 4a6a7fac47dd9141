"""Hover: what was decided about the expression under the cursor; verdict first, one reason, one number, one action."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lsprotocol import types as lsp
from pygls.capabilities import get_capability

from topos_core.document import marks as words
from topos_core.document import phrases
from topos_core.document.display import display
from topos_core.document.ranking import order
from topos_lsp.documents import Document
from topos_lsp.files import File
from topos_lsp.markdown import bold_verdict, content, escape
from topos_lsp.plan import Plan
from topos_lsp.positions import Text
from topos_lsp.server import Server
from topos_lsp.view import View

_MOST_REGIONS = 3
_MOST_OPS = 3
_MOST_MODULES = 3


def register(server: Server) -> None:
    """Registers the handler."""

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        document = server.document(params.text_document.uri)
        if document is None:
            return None
        offset = document.text.offset_at(params.position, server.encoding)
        kinds = get_capability(server.client_capabilities, "text_document.hover.content_format", None) or []
        kind = lsp.MarkupKind.Markdown if lsp.MarkupKind.Markdown in kinds or not kinds else lsp.MarkupKind.PlainText
        blocks: list[list[str]] = []
        span: tuple[int, int] | None = None
        for file, plan, seen in server.tracing.plans(document):
            found = _Found(server, file, plan, seen, offset, kind)
            lines = list(found.blocks())
            if lines and all(block not in blocks for block in lines):
                blocks += lines
                blocks.append(list(found.foot()))
                span = span or found.span
        if not blocks:
            blocks, span = _state(server, document, offset, kind)
        if not blocks:
            return None
        where = document.text.range(*span, server.encoding) if span is not None else None
        return lsp.Hover(contents=content(blocks, kind), range=where)


class _Found:
    """What one plan says at an offset."""

    def __init__(self, server: Server, file: File, plan: Plan, seen: View, offset: int, kind: lsp.MarkupKind) -> None:
        self.server = server
        self.file = file
        self.plan = plan
        self.seen = seen
        self.offset = offset
        self.markdown = kind == lsp.MarkupKind.Markdown
        self.span: tuple[int, int] | None = None

    def blocks(self) -> Iterator[list[str]]:
        """Gives a block per region, then the op."""
        anchors = self.seen.anchors
        findings = [f for f in self.seen.findings if f.row["code"] in _READING and anchors.covers(f.place, self.offset)]
        found = self.seen.at(self.offset)
        read = [
            place for place in self.seen.observations
            if anchors.covers(place, self.offset) and not (found and anchors.length(found[0]) < anchors.length(place))
        ]  # fmt: skip
        values: list[int] = []
        named: set[str] = set()
        if read:
            self._at(read[0])
            yield [self._verdict(line) for line in self._observed(read[0])]
            named = {finding.row["region"] for finding in findings}
        elif found:
            self._at(found[0])
            values = found[1]
        regions = self._regions(values, named)
        for rows in regions[:_MOST_REGIONS]:
            yield list(self._region(rows[0], len(rows)))
        if values and (self.server.settings.hover_ops or regions):
            yield list(self._ops(values, bool(regions)))

    def foot(self) -> Iterator[str]:
        """Says what the verdicts hold for, and whether they are of an older text."""
        document, home = self.plan.document, self.file.home
        if self.plan.stale is not None:
            yield self._verdict(words.stale(self.plan.stale.since, self.plan.stale.reason))
        line = f"{document['target']}, {words.request(document['consumer'], document['fidelity'], document['machine'])}"
        if home.interpreter is not None:
            line += f"; {words.interpreter(home.interpreter.path, home.interpreter.origin, home.interpreter.skipped)}"
        yield self._text(line)

    def _regions(self, values: list[int], named: set[str]) -> list[list[Mapping[str, Any]]]:
        """Lists the regions that hold one of the values, equal ones together: the larger before the smaller it hides."""
        inside = set(values)
        rows = [
            region.row for region in self.seen.regions
            if region.row["id"] in named or not inside.isdisjoint(region.row["nodes"])
        ]  # fmt: skip
        rows.sort(key=lambda row: (row["parent"] is not None, *order(row), -len(row["nodes"])))
        alike: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        for row in rows:
            alike.setdefault((row["headline"], row["reason"]), []).append(row)
        return list(alike.values())

    def _region(self, row: Mapping[str, Any], alike: int) -> Iterator[str]:
        count = f" {phrases.repeats(alike)}" if alike > 1 else ""
        title = row["headline"].rpartition(": ")[0]
        code = f" {self._code(row['code'])}" if row["code"] else ""
        word = row["verdict"].replace("_", " ")
        yield f"{self._verdict(word + ': ')}{self._text(title)}{count}{code}"
        yield self._text(row["reason"].partition(": ")[2] or row["reason"])
        if row["details"]:
            yield self._text(row["details"][0])
        if row["flips_if"]:
            yield self._text(row["flips_if"]["text"])
        if row["action"]:
            yield self._text(row["action"])
        built = _elsewhere(row)
        if built:
            yield self._text(phrases.built_at(built))
        for consumer, other in row["others"].items():
            yield self._text(f"{consumer}: {other['reason']}")

    def _ops(self, values: list[int], in_region: bool) -> Iterator[str]:
        document = self.seen.document
        ops = document["ops"]
        texts = [
            words.op(document["names"][ops["name"][v]], document["types"][ops["type"][v]], ops["attributes"][v])
            for v in reversed(values)
        ]
        shown = list(dict.fromkeys(texts))
        for text in shown[:_MOST_OPS]:
            yield self._text(text)
        if len(shown) > _MOST_OPS:
            yield self._text(words.more_ops(len(shown) - _MOST_OPS))
        if not in_region and any(document["names"][ops["name"][v]] not in _SOURCES for v in values):
            yield self._verdict(words.op_outside())

    def _observed(self, place: int) -> Iterator[str]:
        document = self.seen.document
        for row in self.seen.observations[place]:
            observation = document["observations"][row]
            kind, called = observation["kind"], observation["name"]
            blocked, kept = [], None
            for region in document["regions"]:
                title = region["headline"].rpartition(": ")[0]
                if region["id"] in observation["blocks"]:
                    blocked.append(title)
                for name, values in region["named"].items():
                    if region["verdict"] == "taken" and observation["value"] in values:
                        kept = f"{name} of {title}"
            value = called if kind == "observe" and called else _written(document, observation["value_span"])
            yield words.observed(
                value, phrases.reader(kind, called), list(dict.fromkeys(blocked)), kept, observation["idle"]
            )

    def _at(self, place: int) -> None:
        self.span = self.seen.anchors.starts[place], self.seen.anchors.ends[place]

    def _text(self, sentence: str) -> str:
        return escape(sentence) if self.markdown else sentence

    def _verdict(self, sentence: str) -> str:
        return bold_verdict(sentence) if self.markdown else sentence

    def _code(self, code: str) -> str:
        link = self.server.links.get(code)
        return f"[{code}]({link})" if self.markdown and link is not None else self._text(code)


_READING = ("TP101", "TP102")
_SOURCES = ("input", "parameter", "constant")  # they stand in the program and do not run
_LONGEST = 60


def _elsewhere(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Lists the names and places of a region's modules that are built elsewhere than where the region stands."""
    known = {(span["path"], span["line"]) for span in row["spans"]}
    rows = [module for module in row["modules"] if (module["path"], module["line"]) not in known]
    return [(each["name"], f"{each['path']}:{each['line']}:{each['column'] + 1}") for each in rows[:_MOST_MODULES]]


def _written(document: Mapping[str, Any], place: Mapping[str, Any]) -> str | None:
    """Gives the expression at a place where it is short and stands on one line."""
    if place["path"] not in document["paths"] or place["line"] != place["end_line"]:
        return None
    text = Text(document["sources"][document["paths"].index(place["path"])])
    found = text.line(place["line"] - 1)[place["column"] : place["end_column"]].strip()
    return display(found) if 0 < len(found) <= _LONGEST else None


def _state(
    server: Server, document: Document, offset: int, kind: lsp.MarkupKind
) -> tuple[list[list[str]], tuple[int, int] | None]:
    """Says why an entry has no plan; nothing outside of entries, and nothing inside where there is one."""
    file = server.tracing.file(document.uri)
    name = file.entry_at(offset) if file is not None else None
    if file is None or name is None:
        return [], None
    trouble = file.failure_of(name)
    on_name = file.anchors.covers(file.names[name], offset)
    if name in file.plans and not on_name:
        return [], None
    if file.state == "untrusted":
        line = words.untrusted()
    elif file.pending and name not in file.plans:
        line = words.waiting()
    elif trouble is not None:
        line = words.no_plan(f"{trouble.error['message']} ({trouble.error['code']}, {trouble.when})")
    elif file.state == "cancelled":
        line = words.no_plan(words.cancelled())
    elif file.state == "unasked" and name not in file.plans:
        line = words.not_asked()
    elif name in file.plans:
        line = f"{name}: {words.counts(file.plans[name].document['counts'])}"
    else:
        return [], None
    span = file.anchors.starts[file.names[name]], file.anchors.ends[file.names[name]]
    text = bold_verdict(line) if kind == lsp.MarkupKind.Markdown else line
    return [[text]], span
