from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.web.documents import Document
from tests.web.planners import GivenPlanner
from tests.web.serving import EMPTY, Served, Stages
from topos_web.profiles import Profile

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip

Open = Callable[..., Any]
BROWSER = pytest.StashKey[tuple[Any, ExitStack]]()
PAGES = pytest.StashKey["Pages"]()


@pytest.fixture
def browser(request: pytest.FixtureRequest) -> Any:
    """The browser of this folder's tests, opened by the first that wants it."""
    stash = request.config.stash
    if BROWSER not in stash:
        if CHROMIUM is None:
            pytest.skip("the package chromium is missing (apt-get install chromium)")
        playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is missing")
        playwright.expect.set_options(timeout=20_000)  # a busy machine is no fault of the page
        stack = ExitStack()
        driver = stack.enter_context(playwright.sync_playwright())
        opened = driver.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        stack.callback(opened.close)
        stash[BROWSER] = (opened, stack)
    return stash[BROWSER][0]


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Closes the browser behind the last test of this folder: Playwright's event loop would run on under other tests."""
    here = Path(__file__).parent
    if (nextitem is None or here not in nextitem.path.parents) and BROWSER in item.config.stash:
        item.config.stash[BROWSER][1].close()
        del item.config.stash[BROWSER]
        item.config.stash.setdefault(PAGES, None)  # its pages are gone with it
        del item.config.stash[PAGES]


class Pages:
    """Pages that one test after another opens: a new one is a new process with empty caches, and takes longer than most tests.

    What a test leaves behind in one is taken away; where that cannot be known, since the test failed, so is the page.
    """

    def __init__(self, browser: Any) -> None:
        self.browser = browser
        self._idle: list[Any] = []

    @contextmanager
    def lent(
        self, theme: str, size: tuple[int, int], failed: Callable[[], bool], *, reduced_motion: str = "no-preference"
    ) -> Iterator[Any]:
        """Lends a page that shows nothing yet; `failed` says behind the test whether it is to be trusted any more."""
        page = self._idle.pop() if self._idle else self.browser.new_context().new_page()
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.emulate_media(color_scheme=theme, reduced_motion=reduced_motion)
        page.set_default_timeout(20_000)
        page.mouse.move(0, 0)
        heard: list[tuple[str, Any]] = []
        listens = page.on
        page.on = lambda event, listener: (heard.append((event, listener)), listens(event, listener))
        yield page
        if page.is_closed():  # by a test that changed more than can be taken away
            return
        del page.on
        for event, listener in heard:
            page.remove_listener(event, listener)
        if failed() or not page.url.startswith("http://127.0.0.1:"):
            page.context.close()
            return
        for other in page.context.pages:
            if other is not page:
                other.close()
        page.unroute_all()
        home = page.url.partition("#")[0].partition("?")[0]
        page.goto(f"{home}{EMPTY}")  # no other site: the process stays
        page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        self._idle.append(page)


@pytest.fixture
def pages(browser: Any, request: pytest.FixtureRequest) -> Pages:
    stash = request.config.stash
    if PAGES not in stash or stash[PAGES].browser is not browser:
        stash[PAGES] = Pages(browser)
    return stash[PAGES]


@pytest.fixture
def failed(request: pytest.FixtureRequest) -> Callable[[], bool]:
    """Says whether the running test has failed."""
    before = request.session.testsfailed
    return lambda: request.session.testsfailed > before


@pytest.fixture
def page(pages: Pages, failed: Callable[[], bool], look: str) -> Iterator[Any]:
    """A page for a test that serves and opens what it needs itself."""
    with pages.lent(look, (1280, 720), failed) as lent:
        yield lent


@pytest.fixture(scope="session")
def stages() -> Iterator[Stages]:
    with closing(Stages()) as opened:
        yield opened


@pytest.fixture(params=["light", "dark"])
def theme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Gives every test the theme of the pages that name none: one half of them the dark one, and the other in `make conformance`."""
    if "look" in metafunc.fixturenames:
        themes = ["light", "dark"] if zlib.crc32(metafunc.function.__name__.encode()) % 2 else ["dark", "light"]
        later = pytest.param(themes[1], marks=pytest.mark.conformance)
        metafunc.parametrize("look", [themes[0], later])


def themes(page: Any) -> Iterator[str]:
    """Shows the page in the other theme, then in its own."""
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    for theme in ("light", "dark") if dark else ("dark", "light"):
        page.emulate_media(color_scheme=theme)
        yield theme


def frames(page: Any, count: int) -> None:
    """Waits until the browser has drawn so many frames."""
    page.evaluate("async count => { for (let i = 0; i < count; i++) await new Promise(requestAnimationFrame); }", count)


def at_rest(page: Any) -> None:
    """Waits until nothing fades and the drawing has glided to where it goes."""
    page.evaluate("""async () => {
      await Promise.all(document.getAnimations().filter(one => one.playState === 'running' && isFinite(one.effect.getComputedTiming().endTime)).map(one => one.finished.catch(() => 0)));
      const place = () => document.querySelector('svg.ground > g')?.getAttribute('transform');
      for (let still = 0, last = place(); still < 3;) {
        await new Promise(requestAnimationFrame);
        [still, last] = [place() === last ? still + 1 : 0, place()];
      }
    }""")


@pytest.fixture
def watched() -> Iterator[list[str]]:
    """Collects what a page must never do: ask another host, log an error, throw."""
    faults: list[str] = []
    yield faults
    assert faults == []


def _is_a_fault(message: Any) -> bool:
    """Says whether a line of the console tells an error. A question about a plan that a save has replaced is answered with 409,
    and asked again; the browser notes that answer, whatever the page makes of it."""
    return bool(message.type == "error") and "status of 409 (Conflict)" not in message.text


@pytest.fixture
def open_page(
    pages: Pages, failed: Callable[[], bool], stages: Stages, watched: list[str], look: str
) -> Iterator[Open]:
    """Opens a page on documents; gives it with what serves it."""
    hears = {
        "request": lambda r: _is_ours(r.url) or watched.append(f"request to {r.url}"),
        "console": lambda m: _is_a_fault(m) and watched.append(f"console: {m.text}"),
        "pageerror": lambda e: watched.append(f"thrown: {e}"),
    }
    with ExitStack() as stack:

        def opener(
            *documents: Document,
            theme: str | None = None,
            size: tuple[int, int] = (1440, 900),
            fragment: str = "",
            profiles: Sequence[Profile] = (),
            **motion: str,
        ) -> tuple[Any, Served, GivenPlanner]:
            planner = GivenPlanner(*documents)
            served = stack.enter_context(stages.serving(planner, profiles=profiles))
            page = stack.enter_context(pages.lent(theme or look, size, failed, **motion))
            for event, heard in hears.items():
                page.on(event, heard)
            page.goto(served.url + fragment)
            page.locator("[data-box]").first.wait_for()
            return page, served, planner

        yield opener


def _is_ours(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("data", "blob") or parts.hostname == "127.0.0.1"
