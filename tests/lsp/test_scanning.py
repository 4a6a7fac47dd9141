"""Marks of short texts, read here, and of long ones, read by a process of its own: they are the same."""

import asyncio
import os
import time

import pytest

from tests.lsp.models import NORM
from topos_core.errors import ConfigurationError, TraceError
from topos_lsp import scanning
from topos_lsp.scanning import scan

COMMENTS = NORM + "# topos: entry inputs=f32[2]\nnet = norm  # topos: ignore[TP202] é 😀\n"


def both(text, monkeypatch):
    """Gives what a text comes to when it is short and when it is long."""
    found = []
    for limit in (1 << 30, 0):
        monkeypatch.setattr(scanning, "_LONG", limit)
        try:
            found.append(asyncio.run(scan(text, "/x.py")))
        except (ConfigurationError, TraceError) as error:
            found.append((type(error), str(error), error.code, error.span))
    return found


@pytest.mark.parametrize("text", [COMMENTS, "# topos:\ndef (\n", NORM + "# topos: ignore[x]\n"])
def test_a_long_text_is_read_as_a_short_one(text, monkeypatch):
    here, there = both(text, monkeypatch)
    assert here == there


def test_nobody_reads_on_when_nobody_waits(monkeypatch, tmp_path):
    monkeypatch.setattr(scanning, "_LONG", 0)
    monkeypatch.setattr(
        scanning, "_PROGRAM", "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
    )

    async def give_up(path):
        task = asyncio.create_task(scan("topos", path))
        while not os.path.exists(path) or not os.path.getsize(path):
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        with open(path) as file:
            process = int(file.read())
        deadline = time.monotonic() + 10
        while os.path.exists(f"/proc/{process}"):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)

    asyncio.run(give_up(str(tmp_path / "process")))
