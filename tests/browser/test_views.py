"""What stands on the page when it opens: from its address, after a reload, from nothing, and with names of any length."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import pytest

from tests.browser.conftest import Open, at_rest
from tests.web.documents import Document, convolution, decoder, hostile, norms

expect = pytest.importorskip("playwright.sync_api", reason="the package playwright is missing").expect


def seen(page: Any) -> int:
    """Counts the boxes that stand inside of the drawing's window."""
    found: int = page.evaluate(
        "() => { const w = document.querySelector('.graph').getBoundingClientRect();"
        " return [...document.querySelectorAll('[data-box]')].map(e => e.getBoundingClientRect()).filter(b =>"
        " b.left < w.right && b.right > w.left && b.top < w.bottom && b.bottom > w.top).length }"
    )
    return found


@pytest.mark.parametrize(
    "address",
    ["at=0,0,0", "at=1e308,1e308,1e-300", "at=0,0,-1", "sel=o:-1", "sel=o:1.5", "shown=%2Fx=-1", "show=nothing"],
)
def test_an_address_of_nonsense_shows_the_plan(open_page: Open, address: str) -> None:
    page, *_ = open_page(norms(), fragment=f"#{address}")
    assert seen(page) > 3


STRANGE = [
    "plan=zzz", "sel=r:zzz", "sel=o:99999", "sel=s:zzz", "compare=zzz", "open=%2Bzzz&tree=%2Bzzz&shown=zzz=3&pane=zzz",
    "consumer=zzz&fidelity=zzz&machine=zzz", "observe=99999&ignore=99", "file=zzz.py&show=zzz&zzz=1",
]  # fmt: skip


def test_what_an_address_names_that_is_not_here_is_told_and_left_out(open_page: Open) -> None:
    page, served, _ = open_page(norms())
    notice = page.get_by_test_id("notice")

    def corrected(address: str) -> None:
        asked = unquote(address).split("&")
        each = "".join(f"(?=.*: (.*; )?{re.escape(one)}(; .*)?\\s*Dismiss$)" for one in asked)
        among = "|".join(map(re.escape, asked))
        expect(notice).to_have_text(
            re.compile(f"^{each}Not here, and left out of the address: (({among})(; )?){{{len(asked)}}}\\s*Dismiss$")
        )
        gone = "asked => asked.every(one => !decodeURIComponent(location.hash.slice(1)).split('&').includes(one))"
        page.wait_for_function(gone, arg=asked)
        expect(page.get_by_test_id("trouble")).to_have_count(0)
        expect(page.locator("[data-box]").first).to_be_visible()
        notice.get_by_role("button").click()

    page.wait_for_function("() => location.hash.includes('plan=')")
    for address in STRANGE:
        page.evaluate("address => location.hash = address", address)
        corrected(address)
    for address in STRANGE[:3]:
        page.goto("about:blank")
        page.goto(f"{served.url}#{address}")
        corrected(address)
    assert "plan=" in page.evaluate("location.hash")


def test_an_address_given_while_the_page_is_about_to_write_its_own_is_followed(open_page: Open) -> None:
    page, *_ = open_page(norms())
    page.wait_for_function("() => location.hash.includes('plan=')")
    for value in (99999, 88888, 77777):
        page.evaluate(
            """value => new Promise(resolve => {
              document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '+', bubbles: true}));
              setTimeout(() => {  // both are due when this ends: the reader's address, then the page's own, then what tells of the first
                for (const end = performance.now() + 300; performance.now() < end;);
                setTimeout(resolve, 200);
              }, 30);
              setTimeout(() => { location.hash = `sel=o:${value}`; }, 60);
            })""",
            value,
        )
        expect(page.get_by_test_id("notice")).to_contain_text(f"sel=o:{value}")


def test_an_address_far_outside_shows_some_of_the_drawing(open_page: Open) -> None:
    page, *_ = open_page(norms())
    at_rest(page)
    page.evaluate("location.hash = '#at=1e308,-1e308,1'")
    page.wait_for_function("() => location.hash.includes('at=') && !location.hash.includes('1e308')")
    left, top, _ = map(float, re.findall(r"at=([^&]+)", page.evaluate("location.hash"))[0].split(","))
    width = page.get_by_test_id("graph").bounding_box()["width"]
    assert 0 < left < width
    assert abs(top) < 1e5


def test_a_what_if_of_an_address_can_be_undone(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True))
    page.locator('.entry[data-verdict="blocked"]').click()
    page.locator("[data-fix=stop]").click()
    bar = page.get_by_test_id("whatif")
    expect(bar).to_contain_text("1 region changed")
    page.wait_for_function("() => location.hash.includes('ignore=')")
    page.reload()
    expect(bar).to_contain_text("not observing windows")
    expect(page.locator('.entry[data-verdict="blocked"]')).to_have_count(0)
    undo = bar.get_by_role("button", name="Undo")
    expect(undo).to_be_enabled()
    undo.click()
    page.locator('.entry[data-verdict="blocked"]').wait_for()
    expect(bar).to_have_count(0)


def test_going_back_asks_what_the_address_holds(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True))
    blocked = page.locator('.entry[data-verdict="blocked"]')
    blocked.click()
    page.wait_for_function("() => location.hash.includes('sel=')")
    page.locator("[data-fix=stop]").click()
    expect(blocked).to_have_count(0)
    page.wait_for_function("() => location.hash.includes('ignore=')")
    before = page.evaluate("location.hash")
    page.locator('.entry[data-verdict="taken"]').last.click()
    page.wait_for_function("before => location.hash !== before", arg=before)
    page.evaluate("location.hash = location.hash.replace(/&ignore=[^&]*/, '')")
    blocked.wait_for()
    expect(page.get_by_test_id("whatif")).to_have_count(0)


@pytest.mark.parametrize(
    "document", [norms(), decoder(300), convolution(observed=True)], ids=["norms", "decoder", "convolution"]
)
@pytest.mark.parametrize("size", [(1440, 900), (1200, 700)])
def test_the_first_view_cuts_nothing_off_at_the_sides(
    open_page: Open, document: Document, size: tuple[int, int]
) -> None:
    page, *_ = open_page(document, size=size)
    at_rest(page)
    area = page.get_by_test_id("graph").bounding_box()
    sides = page.locator("[data-box]").evaluate_all(
        "all => all.map(e => e.getBoundingClientRect()).map(r => [r.left, r.right])"
    )
    assert min(left for left, _ in sides) >= area["x"]
    assert max(right for _, right in sides) <= area["x"] + area["width"]


def test_a_name_of_any_length_leaves_the_lists_short(open_page: Open) -> None:
    name = "encoder" * 430
    page, *_ = open_page(hostile(name))
    entry = page.locator(".entry")
    assert entry.bounding_box()["height"] < 160
    assert page.locator(".left > section").nth(1).bounding_box()["height"] < 160
    assert page.locator(".left > section").nth(2).bounding_box()["height"] < 160
    assert page.locator(".entry .detail").first.get_attribute("title") == name
    entry.click()
    expect(page.get_by_test_id("why").locator(".scope")).to_have_text(f"in {name}")
    page.locator("[data-fix=stop]").click()
    bar = page.get_by_test_id("whatif")
    expect(bar).to_contain_text("not observing")
    assert bar.bounding_box()["height"] < 140
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.get_by_test_id("why").evaluate("e => e.scrollWidth <= e.clientWidth")


def test_no_name_or_type_leaves_its_box(open_page: Open) -> None:
    page, *_ = open_page(norms(), convolution(observed=True))
    for target in (norms()["target"], convolution(observed=True)["target"]):
        page.get_by_label("Target", exact=True).select_option(label=target)
        expect(page).to_have_title(f"{target} · topos")
        page.locator("[data-box='op']").first.wait_for()
        found = page.locator("[data-box='op']").evaluate_all("""boxes => boxes.map(box => {
            const body = box.querySelector('.body').getBBox();
            const texts = [...box.querySelectorAll(':scope > .name, :scope > .type')].map(text => text.getBBox());
            return [box.querySelector('.type').textContent, body.width - Math.max(...texts.map(text => text.x + text.width))];
        })""")
        assert len(found) > 5
        assert [text for text, left in found if left < 4] == []


def test_a_link_that_names_no_camera_shows_what_it_names(open_page: Open) -> None:
    """As an editor's link does, which knows a region and no place on the drawing."""
    document = decoder(300)
    region = next(r for r in document["regions"] if r["verdict"] == "blocked")
    page, *_ = open_page(document, fragment="#sel=r:" + region["key"])
    sleeve = page.locator(".sleeve.selected")
    sleeve.wait_for(state="attached")
    at_rest(page)
    graph, box = page.get_by_test_id("graph").bounding_box(), sleeve.bounding_box()
    assert graph["x"] <= box["x"] <= box["x"] + box["width"] <= graph["x"] + graph["width"]
    assert graph["y"] <= box["y"] <= graph["y"] + graph["height"]
