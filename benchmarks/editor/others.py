"""Other servers beside: their diagnostics after an edit of the same file, their hovers, their memory."""

import shutil
import sys
import time
from pathlib import Path

from benchmarks.editor.table import Published, asked, milliseconds, resident, row, value
from tests.lsp.client import FULL, Client, at, position

SERVERS = ("ruff", "ty")


def measure(home, name, case, edits):
    """Prints another server's rows; a line with an unknown name comes and goes."""
    beside = Path(sys.executable).with_name(name)
    program = str(beside) if beside.exists() else shutil.which(name)
    if program is None:
        value(f"{name}: not installed, `pip install {name}` to measure it beside", "")
        return
    folder = home / name
    folder.mkdir()
    path = folder / "model.py"
    text = case.text(0)
    path.write_text(text)
    pushed = {key: each for key, each in FULL["textDocument"].items() if key != "diagnostic"}
    begun = time.perf_counter()
    client = Client(home, command=[program, "server"])
    try:
        client.initialize(folder, {**FULL, "textDocument": pushed})
        row(f"{name}: initialize", [milliseconds(begun)])
        first = Published(client, None, 1, lambda found: True)
        first.uri = uri = client.open(path)
        first.wait()
        base = len(client.diagnostics(uri)["diagnostics"])
        figures = []
        for number in range(1, edits + 1):
            bad = number % 2
            test = Published(client, uri, number + 1, lambda found, n=base + bad: len(found) == n)
            begun = time.perf_counter()
            client.change(uri, text + ("print(nobody_knows_this)\n" if bad else f"# {number}\n"), number + 1)
            figures.append((test.wait() - begun) * 1000)
        row(f"{name}: diagnostics after an edit", figures)
        where = {**at(uri), "position": position(20, 12)}
        row(f"{name}: hover", [asked(client, "textDocument/hover", where) for _ in range(edits)])
        value(f"{name}: resident MiB", f"{resident(client.process.pid):.1f}")
    finally:
        client.close()
