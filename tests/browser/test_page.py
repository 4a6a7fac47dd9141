"""The page as a person meets it, in a real Chromium."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.browser.conftest import Open, at_rest, frames
from tests.web.documents import convolution, decoder, hostile, norms
from tests.web.planners import GivenPlanner
from tests.web.serving import Stages
from topos_web.plans import Traced

expect = pytest.importorskip("playwright.sync_api", reason="the package playwright is missing").expect


TALL = (1440, 1400)
"""A window in which all of `norms` is in view."""


def dash(page: Any, selector: str) -> str:
    drawn: str = page.locator(selector).first.evaluate("e => getComputedStyle(e).strokeDasharray")
    return drawn


def fill(page: Any, selector: str) -> str:
    drawn: str = page.locator(selector).first.evaluate("e => getComputedStyle(e).fill")
    return drawn


def test_the_three_verdicts_are_drawn_apart_without_colour(open_page: Open) -> None:
    blocked, *_ = open_page(convolution(observed=True))
    declined, *_ = open_page(norms(), size=TALL)
    drawn = (
        (blocked, "taken", "Taken"),
        (declined, "declined", "Declined"),
        (blocked, "blocked", "Blocked by observation"),
    )
    for theme in ("light", "dark"):
        looks = {}
        for page, verdict, _ in drawn:
            page.emulate_media(color_scheme=theme)
            sleeve = f'.sleeve.filled[data-verdict="{verdict}"]'
            looks[verdict] = (dash(page, sleeve), fill(page, sleeve))
        assert len({line for line, _ in looks.values()}) == 3
        assert len({pattern for _, pattern in looks.values()}) == 3
        assert looks["taken"][0] == "none"
    for page, verdict, word in drawn:
        assert page.locator(f'.entry[data-verdict="{verdict}"]').first.inner_text().count(word) == 1


def test_a_near_miss_is_marked_on_its_op_and_outlined_when_chosen(open_page: Open) -> None:
    page, *_ = open_page(norms(), size=TALL)
    assert page.locator('[data-op="20"] .near').count() == 1
    page.locator('.entry[data-verdict="near_miss"]').click()
    assert fill(page, '.sleeve[data-verdict="near_miss"]') == "none"
    why = page.get_by_test_id("near-miss")
    assert "7 of the pattern's 9 steps held" in why.inner_text()
    assert "25088 (n)" in why.inner_text()
    assert "25087 (n - 1)" in why.inner_text()


def test_the_declined_loser_is_an_outline_and_only_on_demand(open_page: Open) -> None:
    page, *_ = open_page(norms(), size=TALL)
    loser = '[data-sleeve="elementwise_chain@25"]'
    assert page.locator(loser).count() == 0
    page.get_by_role("button", name="Candidates").click()
    assert fill(page, loser) == "none"


def test_why_tells_a_block_in_the_documents_words(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True))
    page.locator('.entry[data-verdict="blocked"]').click()
    told = page.get_by_test_id("why").inner_text()
    assert "windows is read by tp.observe, and one convolution never computes it" in told
    assert "examples/convolution.py:9:5" in told
    assert "4.12 us" in told
    assert "modelled" in told
    assert "counted" in told
    assert "becomes stablehlo.convolution" in told


def test_why_tells_what_would_flip_a_decline_by_cost(open_page: Open) -> None:
    document = norms()
    page, *_ = open_page(document)
    (told,) = [region["flips_if"]["text"] for region in document["regions"] if region["flips_if"]]
    page.locator('.entry[data-verdict="declined"]', has_text="sum of squares").click()
    assert page.get_by_test_id("flips-if").inner_text() == told
    page.locator('.entry[data-verdict="taken"]').first.click()
    assert page.get_by_test_id("flips-if").count() == 0


def test_why_tells_what_algebra_says_of_what_is_taken(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True))
    page.locator('.entry[data-verdict="taken"]').click()
    told = page.get_by_test_id("certificate")
    expect(told).to_have_text(
        "Certificate: its formula is what was recorded: equal by algebra in 36 elements, with max left open"
    )
    page.locator('.entry[data-verdict="blocked"]').click()
    expect(told).to_have_count(0)
    page.locator("[data-fix=stop]").click()
    expect(told).to_have_text("Certificate: its formula is what was recorded: equal by algebra in 36 elements")


def test_every_pane_follows_one_selection(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True))
    page.locator('.label[data-label="window_reduce@17"]').click()
    assert page.locator('.entry[aria-current="true"]').get_attribute("data-region") == "window_reduce@17"
    assert "max-pool 2x2" in page.get_by_test_id("why").inner_text()
    assert page.locator(".source mark.root").inner_text() == "nn.max_pool(hidden, 2)"
    page.locator('[data-op="8"]').click()
    assert page.locator('[data-box="op"].selected').get_attribute("data-op") == "8"
    assert "matmul" in page.get_by_test_id("why").inner_text()
    assert page.locator(".source mark.root").inner_text().startswith("np.einsum(")
    page.locator(".gutter").nth(8).click()  # the observing line
    assert "windows" in page.get_by_test_id("why").inner_text()


def test_source_marks_the_exact_expression(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True))
    page.locator('.entry[data-verdict="blocked"]').click()
    marks = page.locator(".source mark.observed").all_inner_texts()
    assert marks == ['tp.observe(windows, "windows")']
    assert page.locator(".source mark.root").inner_text() == 'np.einsum("bchwij,ocij->bohw", windows, weight)'


def test_a_link_brings_back_the_view(open_page: Open) -> None:
    page, served, _ = open_page(convolution(observed=True), norms())
    page.get_by_label("Target").select_option(label="models/norms.py:block")
    page.locator('.entry[data-verdict="declined"]').first.click()
    page.get_by_role("searchbox").fill("op:mul")
    page.wait_for_function("() => /sel=/.test(location.hash) && /op%3Amul|op:mul/.test(location.hash)")
    link = page.evaluate("location.hash")
    other = page.context.new_page()
    other.goto(served.url + link)
    assert other.locator('.entry[aria-current="true"]').get_attribute("data-verdict") == "declined"
    assert other.get_by_role("searchbox").input_value() == "op:mul"
    assert other.get_by_test_id("source").inner_text().count("models/norms.py") == 1


def test_search_dims_what_does_not_match_and_walks_the_hits(open_page: Open) -> None:
    page, *_ = open_page(norms(), size=TALL)
    page.keyboard.press("/")
    page.keyboard.type("op:mul bytes>1e6")
    expect(page.locator(".found")).to_have_text("3 ops")
    expect(page.locator('[data-box="op"]:not(.dimmed)')).to_have_count(3)
    page.keyboard.press("Enter")
    expect(page.locator('[data-box="op"].selected')).to_have_count(1)
    page.get_by_role("searchbox").fill("nofield:1")
    expect(page.locator(".found")).to_have_text("no field nofield")
    page.get_by_role("searchbox").fill("op:mul bytes>abc")
    expect(page.locator(".found")).to_have_text("bytes: abc is no number")


def test_keys_walk_regions_ops_and_scopes(open_page: Open) -> None:
    page, *_ = open_page(norms(), size=TALL)
    page.keyboard.press("d")
    assert page.locator('.entry[aria-current="true"]').get_attribute("data-verdict") == "declined"
    page.keyboard.press("Escape")
    assert page.locator('.entry[aria-current="true"]').count() == 0
    page.locator('[data-op="13"]').click()
    page.locator('[data-op="13"]').focus()
    page.keyboard.press("ArrowDown")
    assert page.locator('[data-box="op"].selected').get_attribute("data-op") == "14"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert page.locator('[data-box="op"].selected').get_attribute("data-op") == "11"
    page.keyboard.press("[")
    assert page.locator(".scope.selected").count() == 1
    page.keyboard.press("Enter")
    page.locator(".scope.selected:not(.open)").wait_for()


def test_whatif_moves_nothing_and_can_be_undone(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True))
    places = page.locator("[data-box]").evaluate_all("all => all.map(e => e.getAttribute('transform'))")
    page.locator('.entry[data-verdict="blocked"]').click()
    at_rest(page)  # the way to the selection
    body = page.locator('[data-box="op"] .body').first
    on_screen = body.bounding_box()["y"]
    page.locator("[data-fix=stop]").click()
    bar = page.get_by_test_id("whatif")
    bar.wait_for()
    assert "not observing windows" in bar.inner_text()
    expect(bar).to_contain_text("1 region changed")
    assert page.locator('.entry[data-verdict="blocked"]').count() == 0
    assert page.locator("[data-box]").evaluate_all("all => all.map(e => e.getAttribute('transform'))") == places
    assert body.bounding_box()["y"] == pytest.approx(on_screen, abs=0.5)
    page.keyboard.press("w")
    assert page.evaluate("document.activeElement.closest('[data-testid=whatif]') !== null")
    page.keyboard.press("u")
    page.locator('.entry[data-verdict="blocked"]').wait_for()
    assert bar.count() == 0


@pytest.mark.parametrize(("motion", "pulses"), [("no-preference", 1), ("reduce", 0)])
def test_what_a_question_changes_pulses_once_and_nothing_else_does(open_page: Open, motion: str, pulses: int) -> None:
    page, *_ = open_page(convolution(observed=True), reduced_motion=motion)
    page.evaluate("globalThis.pulsed = []; addEventListener('animationend', e => pulsed.push(e.target.dataset.sleeve))")
    page.locator('.entry[data-verdict="blocked"]').click()
    page.locator("[data-fix=stop]").click()
    expect(page.get_by_test_id("whatif")).to_contain_text("1 region changed")
    frames(page, 2)
    at_rest(page)
    frames(page, 2)
    expect(page.locator(".sleeve.changed")).to_have_count(0)  # it comes back into view as any other
    assert page.evaluate("pulsed.filter(one => one !== undefined)") == ["convolution@10"] * pulses


def test_a_save_keeps_the_selection_and_an_error_keeps_the_plan(open_page: Open) -> None:
    page, served, planner = open_page(convolution(observed=True), fragment="#pane=emitted")
    page.locator('.entry[data-verdict="taken"]').click()
    edited = convolution(observed=True)
    edited["sources"] = ["# a new first line\n" + edited["sources"][0]]
    edited["regions"][1]["headline"] = "max-pool 2x2 again: taken"
    planner.traced[0] = Traced(edited["target"], edited, None)
    served.refresh()
    page.get_by_test_id("why").get_by_text("max-pool 2x2 again").wait_for()
    assert page.locator('.entry[aria-current="true"]').get_attribute("data-region") == "window_reduce@17"
    expect(page.get_by_test_id("certificate")).to_contain_text("equal by algebra")  # nothing is left to be asked
    error = {
        "code": "TP401",
        "message": "this `if` depends on a value",
        "path": "examples/convolution.py",
        "line": 9,
        "column": 4,
    }
    planner.traced[0] = Traced(edited["target"], None, error)
    served.refresh()
    banner = page.get_by_test_id("failure")
    banner.wait_for()
    assert "this `if` depends on a value" in banner.inner_text()
    assert "last good plan" in banner.inner_text()
    expect(page.get_by_test_id("certificate")).to_contain_text("equal by algebra")
    expect(page.get_by_test_id("emitted")).to_contain_text("stablehlo.add")
    assert page.locator('.entry[data-verdict="taken"]').count() == 1
    planner.traced[0] = Traced(edited["target"], edited, None)
    served.refresh()
    banner.wait_for(state="detached")


def test_identical_blocks_fold_and_the_odd_one_stands_out(open_page: Open) -> None:
    page, *_ = open_page(decoder(500))
    fold = page.locator(".scope.fold")
    assert "10 identical blocks layer" in fold.get_attribute("aria-label")
    assert fold.locator(".cell").count() == 10
    odd = fold.locator(".cell.odd")
    assert odd.count() == 1
    odd.click()
    page.locator('.scope.open[aria-label*="scope layer3"]').wait_for()
    page.keyboard.press("n")
    expect(page.locator('.sleeve[data-verdict="blocked"]')).to_have_count(1)


def test_script_in_a_model_is_text_everywhere(open_page: Open, watched: list[str]) -> None:
    page, *_ = open_page(hostile())
    page.locator(".entry").click()
    page.locator('[data-box="op"]').last.click()
    page.get_by_role("button", name="Emitted StableHLO").click()
    page.get_by_text("has no StableHLO form").wait_for()
    assert watched.pop().startswith("console: Failed to load resource: the server responded with a status of 422")
    page.locator('[data-box="op"]').last.focus()
    page.keyboard.press("ArrowUp")
    assert page.evaluate("typeof globalThis.pwned") == "undefined"
    assert page.locator("script").count() == 1
    assert page.locator("main img").count() == 0
    assert "<script>" in page.get_by_test_id("why").inner_text()


def test_lists_hold_everything_that_is_drawn(open_page: Open) -> None:
    page, *_ = open_page(norms(), size=TALL)
    page.locator('[role="tree"] .twist').click()
    rows = page.get_by_role("treeitem").all_inner_texts()
    assert len(rows) == 26 - 4 + 1  # chips stand with their readers, and one scope
    assert page.get_by_role("list").count() > 0
    names = page.locator('[data-box="op"]').evaluate_all("all => all.map(e => e.getAttribute('aria-label'))")
    assert any(re.search(r"^maximum %22: f32\[8,64,56,56\], in taken elementwise_chain$", name) for name in names)


def test_a_plan_that_never_traced_is_told(page: Any, stages: Stages) -> None:
    planner = GivenPlanner()
    error = {
        "code": "TP403",
        "message": "syntax error: invalid syntax",
        "path": "models/norms.py",
        "line": 3,
        "column": 0,
    }
    planner.traced = [Traced("models/norms.py", None, error)]
    with stages.serving(planner) as served:
        page.goto(served.url)
        banner = page.get_by_test_id("failure")
        banner.wait_for()
        assert "syntax error" in banner.inner_text()
        planner.traced = [Traced("models/norms.py:block", norms(), None)]
        served.refresh()
        page.locator("[data-box]").first.wait_for()


def test_two_plans_stand_in_one_drawing(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True), convolution(observed=False))
    page.get_by_label("Compare with").select_option(index=1)
    changes = page.get_by_test_id("changes")
    changes.wait_for()
    assert "+0 added, −0 removed, Δ0 retyped, 18 alike" in changes.inner_text()
    entries = changes.locator(".entry").all_inner_texts()
    assert any("nothing → blocked" in entry for entry in entries)
    assert any("taken → nothing" in entry for entry in entries)
    changes.locator(".entry").first.click()
    assert page.locator('.entry[aria-current="true"]').get_attribute("data-region") == "convolution@10"
    page.get_by_role("button", name="End the comparison").click()
    changes.wait_for(state="detached")


def test_a_removed_op_is_a_ghost_and_an_added_one_has_a_plus(open_page: Open) -> None:
    shorter = convolution(observed=False)
    longer = norms()
    page, *_ = open_page(longer, shorter)
    page.get_by_label("Compare with").select_option(label=shorter["target"])
    page.locator('[data-box="op"].removed').first.wait_for()
    assert page.locator('[data-box="op"].removed .strike').count() > 0
    assert page.locator('[data-box="op"].added .mark text').first.text_content() == "+"
    names = page.locator('[data-box="op"].removed').first.get_attribute("aria-label")
    assert names.startswith("removed: ")


def test_a_what_if_brings_the_curve_when_the_memory_is_looked_at(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True))
    curves: list[bool] = []
    page.on("request", lambda one: curves.append(one.post_data_json["liveness"]) if "whatif" in one.url else None)
    page.locator('.entry[data-verdict="blocked"]').click()
    page.locator("[data-fix=stop]").click()
    expect(page.get_by_test_id("whatif").locator(".status")).to_contain_text("changed")
    assert curves == [False]
    page.get_by_role("button", name="Memory").click()
    expect(page.get_by_test_id("memory")).to_contain_text("as recorded, peak")
    assert curves == [False, True]


def test_memory_tells_both_peaks_and_leads_to_their_ops(open_page: Open) -> None:
    page, *_ = open_page(norms(), size=TALL)
    page.keyboard.press("l")
    memory = page.get_by_test_id("memory")
    assert "as recorded, peak" in memory.inner_text()
    assert "planned, peak" in memory.inner_text()
    memory.locator(".link").first.click()
    assert page.locator('[data-box="op"].selected').count() == 1
    page.keyboard.press("l")
    expect(memory).to_have_count(0)


def test_a_whatif_can_be_read_as_a_patch(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True))
    page.locator('.entry[data-verdict="blocked"]').click()
    page.locator("[data-fix=stop]").click()
    page.get_by_role("button", name="Apply as code").click()
    patch = page.get_by_test_id("patch").locator("pre").inner_text()
    assert patch.startswith("--- a/examples/convolution.py\n+++ b/examples/convolution.py\n@@ -6,7 +6,6 @@\n")
    assert '-    tp.observe(windows, "windows")\n' in patch


def test_a_pattern_that_is_off_is_a_comment_and_an_option_a_command(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True))
    page.locator('.entry[data-verdict="taken"]').click()
    page.get_by_role("button", name="What if window reduce were off?").click()
    expect(page.get_by_test_id("whatif").locator(".status")).to_contain_text("changed")
    page.get_by_role("button", name="Apply as code").click()
    written = page.get_by_test_id("patch")
    expect(written.get_by_label("patch", exact=True)).to_contain_text("# topos: off[window_reduce]")
    expect(written.get_by_label("command", exact=True)).to_have_count(0)
    written.get_by_role("button", name="Close").click()
    page.get_by_label("Fidelity").select_option("exact")
    expect(page.get_by_test_id("whatif")).to_contain_text("fidelity exact")
    page.get_by_role("button", name="Apply as code").click()
    command = written.get_by_label("command", exact=True).inner_text().strip()
    assert command.startswith("topos plan examples/convolution.py:")
    assert command.endswith(" --fidelity exact")


@pytest.mark.parametrize(("kind", "start"), [("SVG of the view", b"<svg"), ("PNG of the view", b"\x89PNG")])
def test_the_view_is_exported(open_page: Open, kind: str, start: bytes) -> None:
    page, *_ = open_page(convolution(observed=True))
    page.locator("summary", has_text="Export").click()
    with page.expect_download() as download:
        page.get_by_role("button", name=kind).click()
    data = Path(download.value.path()).read_bytes()
    assert data.startswith(start)
    if start == b"<svg":
        text = data.decode()
        parts = list(ElementTree.fromstring(text).iter())
        assert not [part.tag for part in parts if part.tag.rpartition("}")[2] == "script"]
        assert not [name for part in parts for name in part.attrib if name.startswith("on")]  # nothing in it runs
        assert "var(--" not in text  # every style is written in
        assert "matmul" in text
        area = page.get_by_test_id("graph").bounding_box()
        left, top, width, height = map(float, str(ElementTree.fromstring(text).get("viewBox")).split())
        assert (width, height) == pytest.approx((area["width"], area["height"]), abs=1)  # what is in view, and no more
        assert min(left, top) > 0


def test_an_exported_plan_works_from_a_file_and_asks_nobody(browser: Any, tmp_path: Path, look: str) -> None:
    from topos_web.export import html

    file = tmp_path / "plan.html"
    file.write_text(html(hostile(), "module {\n  %v1 = stablehlo.add </script>\n}\n"))
    requests: list[str] = []
    faults: list[str] = []
    context = browser.new_context(color_scheme=look)
    page = context.new_page()
    page.on("request", lambda r: requests.append(r.url))
    page.on("console", lambda m: faults.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: faults.append(str(e)))
    page.goto(file.as_uri())
    page.locator("[data-box]").first.wait_for()
    page.locator(".entry").click()
    assert "<script>" in page.get_by_test_id("why").inner_text()
    assert page.evaluate("typeof globalThis.pwned") == "undefined"
    assert page.get_by_role("button", name="What if").count() == 0  # nobody to ask
    page.get_by_role("button", name="Emitted StableHLO").click()
    expect(page.get_by_test_id("emitted")).to_contain_text("stablehlo.add </script>")
    assert {url.split(":")[0] for url in requests} == {"file", "blob"}
    assert faults == []
    context.close()


def test_settings_are_kept(open_page: Open) -> None:
    page, *_ = open_page(norms(), size=TALL)
    page.locator('.entry[data-verdict="declined"]').first.click()
    link = page.locator(".editor").first.get_attribute("href")
    assert re.fullmatch(r"vscode://file/srv/models/models/norms\.py:\d+:\d+", link), link
    page.keyboard.press("?")
    page.get_by_label("Editor link").fill("edit:{path}?{line}")
    page.get_by_label("Editor link").press("Tab")
    page.keyboard.press("Escape")
    page.locator('.entry[data-verdict="declined"]').first.click()
    assert page.locator(".editor").first.get_attribute("href").startswith("edit:/srv/models/models/norms.py?")
    page.reload()
    page.locator('.entry[data-verdict="declined"]').first.click()
    assert page.locator(".editor").first.get_attribute("href").startswith("edit:")


def test_a_taken_region_shows_the_kernel_that_runs_it(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True))
    page.get_by_role("button", name="Kernel", exact=True).click()
    pane = page.get_by_test_id("kernel")
    expect(pane).to_have_text("Select a region that is taken.")
    page.locator('.entry[data-verdict="taken"]').click()
    expect(pane).to_contain_text("made ready by topos_core/kernels/home/window_reduce.py for znver4")
    expect(pane.get_by_label("how it is started")).to_have_text(re.compile(r"threads\s*2\s*items\s*4\s*rows\s*6"))
    expect(pane.locator(".code")).to_contain_text("def window(args, worker):")
    kernels = pane.get_by_label("kernel", exact=True)
    assert kernels.locator("option").all_inner_texts()[-1] == "expression over rows: exp, sum (f32) · called by address"
    kernels.select_option(index=2)
    expect(kernels).to_have_attribute("title", 'expression ["rows",true,false,[["f32",true]]]')
    pane.get_by_text("made for this program").click()
    expect(pane.locator("details code")).to_have_text('["rows",true,false,[["f32",true]]]')
    kernels.select_option(index=1)
    expect(pane.locator("details")).to_have_count(0)
    pane.get_by_role("button", name="LLVM IR").click()
    expect(pane.locator(".code")).to_contain_text("define void @topos_kernel")
    page.locator('.entry[data-verdict="blocked"]').click()
    expect(pane).to_contain_text("one convolution never computes it")
    page.locator("[data-fix=stop]").click()
    expect(pane).to_contain_text("direct convolution made ready by topos_core/kernels/home/convolution.py")


def test_nothing_is_asked_of_a_region_that_a_question_is_about_to_end(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True), fragment="#pane=kernel")
    page.locator('.entry[data-verdict="taken"]').click()
    expect(page.get_by_test_id("certificate")).to_contain_text("equal by algebra")
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url.rsplit("/", 1)[1]) if one.method == "POST" else None)
    page.get_by_role("button", name="What if window reduce were off?").click()
    expect(page.get_by_test_id("kernel")).to_contain_text("switched off")
    frames(page, 2)
    assert asked == ["whatif"]


def test_how_a_kernel_is_started_is_cut_between_its_lines(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True), fragment="#pane=kernel")
    page.locator('.entry[data-verdict="taken"]').click()
    start = page.get_by_label("how it is started")
    start.evaluate("e => { for (let i = 0; i < 40; i++) e.append(e.lastElementChild.cloneNode(true)); }")
    edges = start.evaluate(
        "e => [e.getBoundingClientRect().bottom, ...[...e.children].map(one => one.getBoundingClientRect()).flatMap(r => [r.top, r.bottom])]"
    )
    end = edges[0]
    assert not [
        (top, bottom) for top, bottom in zip(edges[1::2], edges[2::2], strict=True) if top < end - 1 < bottom - 1
    ]


def test_a_long_kernel_is_read_by_scrolling(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True), fragment="#pane=kernel")
    page.locator('.entry[data-verdict="taken"]').click()
    code = page.get_by_test_id("kernel").locator(".code")
    expect(code).to_contain_text("def window(args, worker):")
    assert code.locator(".line").count() < 100
    code.evaluate("e => { e.scrollTop = e.scrollHeight; }")
    expect(code).to_contain_text("line = 399  # </script>")


def test_a_generated_region_shows_its_loops_beside_its_ops(open_page: Open) -> None:
    page, *_ = open_page(norms())
    page.keyboard.press("p")
    page.locator('.entry[data-verdict="taken"]').filter(has_text="elementwise").first.click()
    pane = page.get_by_test_id("phases")
    recorded, nest = (pane.get_by_role("region", name=name) for name in ("Recorded", "Fused loop nest"))
    expect(nest.locator(".line").first).to_have_text("for i in 0..8 {  // in whole registers")
    step = nest.locator(".line").nth(1)
    step.hover()
    value = re.match(r"%(\d+)", (step.text_content() or "").strip())
    assert value is not None
    expect(recorded.locator(".line.hit")).to_have_text(re.compile(f"^%{value[1]} ="))
    step.click()
    expect(page.locator('[data-box="op"].selected')).to_have_attribute("data-op", value[1])
    pane.get_by_role("button", name="Differences").click()
    expect(nest.locator(".plus").first).to_have_text("+for i in 0..8 {  // in whole registers")


def test_phases_show_three_forms_that_follow_one_selection(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True))
    page.keyboard.press("p")
    pane = page.get_by_test_id("phases")
    expect(pane).to_contain_text("Select an op or a region.")
    page.locator('.entry[data-verdict="taken"]').click()
    recorded, grouped, nest = (
        pane.get_by_role("region", name=name) for name in ("Recorded", "Grouped", "Fused loop nest")
    )
    expect(grouped.locator(".line")).to_have_text("%17 = window_reduce(x=%0)")
    expect(nest).to_contain_text("one kernel runs it")  # what topos has not is told, not drawn
    nest.get_by_role("button", name="Show its kernel").click()
    expect(page.get_by_test_id("kernel").locator(".code")).to_contain_text("def window(args, worker):")
    page.get_by_role("button", name="Kernel", exact=True).click()
    grouped.locator(".line").hover()
    expect(recorded.locator(".line.hit")).to_have_text(re.compile("^%17 ="))
    pane.get_by_role("button", name="Differences").click()
    expect(grouped.locator(".minus").first).to_have_text(re.compile("^−%"))
    expect(grouped.locator(".plus")).to_have_text("+%17 = window_reduce(x=%0)")
    recorded.locator(".line").first.click()
    expect(page.locator('[data-box="op"].selected')).to_have_count(1)
    page.keyboard.press("p")
    expect(pane).to_have_count(0)
