from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.web.documents import Document
from tests.web.planners import GivenPlanner
from tests.web.serving import Served, serving
from topos_web.profiles import Profile

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Opens a browser for a file of tests; closed behind it, since Playwright's event loop would run on under other tests."""
    if CHROMIUM is None:
        pytest.skip("the package chromium is missing (apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is missing")
    with playwright.sync_playwright() as driver:
        playwright.expect.set_options(timeout=20_000)  # a busy machine is no fault of the page
        opened = driver.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(params=["light", "dark"])
def theme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["light", pytest.param("dark", marks=pytest.mark.conformance)])
def look(request: pytest.FixtureRequest) -> str:
    """The theme of every page that names none: whatever works in one must work in the other."""
    return str(request.param)


@pytest.fixture
def watched() -> Iterator[list[str]]:
    """Collects what a page must never do: ask another host, log an error, throw."""
    faults: list[str] = []
    yield faults
    assert faults == []


@pytest.fixture
def open_page(browser: Any, watched: list[str], look: str) -> Iterator[Open]:
    """Opens a page on documents; gives it with what serves it."""
    with ExitStack() as stack:

        def opener(
            *documents: Document,
            theme: str | None = None,
            size: tuple[int, int] = (1440, 900),
            fragment: str = "",
            profiles: Sequence[Profile] = (),
            **context: Any,
        ) -> tuple[Any, Served, GivenPlanner]:
            planner = GivenPlanner(*documents)
            served = stack.enter_context(serving(planner, profiles=profiles))
            viewport = {"width": size[0], "height": size[1]}
            made = browser.new_context(viewport=viewport, color_scheme=theme or look, **context)
            stack.callback(made.close)
            page = made.new_page()
            page.set_default_timeout(20_000)
            page.on("request", lambda r: _is_ours(r.url) or watched.append(f"request to {r.url}"))
            page.on("console", lambda m: m.type == "error" and watched.append(f"console: {m.text}"))
            page.on("pageerror", lambda e: watched.append(f"thrown: {e}"))
            page.goto(served.url + fragment)
            page.locator("[data-box]").first.wait_for()
            return page, served, planner

        yield opener


def _is_ours(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("data", "blob") or parts.hostname == "127.0.0.1"
