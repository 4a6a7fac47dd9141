"""Drives a headless Chromium over the served page: gestures, waits, processor time and memory of its processes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.browser.conftest import CHROMIUM, FLAGS

PAN = """async ([frames, zoom]) => {
  const target = document.querySelector('.graph');
  for (let i = 0; i < frames; i++) {
    await new Promise(requestAnimationFrame);
    const way = i < frames / 2 ? 1 : -1;
    target.dispatchEvent(new WheelEvent('wheel', {deltaY: way * (zoom ? 12 : 24), ctrlKey: zoom, clientX: 600, clientY: 450, bubbles: true, cancelable: true}));
  }
}"""
BOX = """async frames => {
  const box = document.createElement('div');
  box.style.cssText = 'position: fixed; inset: 0 auto auto 0; width: 700px; height: 600px; background: #7aa; will-change: transform';
  document.body.append(box);
  for (let i = 0; i < frames; i++) {
    await new Promise(requestAnimationFrame);
    box.style.transform = `translate(${i % 90}px, ${i % 50}px)`;
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
    return float(sum(process["cpuTime"] for process in _processes(browser)))


def page_bytes(browser: Any) -> int:
    """Counts the private memory of the largest page's process, as Chromium's task manager does: script, worker, layout and pictures.

    What lies in the file cache, as Chromium's own program does, is not in it; some 20 MB of an empty page are.
    """
    return max(_private_bytes(int(process["id"])) for process in _processes(browser) if process["type"] == "renderer")


def _processes(browser: Any) -> list[dict[str, Any]]:
    session = browser.new_browser_cdp_session()
    found: list[dict[str, Any]] = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    return found


def _private_bytes(process: int) -> int:
    rows = (line.split() for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return sum(1024 * int(row[1]) for row in rows if row[0] in ("RssAnon:", "VmSwap:"))
