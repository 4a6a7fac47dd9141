from __future__ import annotations

import re
import socket

from topos_web import static
from topos_web.server import bind


def test_the_page_names_only_files_that_exist() -> None:
    files = static.load()
    page = static.page(files, "TOKEN").decode()
    named = re.findall(r'(?:src|href)="\./([^"?]+)\?token=TOKEN"', page)
    assert set(named) == {"app.js", "style.css", "favicon.svg"}
    assert set(named) <= set(files)
    assert "layout.worker.js" in files


def test_the_built_page_holds_no_address_and_no_eval() -> None:
    for file in (f for f in static.load().values() if f.name != "NOTICES.txt"):  # licences name their homes
        text = file.body.decode()
        hosts = set(re.findall(r"https?://([\w.-]+)", text)) - {"www.w3.org", "svelte.dev"}
        assert not hosts, (file.name, hosts)
        assert not re.search(r"\beval\(|new Function\(", text), file.name


def test_a_taken_port_is_passed_over() -> None:
    with bind(0) as first:
        first.listen()
        port = first.getsockname()[1]
        with bind(port) as second:
            assert second.getsockname()[0] == "127.0.0.1"
            assert second.getsockname()[1] != port


def test_only_loopback_is_bound() -> None:
    with bind(0) as bound:
        assert bound.family == socket.AF_INET
        assert bound.getsockname()[0] == "127.0.0.1"
