"""What a reader does with hands and wheel, each of it once: moving, asking, opening, linking, below a proxy's path too."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from benchmarks.viewer.browser import PAN
from tests.browser.conftest import Open, at_rest
from tests.web.documents import convolution, decoder, norms
from tests.web.planners import GivenPlanner
from tests.web.serving import TOKEN, Stages
from topos_web.plans import Traced

expect = pytest.importorskip("playwright.sync_api", reason="the package playwright is missing").expect

RESTING = 120.0
"""Milliseconds that are surely less than what ends a gesture, 160 in `Graph.svelte`."""


def camera(page: Any) -> tuple[float, float, float]:
    expect(page.locator(".pictured")).to_have_count(0)  # a gesture moves a picture; at rest the drawing stands
    moved = page.locator("svg.ground > g").get_attribute("transform")
    found = re.fullmatch(r"translate\(([-\d.]+),([-\d.]+)\)scale\(([-\d.]+)\)", moved)
    assert found is not None
    x, y, k = map(float, found.groups())
    return x, y, k


def asked(page: Any, planner: Any, *names: str) -> Any:
    """Waits until the planner was asked these, as the page tells a question before it is sent; gives the last question."""
    for _ in range(200):
        if planner.asked and planner.asked[-1][1].keys() >= {*names}:
            break
        page.wait_for_timeout(25)
    return planner.asked[-1][1]


def test_the_page_works_below_a_proxys_path(page: Any, stages: Stages) -> None:
    planner = GivenPlanner(convolution(observed=True))
    with stages.serving(planner) as served:
        asked: list[str] = []
        page.on("request", lambda r: asked.append(r.url))
        page.goto(f"{served.base}/proxy/8470/?token={TOKEN}")
        page.locator('[data-box="op"]').first.wait_for()
        assert all("/proxy/8470/" in url for url in asked if not url.startswith(("data:", "blob:")))
        edited = convolution(observed=True)
        edited["regions"][1]["headline"] = "max-pool 2x2 anew: taken"
        planner.traced[0] = Traced(edited["target"], edited, None)
        served.refresh()
        expect(page.locator('.entry[data-verdict="taken"]')).to_contain_text("anew")  # events pass the proxy too


def test_the_wheel_scrolls_and_zooms_as_it_is_set(open_page: Open) -> None:
    page, *_ = open_page(norms())
    page.mouse.move(600, 400)
    _, y, k = camera(page)
    before = page.locator("svg.ground > g").get_attribute("transform")
    page.mouse.wheel(0, 100)
    expect(page.locator("svg.ground > g")).not_to_have_attribute("transform", before)
    assert camera(page)[1:] == pytest.approx((y - 100, k))
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    assert camera(page)[2] > k
    page.keyboard.press("?")
    page.get_by_label("The wheel zooms").check()
    page.keyboard.press("Escape")
    _, _, k = camera(page)
    page.mouse.move(600, 400)
    page.mouse.wheel(0, 100)
    assert camera(page)[2] < k


@pytest.mark.parametrize("zoom", [False, True])
def test_a_gesture_lays_nothing_out(open_page: Open, browser: Any, zoom: bool) -> None:
    """Texts that are laid out while their picture is stretched are laid out anew on every frame, and so are the page's layers."""
    page, *_ = open_page(decoder(300))
    expect(page.locator(".minimap")).to_be_visible()
    at_rest(page)
    page.wait_for_timeout(400)  # what stands beyond the window's edge is drawn by now
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def layouts() -> int:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return int(next(one["value"] for one in metrics if one["name"] == "LayoutCount"))

    before = layouts()
    browser.start_tracing(page=page, categories=["blink", "devtools.timeline"])
    page.evaluate(PAN, [40, zoom])
    told = json.loads(browser.stop_tracing())["traceEvents"]
    layered = sum(event["name"] == "PaintArtifactCompositor::Update" and event["ph"] == "X" for event in told)
    drawn = sum(event["name"] == "ProxyMain::BeginMainFrame" or event["name"] == "FireAnimationFrame" for event in told)
    assert drawn >= 40
    assert layered <= 24  # the map's frame follows ten times a second
    assert layouts() - before <= 8  # where the picture begins, and where what is asked for it is drawn


def test_dragging_moves_the_drawing_and_selects_nothing(open_page: Open) -> None:
    page, *_ = open_page(norms())
    x, y, k = camera(page)
    page.mouse.move(420, 300)
    page.mouse.down()
    page.mouse.move(480, 340, steps=4)
    page.mouse.up()
    assert camera(page) == pytest.approx((x + 60, y + 40, k))
    assert page.locator('[data-box="op"].selected').count() == 0


def test_keys_zoom_through_all_levels(open_page: Open) -> None:
    page, *_ = open_page(norms())
    page.locator('[data-op="13"]').click()
    page.locator('[data-op="13"]').focus()
    for _ in range(4):
        page.keyboard.press("+")
    expect(page.locator('[data-op="13"] .more').first).to_have_text(re.compile(r"line \d+"))
    for _ in range(9):
        page.keyboard.press("-")
        if page.locator(".graph canvas[aria-hidden]").count():
            break
        page.locator('[data-box][tabindex="0"]').first.focus()
    expect(page.get_by_text("Seen from far")).to_have_count(1)
    page.get_by_role("button", name="Fit", exact=True).click()
    page.get_by_role("button", name="Zoom in").click()
    expect(page.locator("svg.ground, .graph canvas").first).to_be_visible()


def test_keys_move_the_drawing_wherever_the_focus_is(open_page: Open) -> None:
    page, *_ = open_page(norms())
    page.locator('.entry[data-verdict="declined"]').first.click()
    at_rest(page)
    _, _, k = camera(page)
    page.keyboard.press("+")
    at_rest(page)
    assert camera(page)[2] == pytest.approx(1.25 * k)
    page.keyboard.press("0")
    at_rest(page)
    area = page.get_by_test_id("graph").bounding_box()
    sides = page.locator("[data-box]").evaluate_all(
        "all => all.map(e => e.getBoundingClientRect()).flatMap(r => [[r.left, r.top], [r.right, r.bottom]])"
    )
    assert all(0 <= left - area["x"] <= area["width"] and 0 <= top - area["y"] <= area["height"] for left, top in sides)
    page.locator('[data-op="13"]').click()
    page.locator(".entry").first.focus()
    page.keyboard.press("[")
    expect(page.locator(".scope.selected")).to_have_count(1)


def test_a_closed_scope_without_a_hit_is_dimmed(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True), norms())
    page.get_by_label("Target", exact=True).select_option(label=norms()["target"])
    expect(page.locator('.entry[data-verdict="near_miss"]')).to_have_count(1)  # the other target is here
    page.get_by_role("button", name="Close all").click()
    scope = page.locator(".scope:not(.open)")
    expect(scope).to_have_count(1)
    page.get_by_role("searchbox").fill("op:sqrt")
    expect(page.locator(".found")).to_have_text("1 op")
    expect(page.locator(".scope.dimmed")).to_have_count(0)
    page.get_by_role("searchbox").fill("op:tanh")
    expect(page.locator(".scope.dimmed")).to_have_count(1)


def test_a_gesture_out_and_back_mounts_the_drawing_once(open_page: Open) -> None:
    page, *_ = open_page(norms())
    page.evaluate("""() => { window.gone = 0; new MutationObserver((records) => {
        for (const record of records) for (const node of record.removedNodes) if (node.classList?.contains('picture')) window.gone += 1;
    }).observe(document.querySelector('.graph'), {childList: true}); }""")
    out = """async (steps) => { const graph = document.querySelector('.graph'); let longest = 0, before = performance.now();
        for (const deltaY of steps) { await new Promise(requestAnimationFrame);
            longest = Math.max(longest, performance.now() - before); before = performance.now();
            graph.dispatchEvent(new WheelEvent('wheel', {deltaY, ctrlKey: true, clientX: 600, clientY: 450, bubbles: true, cancelable: true})); }
        return longest; }"""
    for _ in range(8):  # where a frame takes as long as a gesture's end is waited for, there were two gestures
        page.evaluate("window.gone = 0")
        if page.evaluate(out, [12] * 40 + [-12] * 40) < RESTING:  # out to 0.38, where the far drawing stands at rest
            break
        at_rest(page)
    else:
        pytest.fail("no gesture was one: frames took too long")
    assert page.evaluate("window.gone") == 0
    expect(page.locator(".graph > canvas")).to_have_count(0)
    page.evaluate(out, [12] * 40)
    expect(page.locator(".graph > canvas")).to_have_count(1)
    expect(page.locator(".picture")).to_have_count(0)  # once it rests
    assert page.evaluate("window.gone") == 1


def test_a_gesture_from_far_shows_texts_where_they_are_legible_and_at_rest(open_page: Open) -> None:
    page, *_ = open_page(norms())
    seen = """async ([steps, deltaY]) => { const graph = document.querySelector('.graph'); const shown = [];
        for (let i = 0; i < steps; i++) { await new Promise(requestAnimationFrame);
            graph.dispatchEvent(new WheelEvent('wheel', {deltaY, ctrlKey: true, clientX: 600, clientY: 450, bubbles: true, cancelable: true}));
            shown.push(graph.querySelector(':scope > canvas') ? 'far' : graph.querySelector('.picture') ? 'near' : 'none'); }
        return shown; }"""
    shown = page.evaluate(seen, [45, 12])
    assert shown.index("far") > 20
    assert "none" not in shown
    expect(page.locator(".picture")).to_have_count(0)
    shown = page.evaluate(seen, [60, -12])
    assert shown.index("near") > 5  # at less than half a zoom its texts would be dust
    assert "none" not in shown
    page.evaluate(seen, [60, 12])
    expect(page.locator(".picture")).to_have_count(0)
    for _ in range(20):
        page.evaluate(seen, [1, -36])
        page.wait_for_timeout(220)
        if page.locator(".picture").count():
            break
    assert camera(page)[2] == pytest.approx(0.415, abs=0.02)  # at rest it is drawn with its texts from 0.4 on
    expect(page.locator(".graph > canvas")).to_have_count(0)


def test_the_minimap_leads_there(open_page: Open) -> None:
    page, *_ = open_page(norms())
    before = camera(page)
    box = page.locator(".minimap").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] - 4)
    assert camera(page)[1] < before[1]


def test_consumer_fidelity_machine_and_patterns_are_asked_about(open_page: Open) -> None:
    page, _, planner = open_page(convolution(observed=True))
    bar = page.get_by_test_id("whatif")
    for name, value, told in (
        ("Consumer", "stablehlo", "consumer stablehlo"),
        ("Fidelity", "exact", "fidelity exact"),
        ("Machine", "a100", "on a100"),
    ):
        page.get_by_title(name, exact=True).select_option(value)
        expect(bar).to_contain_text(told)
        assert asked(page, planner, name.lower())[name.lower()] == value
    page.get_by_role("button", name="Undo").click()
    expect(bar).not_to_contain_text("on a100")
    page.get_by_role("button", name="Back to the program").click()
    expect(bar).to_have_count(0)
    page.locator('.entry[data-verdict="taken"]').click()
    page.get_by_role("button", name="What if window reduce were off?").click()
    expect(bar).to_contain_text("window reduce off")
    expect(page.get_by_test_id("why")).to_contain_text("switched off")
    assert asked(page, planner, "off")["off"] == ["window_reduce"]


def test_any_value_can_be_observed_by_key_and_no_longer_by_its_ring(open_page: Open) -> None:
    page, _, planner = open_page(convolution(observed=True))
    page.locator('[data-op="12"]').click()
    page.keyboard.press("o")
    expect(page.get_by_test_id("whatif")).to_contain_text("observing %12")
    assert asked(page, planner, "observe") == {"observe": [12]}
    expect(page.locator('[data-op="12"] .observed')).to_have_count(1)
    expect(page.get_by_test_id("why")).to_contain_text("observed by this question alone")
    page.locator('[data-op="12"] .observed').click()
    expect(page.get_by_test_id("whatif")).to_have_count(0)
    page.locator('[data-op="3"] .observed').click()
    expect(page.get_by_test_id("whatif")).to_contain_text("not observing windows")
    assert asked(page, planner, "ignore") == {"ignore": [1]}


def test_a_block_can_be_read_elsewhere_instead(open_page: Open) -> None:
    page, _, planner = open_page(convolution(observed=True))
    page.locator('.entry[data-verdict="blocked"]').click()
    page.locator("[data-fix=move]").click()
    expect(page.get_by_test_id("whatif")).to_contain_text("not observing windows, observing")
    assert set(asked(page, planner, "ignore")) == {"ignore", "observe"}


def test_a_button_that_its_own_question_takes_away_leaves_the_focus_in_its_pane(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True))
    page.keyboard.press("n")
    page.locator("[data-fix=stop]").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("whatif")).to_contain_text("1 region changed")
    expect(page.locator(".upper")).to_be_focused()
    page.get_by_role("button", name="Undo").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("whatif")).to_have_count(0)
    expect(page.locator(".upper")).to_be_focused()


def test_keys_lead_into_every_pane(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True))
    page.locator('.entry[data-verdict="blocked"]').click()
    for key, selector in (
        ("r", ".entry"),
        ("g", "[data-box]"),
        ("s", ".source .code"),
        ("e", '[data-pane="emitted"]'),
        ("k", '[data-pane="kernel"]'),
        ("w", ".why button"),
        ("t", '[role="treeitem"], [role="tree"] *'),
    ):
        page.keyboard.press("g")
        page.keyboard.press(key)
        assert page.evaluate("selector => document.activeElement.matches(selector)", selector), key


def test_a_link_holds_panes_and_views_too(open_page: Open) -> None:
    page, served, _ = open_page(norms())
    page.keyboard.press("l")
    page.keyboard.press("c")
    page.keyboard.press("p")
    page.get_by_role("button", name="Kernel", exact=True).click()
    page.wait_for_function("() => /kernel/.test(location.hash)")
    other = page.context.new_page()
    other.goto(served.url + page.evaluate("location.hash"))
    other.get_by_test_id("memory").wait_for()
    other.get_by_test_id("phases").wait_for()
    other.get_by_test_id("kernel").wait_for()
    assert other.get_by_role("button", name="Candidates").get_attribute("aria-pressed") == "true"


def test_a_link_holds_where_a_reader_stands(open_page: Open, browser: Any) -> None:
    page, served, _ = open_page(norms())
    page.get_by_role("searchbox").fill("op:mul")
    for _ in range(2):
        page.get_by_role("searchbox").press("Enter")
    page.locator(".twist").first.click()
    for chip in page.locator(".filters button").all():
        chip.click()
    page.locator(".why .place, [data-testid=why] a").first.click()
    page.get_by_role("button", name="Phases").click()
    page.get_by_role("button", name="Differences").click()
    page.wait_for_function("() => /hit=2/.test(location.hash) && /differences/.test(location.hash)")
    stands = """() => [document.querySelector('.found').textContent, document.querySelectorAll('[role=treeitem]').length,
        document.querySelector('[data-testid=regions]')?.textContent ?? document.querySelector('[aria-labelledby=regions-title]').textContent,
        document.querySelectorAll('.source .place').length, [...document.querySelectorAll('[aria-pressed=true]')].map((b) => b.textContent).join(), location.hash]"""
    known = page.evaluate(stands)
    assert known[0].startswith("2 of ")
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    try:
        other = context.new_page()
        other.goto(served.url + page.evaluate("location.hash"))
        other.locator("[data-box]").first.wait_for()
        expect(other.locator(".found")).to_have_text(known[0])
        other.get_by_test_id("phases").wait_for()
        other.wait_for_function("known => location.hash === known", arg=known[-1])
        assert other.evaluate(stands) == known
    finally:
        context.close()


def test_the_plan_before_the_last_save_can_be_compared_with(open_page: Open) -> None:
    page, served, planner = open_page(convolution(observed=True))
    edited = convolution(observed=False)
    edited["target"] = planner.traced[0].target
    planner.traced[0] = Traced(edited["target"], edited, None)
    served.refresh()
    page.get_by_label("Compare with").select_option(label="before the last save")
    changes = page.get_by_test_id("changes")
    changes.wait_for()
    assert "18 alike" in changes.inner_text()


def test_opening_a_scope_keeps_everything_drawn_apart(open_page: Open) -> None:
    page, *_ = open_page(decoder(300))
    page.get_by_role("button", name="Close all").click()
    scope = page.locator(".scope:not(.open)").first
    scope.dblclick()
    page.locator(".scope.open").first.wait_for()
    boxes = page.locator('[data-box="op"] > .body').evaluate_all(
        "all => all.map(e => { const r = e.getBoundingClientRect(); return [r.x, r.y, r.right, r.bottom]; })"
    )
    for i, one in enumerate(boxes):
        for other in boxes[i + 1 :]:
            assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


@pytest.mark.parametrize("size", [(1000, 800), (640, 900)])
def test_a_small_window_stacks_the_panes(open_page: Open, size: tuple[int, int]) -> None:
    page, *_ = open_page(convolution(observed=True), size=size)
    page.locator('.entry[data-verdict="blocked"]').click()
    expect(page.get_by_test_id("why")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]


def test_two_targets_keep_to_themselves(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True), norms())
    page.locator('.entry[data-verdict="blocked"]').click()
    page.locator("[data-fix=stop]").click()
    page.get_by_test_id("whatif").wait_for()
    page.get_by_label("Target").select_option(label="models/norms.py:block")
    expect(page.locator('.entry[data-verdict="near_miss"]')).to_have_count(1)
    expect(page.get_by_test_id("whatif")).to_have_count(0)
