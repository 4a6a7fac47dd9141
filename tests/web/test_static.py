from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from topos_web import static
from topos_web.server import bind

ROOT = Path(__file__).resolve().parents[2]


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


def test_an_installed_wheel_opens_the_page(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="hatchling is missing")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    wheel = next(tmp_path.glob("*.whl"))
    site = tmp_path / "site"
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(site),
        str(wheel),
    ]
    subprocess.run(install, check=True, capture_output=True)
    code = "import topos_web.static as s; print(s.__file__); print(sorted(s.load())); print(s.page(s.load(), 'T').decode())"
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={"PYTHONPATH": str(site)}, check=True, capture_output=True, text=True
    ).stdout  # fmt: skip
    assert told.startswith(str(site))
    assert "app.js?token=T" in told
    assert sorted(p.name for p in (site / "topos_web" / "static").iterdir()) == sorted(static.load())
