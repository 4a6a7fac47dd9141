"""Latencies of the language server on a 500-line model, with ruff and ty beside it where they are installed.

    python -m benchmarks.editor [--edits 100] [--soak 1000]

Prints medians and 95th percentiles in milliseconds, with the bars that they are held to on a quiet machine, and the load average
with which they were taken. Each edit adds or removes one line at the end of the model, which changes one diagnostic.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.lsp.client import FULL, Client, at, position, span

LINES = 500
BLOCK = '''
def block{number}(x, weight, bias, scale, shift):
    """One block of the model."""
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3))
    hidden = np.einsum("bchwij,ocij->bohw", windows, weight) + bias[:, None, None]
    mean = hidden.mean(axis=(0, 2, 3), keepdims=True)
    centred = hidden - mean
    variance = (centred * centred).mean(axis=(0, 2, 3), keepdims=True)
    normal = centred / np.sqrt(variance + 1e-5)
    normal = normal * scale.reshape(1, 8, 1, 1) + shift.reshape(1, 8, 1, 1)
    return np.maximum(normal, 0) + x
'''


def model():
    """Writes a model of 500 lines: blocks, then one entry that calls all of them."""
    lines = ["import numpy as np", "", "import topos_core as tp", ""]
    number = 0
    while len(lines) < LINES - 30:
        lines += BLOCK.format(number=number).split("\n")
        number += 1
    lines += [
        "",
        "",
        "@tp.model(x=tp.f32[4, 8, 16, 16], w=tp.f32[8, 8, 3, 3], b=tp.f32[8], s=tp.f32[8], t=tp.f32[8])",
        "def main(x, w, b, s, t):",
    ]
    calls = [f"    x = block{each}(x, w, b, s, t)" for each in range(number)]
    tail = [
        "    c = x - x.mean(axis=(0, 2, 3), keepdims=True)",
        "    v = (c * c).mean(axis=(0, 2, 3), keepdims=True)",
        "    return c / np.sqrt(v + 1e-5)",
    ]
    lines += calls
    padding = LINES - len(lines) - len(tail)
    lines += ["    # so that the file has as many lines as it says"] * padding + tail
    return "\n".join(lines) + "\n"


def edited(text, number):
    """Adds the line that every other edit removes, and a comment that makes each text a new one."""
    if number % 2 == 0:
        return f"{text}# {number}\n"
    return text.replace("    v = (c", '    tp.observe(c, "c")\n    v = (c') + f"# {number}\n"


def wait(client, test, seconds=60):
    """Gives the time at which the first notification since now passes a test."""
    deadline = time.monotonic() + seconds
    seen = test.start
    while time.monotonic() < deadline:
        while seen < len(client.arrivals) and seen < len(client.notifications):
            if test(*client.notifications[seen]):
                return client.arrivals[seen]
            seen += 1
        time.sleep(0.0005)
    raise TimeoutError("the server did not answer in time")


class Published:
    """Tests for a buffer's diagnostics of a version."""

    def __init__(self, client, uri, version, passes):
        self.start = len(client.notifications)
        self.uri, self.version, self.passes = uri, version, passes

    def __call__(self, method, params):
        return (
            method == "textDocument/publishDiagnostics" and params["uri"] == self.uri
            and params.get("version", self.version) == self.version and self.passes(params["diagnostics"])
        )  # fmt: skip


def asked(client, method, params):
    """Gives the milliseconds of one request."""
    begun = time.perf_counter()
    client.request(method, params)
    return (time.perf_counter() - begun) * 1000


def resident(process):
    with open(f"/proc/{process}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def below(process):
    found = [process]
    for parent in found:
        try:
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children") as file:
                    found += map(int, file.read().split())
        except OSError:
            continue
    return found[1:]


def row(name, figures, bar=""):
    ordered = sorted(figures)
    high = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    print(f"{name:<46} {statistics.median(ordered):>9.1f} {high:>9.1f}  {bar}", flush=True)


def topos(home, edits, soak):
    folder = home / "topos"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    text = model()
    begun = time.perf_counter()
    client = Client(home)
    try:
        client.initialize(folder, options={"untrustedWorkspace": False})
        row("initialize, from the start of the process", [(time.perf_counter() - begun) * 1000], "<= 500")
        path = folder / "model.py"
        path.write_text(text)
        uri = client.open(path)
        begun = time.perf_counter()
        while not client.hints(uri):
            time.sleep(0.01)
        row("first plan, the agent's start included", [(time.perf_counter() - begun) * 1000])
        last = text.count("\n") - 1
        moved, plans, version = [], [], 1
        for number in range(1, edits + 1):
            version += 1
            observing = number % 2 == 1
            shifted = Published(client, uri, version, lambda found: True)
            final = Published(client, uri, version, lambda found, n=int(observing): len(found) == n)
            begun = time.perf_counter()
            client.change(uri, edited(text, number), version)
            if not observing:
                moved.append((wait(client, shifted) - begun) * 1000)
            plans.append((wait(client, final) - begun) * 1000)
        row("last results moved along, after an edit", moved, "<= 30")
        row("new plan after an edit, debounce of 150 included", plans, "<= 400")
        time.sleep(1)
        where = position(last, 12)
        everything = {"range": span(0, 0, last + 2, 0)}
        row(
            "hover",
            [asked(client, "textDocument/hover", {**at(uri), "position": where}) for _ in range(edits)],
            "p95 <= 10",
        )
        row(
            "inlay hints, whole file",
            [asked(client, "textDocument/inlayHint", {**at(uri), **everything}) for _ in range(edits)],
            "p95 <= 10",
        )
        row("code lens", [asked(client, "textDocument/codeLens", at(uri)) for _ in range(edits)], "p95 <= 10")
        here = {"range": {"start": where, "end": where}, "context": {"diagnostics": []}}
        row(
            "code actions",
            [asked(client, "textDocument/codeAction", {**at(uri), **here}) for _ in range(edits)],
            "p95 <= 10",
        )
        during = []
        for number in range(30):
            version += 1
            client.change(uri, edited(text, edits + 2 * number), version)
            time.sleep(0.16)
            during += [asked(client, "textDocument/hover", {**at(uri), "position": where}) for _ in range(3)]
        row("hover while a trace runs", during, "never over 50")
        print(f"{'hover while a trace runs, longest':<46} {max(during):>9.1f}")
        killed = []
        for number in range(10):
            version += 1
            client.change(uri, f"{text}while True: pass\n", version)
            deadline = time.monotonic() + 20
            before = set()
            while time.monotonic() < deadline and len(before) < 3:
                before = set(below(client.process.pid))
                time.sleep(0.01)
            time.sleep(0.1)
            before = set(below(client.process.pid))
            version += 1
            begun = time.perf_counter()
            client.change(uri, edited(text, 2 * number), version)
            while set(below(client.process.pid)) >= before:
                time.sleep(0.001)
            killed.append((time.perf_counter() - begun) * 1000)
        row("from an edit to the end of the old process", killed, "<= 100")
        if soak:
            first = resident(client.process.pid)
            for number in range(soak):
                version += 1
                client.change(uri, edited(text, number), version)
                time.sleep(0.02 if number % 10 else 0.5)
            time.sleep(3)
            print(
                f"{f'resident MiB before and after {soak} edits':<46} {first:>9.1f} {resident(client.process.pid):>9.1f}  flat"
            )
            print(f"{'processes below the server':<46} {len(below(client.process.pid)):>9}")
        row("server's resident MiB", [resident(client.process.pid)], "<= 80")
        client.shutdown()
    finally:
        client.close()


def other(home, name, command, edits):
    """Measures another server: a line with an unknown name comes and goes."""
    folder = home / name
    folder.mkdir()
    text = model()
    path = folder / "model.py"
    path.write_text(text)
    capabilities = {
        **FULL,
        "textDocument": {key: value for key, value in FULL["textDocument"].items() if key != "diagnostic"},
    }
    begun = time.perf_counter()
    client = Client(home, command=command)
    try:
        client.initialize(folder, capabilities)
        row(f"{name}: initialize", [(time.perf_counter() - begun) * 1000])
        uri = client.open(path)
        base = wait(client, Published(client, uri, 1, lambda found: True)) and len(
            client.diagnostics(uri)["diagnostics"]
        )
        figures, version = [], 1
        for number in range(1, edits + 1):
            version += 1
            bad = number % 2
            test = Published(client, uri, version, lambda found, n=base + bad: len(found) == n)
            begun = time.perf_counter()
            client.change(uri, text + ("print(nobody_knows_this)\n" if bad else f"# {number}\n"), version)
            figures.append((wait(client, test) - begun) * 1000)
        row(f"{name}: diagnostics after an edit", figures)
        row(
            f"{name}: hover",
            [asked(client, "textDocument/hover", {**at(uri), "position": position(20, 12)}) for _ in range(edits)],
        )
        row(f"{name}: resident MiB", [resident(client.process.pid)])
    finally:
        client.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--edits", type=int, default=100)
    parser.add_argument("--soak", type=int, default=0)
    options = parser.parse_args()
    print(
        f"{LINES}-line model, {options.edits} edits, load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    )
    print(f"{'':<46} {'median':>9} {'p95':>9}  bar")
    home = Path(tempfile.mkdtemp(prefix="topos-editor-"))
    try:
        topos(home, options.edits, options.soak)
        for name, arguments in (("ruff", ("server",)), ("ty", ("server",))):
            beside = Path(sys.executable).with_name(name)
            program = str(beside) if beside.exists() else shutil.which(name)
            if program is None:
                print(f"{name}: not installed, `pip install {name}` to measure it beside")
                continue
            other(home, name, [program, *arguments], options.edits)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    print(f"load average afterwards {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
