"""Replies that are given again: only as long as they hold."""

import asyncio
import json
import threading
import zlib

from lsprotocol import types as lsp

from tests.lsp.models import NORM
from topos_lsp import tracing
from topos_lsp.answers import pack
from topos_lsp.documents import Documents
from topos_lsp.homes import Homes
from topos_lsp.replies import Closed, Replies
from topos_lsp.settings import Initial
from topos_lsp.tracing import Tracing


class Nobody:
    """A listener and its work, who show nothing."""

    def changed(self, file):
        """Shows nothing."""

    def reopening(self):
        """Shows nothing."""

    def working(self, file):
        """Gives itself."""
        return self

    def report(self, title, done, total):
        """Says nothing."""

    def end(self):
        """Says nothing."""


def test_the_oldest_reply_goes():
    replies = Replies()
    for number in range(20):
        replies.keep(str(number), {})
        replies.keep("0", {})
    assert "19" in replies
    assert "0" in replies
    assert "1" not in replies
    for key in ("0", "1"):
        replies.packed(key, b"packed")
    assert replies.get("0") == b"packed"
    assert "1" not in replies


def test_what_came_from_a_module_goes_with_its_state(tmp_path):
    helper = tmp_path / "helper.py"
    helper.write_text("GAIN = 1\n")
    replies = Replies()
    replies.keep("with", {"imports": [str(helper)]})
    replies.keep("alone", {"imports": []})
    assert replies.get("with") == {"imports": [str(helper)]}
    helper.write_text("GAIN = 10\n")
    assert replies.get("with") is None
    assert replies.get("alone") == {"imports": []}


def test_replies_of_closed_buffers_are_few_and_go_with_what_they_came_from():
    closed = Closed()
    for number in range(10):
        replies = Replies()
        replies.keep("poison", {})  # it does not say what it came from
        replies.keep("good", {"imports": ["/p/helper.py"]})
        replies.keep("alone", {"imports": []})
        closed.keep(f"/p/{number}.py", replies)
    assert "good" not in closed.take("/p/1.py")
    closed.outdate("/p/9.py")
    own = closed.take("/p/9.py")
    assert "poison" in own
    assert "good" in own
    other = closed.take("/p/8.py")
    assert "poison" not in other
    assert "good" in other
    closed.outdate("/p/helper.py")
    last = closed.take("/p/7.py")
    assert "good" not in last
    assert "alone" in last
    assert "alone" not in closed.take("/p/7.py")


def test_a_packed_reply_is_the_reply():
    reply = {
        "entries": [{"target": "a", "document": {"rows": [1, [], {}, "\u2028", None], "sources": ["x" * 99]}}],
        "": {},
        "n": [],
    }
    assert json.loads(zlib.decompress(pack(reply))) == reply


def test_a_reply_that_is_packed_while_an_imported_module_changes_is_not_given_again(tmp_path, monkeypatch):
    runs, packing, changed = tmp_path / "runs", threading.Event(), threading.Event()

    def slow(reply):
        packing.set()
        assert changed.wait(60)
        return pack(reply)

    monkeypatch.setattr(tracing, "pack", slow)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "pyproject.toml").write_text("")
    used = tmp_path / "used.py"
    used.write_text("")
    text = f"import used\nopen({str(runs)!r}, 'a').write('1')\n" + NORM

    async def edit():
        documents = Documents()
        traced = Tracing(Homes(Initial(untrusted=False)), documents, Nobody())
        uri = (tmp_path / "model.py").as_uri()
        document = documents.open(lsp.TextDocumentItem(uri, "python", 1, text), str(tmp_path))
        traced.opened(document)
        file = traced.file(uri)
        await traced.settled(file)
        assert file.state == "traced"
        assert await asyncio.to_thread(packing.wait, 60)
        traced.outdated(str(used))
        changed.set()
        await traced.settled(file)
        await traced.close()
        return file.state

    assert asyncio.run(edit()) == "traced"
    assert runs.read_text() == "11"
