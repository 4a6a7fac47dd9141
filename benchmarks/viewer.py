"""Measures the viewer's budgets in a real Chromium, and Model Explorer on the same graph where it is installed.

    python -m benchmarks.viewer [--sizes 500,10000,50000] [--model-explorer PATH/TO/model-explorer]

Page figures come from synthetic decoders served without an agent; what-if figures from a NumPy decoder that the agent really
traces and plans. Wall times count the load of the machine, so the load average is printed; CPU per frame is the whole browser's.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.browser.conftest import CHROMIUM, FLAGS
from tests.web.documents import Document, decoder
from tests.web.planners import GivenPlanner
from tests.web.serving import serving
from topos_web import payloads, static
from topos_web.agents import AgentPlanner

FRAMES = 90
BUDGETS = {
    "first paint s": (0.5, 0.5, 0.8), "interactive s": (1.0, 1.0, 2.0), "graph + regions kB gz": (200, 200, 1000),
    "open a scope ms": (100, 100, 100), "pan CPU ms/frame": (8, 8, 8), "zoom CPU ms/frame": (8, 8, 8),
    "JS heap MB": (80, 80, 250), "what-if s": (0.15, 0.2, 0.6),
}  # fmt: skip
MODEL = '''\
import numpy as np
import topos_core as tp

def norm(x, scale):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5) * scale

def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)

def layer(x, mask, w, scale):
    h = norm(x, scale[0])
    q, k, v = h @ w[0], h @ w[1], h @ w[2]
    x = x + (softmax(q @ k.T * 0.125 + mask) @ v) @ w[3]
    h = norm(x, scale[1])
    gate = h @ w[4]
    return x + (gate / (1 + np.exp(-gate)) * (h @ w[5])) @ w[6]

@tp.model(x=tp.f32[32, 64], mask=tp.f32[32, 32], w=tp.f32[7, 64, 64], scale=tp.f32[2, 64])
def decode(x, mask, w, scale):
    for i in range(LAYERS):
        x = layer(x, mask, w, scale)
        if i == LAYERS // 3:
            tp.observe(x * 2, "middle")
    return x
'''  # fmt: skip
OPS_PER_LAYER = 69

PAN = """async ([frames, zoom]) => {
  const target = document.querySelector('.graph');
  for (let i = 0; i < frames; i++) {
    await new Promise(requestAnimationFrame);
    const way = i < frames / 2 ? 1 : -1;
    target.dispatchEvent(new WheelEvent('wheel', {deltaY: way * (zoom ? 12 : 24), ctrlKey: zoom, clientX: 600, clientY: 450, bubbles: true, cancelable: true}));
  }
}"""
OPEN = """() => new Promise(resolve => {
  const boxes = () => document.querySelectorAll('[data-box]').length;
  const before = boxes(), begun = performance.now();
  document.querySelector('.scope:not(.open) .twist').dispatchEvent(new MouseEvent('click', {bubbles: true}));
  const look = () => boxes() !== before ? resolve(performance.now() - begun) : requestAnimationFrame(look);
  look();
})"""


ASK = """() => new Promise(resolve => {
  const begun = performance.now();
  document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'o', bubbles: true}));
  const look = () => /changed/.test(document.querySelector('[data-testid="whatif"] .status')?.textContent ?? '') && !document.querySelector('.busy')
    ? resolve(performance.now() - begun) : requestAnimationFrame(look);
  requestAnimationFrame(look);
})"""


def main() -> None:
    """Prints one table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", default="500,10000,50000")
    parser.add_argument("--model-explorer", default=shutil.which("model-explorer"))
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    script = payloads.payload(static.load()["app.js"].body.decode()).packed
    worker = payloads.payload(static.load()["layout.worker.js"].body.decode()).packed
    assert script is not None
    assert worker is not None
    print(
        f"load average {os.getloadavg()[0]:.1f}; page script {len(script) / 1e3:.0f} kB gz, worker {len(worker) / 1e3:.0f} kB gz"
    )
    columns = {size: {**page_figures(decoder(size)), **whatif_figures(size)} for size in sizes}
    print(f"{'':<26}" + "".join(f"{size:>12,}" for size in sizes) + "   budget")
    for name in next(iter(columns.values())):
        budget = BUDGETS.get(name)
        row = "".join(f"{columns[size][name]:>12.4g}" for size in sizes)
        print(f"{name:<26}{row}   {' / '.join(map(str, budget)) if budget else ''}")
    if options.model_explorer:
        print(
            f"Model Explorer, collapsed first view of 10,000 ops: {model_explorer(options.model_explorer, decoder(10_000)):.2f} s"
        )


def page_figures(document: Document) -> dict[str, float]:
    """Loads, opens, pans and zooms; the median of three loads."""
    graph, regions = payloads.graph(document), payloads.regions(document)
    skeleton = payloads.payload(payloads.skeleton(document))
    figures = {
        "graph + regions kB gz": (len(graph.packed or b"") + len(regions.packed or b"")) / 1e3,
        "skeleton kB gz": len(skeleton.packed or skeleton.body) / 1e3,
    }
    with serving(GivenPlanner(document)) as served, chromium() as browser:
        loads = sorted(load(browser, served.url) for _ in range(3))
        figures["first paint s"], figures["interactive s"] = loads[1]
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(served.url)
        page.locator("[data-box]").first.wait_for()
        page.get_by_role("button", name="Close all").click()
        page.locator(".scope:not(.open)").first.wait_for()
        openings = []
        for _ in range(3):  # the layers, one layer of them, a part of it
            page.wait_for_timeout(300)
            openings.append(page.evaluate(OPEN))
        figures["open a scope ms"] = max(openings)
        for name, zoom in (("pan CPU ms/frame", False), ("zoom CPU ms/frame", True)):
            before = cpu_seconds(browser)
            page.evaluate(PAN, [FRAMES, zoom])
            figures[name] = (cpu_seconds(browser) - before) * 1e3 / FRAMES
        session = page.context.new_cdp_session(page)
        session.send("HeapProfiler.collectGarbage")
        figures["JS heap MB"] = session.send("Runtime.getHeapUsage")["usedSize"] / 1e6
    return figures


def load(browser: Any, url: str) -> tuple[float, float]:
    """Gives first paint and the first box, in seconds, of a fresh context."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    begun = time.perf_counter()
    page.goto(url, wait_until="commit")
    page.locator("[data-box], .graph canvas").first.wait_for()
    interactive = time.perf_counter() - begun
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1e3
    context.close()
    return paint, interactive


def whatif_figures(size: int) -> dict[str, float]:
    """Traces a real decoder and observes values inside taken regions; medians of three questions, each asked once.

    The round trip is agent, planner, server and wire; on the page it goes from the key to the told change.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.py"
        layers = max(1, size // OPS_PER_LAYER)
        path.write_text(MODEL.replace("LAYERS", str(layers)))
        planner = AgentPlanner([str(path)])
        try:
            begun = time.perf_counter()
            traced = planner.trace()[0]
            seconds = time.perf_counter() - begun
            if traced.document is None:
                raise RuntimeError(f"the decoder was not traced: {traced.error}")
            base, trips, changed, paged = traced.document, [], [], []
            taken = [
                region for region in base["regions"] if region["verdict"] == "taken" and len(region["computing"]) > 2
            ]
            inner = [taken[len(taken) * k // 8]["computing"][1] for k in range(1, 7)]
            for value in inner[:3]:
                begun = time.perf_counter()
                found = payloads.changes(planner.changes(traced.target, {"observe": [value]}))
                json.loads(payloads.payload(found).body)
                trips.append(time.perf_counter() - begun)
                changed.append(len(found["changed"]["rows"]) + len(found["removed"]))
            with serving(planner) as served, chromium() as browser:
                page = browser.new_page(viewport={"width": 1440, "height": 900})
                page.set_default_timeout(120_000)
                page.goto(served.url)
                page.locator("[data-box], .graph canvas").first.wait_for()
                for value in inner[3:]:
                    page.evaluate("value => { location.hash = `sel=o:${value}`; }", value)
                    page.locator(".why h3").filter(has_text=f"%{value}").wait_for()
                    page.wait_for_timeout(300)
                    paged.append(page.evaluate(ASK) / 1e3)
                    page.keyboard.press("u")
                    page.get_by_test_id("whatif").wait_for(state="detached")
            packed = [payloads.graph(base).packed or b"", payloads.regions(base).packed or b""]
        finally:
            planner.close()
    return {
        "real ops": float(base["counts"]["ops"]), "trace s": seconds, "what-if s": sorted(trips)[1],
        "what-if regions changed": float(sorted(changed)[1]), "what-if on the page s": sorted(paged)[1],
        "real graph+regions kB gz": sum(map(len, packed)) / 1e3,
    }  # fmt: skip


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Starts a headless Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        yield browser
        browser.close()


def cpu_seconds(browser: Any) -> float:
    """Sums the processor time of all the browser's processes."""
    session = browser.new_browser_cdp_session()
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    return float(sum(process["cpuTime"] for process in processes))


def model_explorer(command: str, document: Document) -> float:
    """Times the collapsed first view of the same graph in Model Explorer, in seconds."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
        probe.close()
        path = Path(folder) / "graph.json"
        path.write_text(json.dumps(explorer_graph(document)))
        arguments = [
            command,
            str(path),
            "--no_open_in_browser",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--skip_health_check",
        ]
        server = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert server.stdout is not None
        try:
            url = next(line.split()[-1] for line in server.stdout if "http://" in line)
            with chromium() as browser:
                page = browser.new_page(viewport={"width": 1440, "height": 900})
                page.set_default_timeout(120_000)
                begun = time.perf_counter()
                page.goto(url)
                page.locator("canvas").first.wait_for()
                page.get_by_text("Processing").first.wait_for(state="detached")
                return time.perf_counter() - begun
        finally:
            server.terminate()
            server.wait()


def explorer_graph(document: Document) -> list[dict[str, Any]]:
    """Writes ops as Model Explorer's JSON nodes."""
    ops = document["ops"]
    nodes = [
        {
            "id": str(i),
            "label": document["names"][name],
            "namespace": "/".join(document["scopes"][document["locations"][location][0]]),
            "incomingEdges": [{"sourceNodeId": str(o), "sourceNodeOutputId": "0", "targetNodeInputId": str(k)} for k, o in enumerate(operands)],
        }
        for i, (name, location, operands) in enumerate(zip(ops["name"], ops["location"], ops["operands"], strict=True))
    ]  # fmt: skip
    return [{"id": "main", "nodes": nodes}]


if __name__ == "__main__":
    main()
