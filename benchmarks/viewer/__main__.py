"""Measures the viewer's budgets in a real Chromium, and Model Explorer on the same graph where it is installed.

    python -m benchmarks.viewer [--sizes 500,10000,50000] [--real ResNet-50,BERT-base,decoder] [--parts page,whatif]
                                [--model-explorer PATH/TO/model-explorer]

`page` figures of sizes come from synthetic decoders served without an agent, `whatif` figures from a NumPy decoder that the agent
really traces and plans; both from the real models. Wall times count the load of the machine, so the load average is printed. CPU per
frame is user and system time of all the browser's processes while a script sends one wheel event a frame, divided by the frames: what
Chromium itself takes is in it, and the row of a bare box that a script moves on an empty page tells how much that is.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from typing import Any, Final

from benchmarks.viewer.browser import ASK, BOX, OPEN, PAN, chromium, cpu_seconds, page_bytes
from benchmarks.viewer.explorer import model_explorer
from benchmarks.viewer.targets import REAL, TracedTarget, numpy_decoder, real_model
from tests.web.documents import Document, decoder
from tests.web.planners import GivenPlanner
from tests.web.serving import serving
from topos_web import payloads, static
from topos_web.plans import Planner

FRAMES: Final = 90
BUDGETS: Final = {
    "first paint s": "0.5 / 0.5 / 0.8", "interactive s": "1 / 1 / 2", "graph + regions kB gz": "200 / 1000 from 10,000 / 50,000",
    "open a scope ms": "100", "pan CPU ms/frame": "8", "zoom CPU ms/frame": "8", "page MB": "80 / 250 at 10,000 / 50,000",
    "what-if s": "0.15 / 0.2 / 0.6",
}  # fmt: skip


def main() -> None:
    """Prints one table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", default="500,10000,50000")
    parser.add_argument("--real", default=",".join(REAL), help="real models; needs torch and transformers")
    parser.add_argument("--parts", default="page,whatif")
    parser.add_argument("--model-explorer", default=shutil.which("model-explorer"))
    options = parser.parse_args()
    parts = options.parts.split(",")
    script = payloads.payload(static.load()["app.js"].body.decode()).packed
    worker = payloads.payload(static.load()["layout.worker.js"].body.decode()).packed
    assert script is not None
    assert worker is not None
    print(
        f"load average {os.getloadavg()[0]:.1f}; page script {len(script) / 1e3:.0f} kB gz, worker {len(worker) / 1e3:.0f} kB gz"
    )
    columns: dict[str, dict[str, float]] = {}
    for size in (int(size) for size in options.sizes.split(",") if size):
        column = columns[f"{size:,}"] = {}
        if "page" in parts:
            document = decoder(size)
            column.update(page_figures(GivenPlanner(document), document))
        if "whatif" in parts:
            with numpy_decoder(size) as traced:
                column.update(whatif_figures(traced))
    for name in (name for name in options.real.split(",") if name):
        with real_model(name) as traced:
            column = columns[name] = {}
            if "page" in parts:
                column.update(page_figures(traced.planner, traced.document))
            if "whatif" in parts:
                column.update(whatif_figures(traced))
    print(f"{'':<26}" + "".join(f"{name:>12}" for name in columns) + "   budget")
    for row in dict.fromkeys(name for column in columns.values() for name in column):
        cells = "".join(f"{column[row]:>12.4g}" if row in column else f"{'':>12}" for column in columns.values())
        print(f"{row:<26}{cells}   {BUDGETS.get(row, '')}")
    if options.model_explorer:
        seconds = model_explorer(options.model_explorer, decoder(10_000))
        print(f"Model Explorer, collapsed first view of 10,000 ops: {seconds:.2f} s")


def page_figures(planner: Planner, document: Document) -> dict[str, float]:
    """Loads, opens, pans and zooms; medians of five loads and of three gestures, the slowest of three openings."""
    graph, regions = payloads.graph(document), payloads.regions(document)
    skeleton = payloads.payload(payloads.skeleton(document))
    figures = {
        "graph + regions kB gz": (len(graph.packed or b"") + len(regions.packed or b"")) / 1e3,
        "skeleton kB gz": len(skeleton.packed or skeleton.body) / 1e3,
    }
    with serving(planner) as served, chromium() as browser:
        loads = [load(browser, served.url) for _ in range(5)]
        figures["first paint s"], figures["interactive s"] = (sorted(each)[2] for each in zip(*loads, strict=True))
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
            page.wait_for_timeout(700)  # what the last gesture left to do belongs to it, not to this one
            figures[name] = gesture(browser, page, PAN, [FRAMES, zoom])
        session = page.context.new_cdp_session(page)
        session.send("HeapProfiler.collectGarbage")
        figures["JS heap MB"] = session.send("Runtime.getHeapUsage")["usedSize"] / 1e6
        figures["page MB"] = page_bytes(browser) / 1e6
        page.goto("about:blank")
        page.wait_for_timeout(700)
        figures["a bare box CPU ms/frame"] = gesture(browser, page, BOX, FRAMES)
    return figures


def gesture(browser: Any, page: Any, script: str, argument: Any) -> float:
    """Gives the browser's processor time per frame of a script, in milliseconds: the median of three turns."""
    turns = []
    for _ in range(3):
        before = cpu_seconds(browser)
        page.evaluate(script, argument)
        turns.append((cpu_seconds(browser) - before) * 1e3 / FRAMES)
    return sorted(turns)[1]


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


def whatif_figures(traced: TracedTarget) -> dict[str, float]:
    """Observes values inside taken regions; medians of three questions, each asked once.

    The round trip is agent, planner, server and wire; on the page it goes from the key to the told change.
    """
    planner, base = traced.planner, traced.document
    trips, changed, paged = [], [], []
    taken = [region for region in base["regions"] if region["verdict"] == "taken" and len(region["computing"]) > 2]
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
    return {
        "traced ops": float(base["counts"]["ops"]), "trace s": traced.seconds, "what-if s": sorted(trips)[1],
        "what-if regions changed": float(sorted(changed)[1]), "what-if on the page s": sorted(paged)[1],
    }  # fmt: skip


if __name__ == "__main__":
    main()
