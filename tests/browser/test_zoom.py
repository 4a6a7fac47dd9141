"""What each distance shows: counts and losses from far, shapes on closed scopes, times near, edges' labels close."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.browser.conftest import Open, at_rest
from tests.web.documents import Builder, Document, convolution, decoder, norms

expect = pytest.importorskip("playwright.sync_api", reason="the package playwright is missing").expect


def test_a_closed_scope_tells_what_it_loses_takes_and_gives(open_page: Open) -> None:
    page, *_ = open_page(decoder(600))
    page.get_by_role("button", name="Close all").click()
    closed = page.locator('[data-box="scope"]').first
    expect(closed.locator(".lost")).to_have_text("losing 150 us modelled")
    expect(closed.locator(".shapes")).to_have_text("f32[128,512] +1 → f32[128,512]")
    assert "losing 150 us (modelled)" in (closed.get_attribute("aria-label") or "")


@pytest.mark.parametrize("name", ["matmul", "multi_head_attention", "gated_mlp", "max_pool"])
def test_a_label_has_room_for_its_letters(open_page: Open, name: str) -> None:
    document = norms()
    for region in document["regions"]:
        region["pattern"] = name
    page, *_ = open_page(document)
    ends = page.evaluate(
        "() => [...document.querySelectorAll('.label')].map(label => label.querySelector('rect').width.baseVal.value"
        " - Number(label.querySelector('text').getAttribute('x')) - label.querySelector('text').getComputedTextLength())"
    )
    assert ends
    assert min(ends) >= 3, ends


def test_a_label_bears_the_regions_time_with_its_basis(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True))
    expect(page.locator('.label[data-verdict="taken"] .modelled')).to_have_text("420 ns modelled")
    expect(page.locator('.label[data-verdict="blocked"] .modelled')).to_have_text("4.12 us modelled")


def test_edges_say_what_they_carry_when_seen_close(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True))
    expect(page.locator(".carried")).to_have_count(0)
    page.locator('[data-op="8"]').click()
    for _ in range(4):
        page.keyboard.press("+")
    at_rest(page)
    expect(page.locator(".carried").filter(has_text="f32[16,9]").first).to_be_visible()


def crossed() -> Document:
    """A region of which a part stands inside a scope, and one that wants the same ops."""
    b = Builder("m.py", "def main(x):\n    return x\n", "m.py:main")
    at = (2, "return x")
    x = b.op("input", [], "f32[2]", (1, "main(x)"), "x")
    inside = [b.op("exp", [x], "f32[2]", at, scope=["block"])]
    inside.append(b.op("neg", inside, "f32[2]", at, scope=["block"]))
    inside.append(b.op("abs", inside[1:], "f32[2]", at, scope=["block"]))
    outside = b.op("tanh", inside[2:], "f32[2]", at)
    b.region("elementwise_chain", "taken", [inside[2], outside], [at], root=outside, computing=[inside[2], outside])
    for name in ("softmax", "gelu", "silu"):
        b.region(name, "declined", inside, [at], root=inside[2], computing=inside, code="TP204", word="covered-by")
    return b.document([outside])


def test_a_region_that_crosses_a_closed_scope_is_a_chip_on_its_border(open_page: Open) -> None:
    page, *_ = open_page(crossed())
    page.get_by_role("button", name="Close all").click()
    chip = page.locator('[data-box="scope"] [data-chip]')
    expect(chip).to_have_count(1)  # nothing is selected
    chip.click()
    expect(page.get_by_test_id("why")).to_contain_text("elementwise_chain")


WRITTEN = """() => {
  const all = [...document.querySelectorAll('.op .name, .op .type, .op .more, .op .mark, .op .observed .ring, .op .near, .op .rivals, .op .measured, .carried')]
    .filter(e => e.textContent || e.matches('.ring, .near')).map(e => [e.textContent.trim() || e.getAttribute('class'), e.getBoundingClientRect()]);
  return all.flatMap(([one, a], i) => all.slice(i + 1).filter(([, b]) =>
    a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 4 && b.top < a.bottom - 4).map(([other]) => `${one} over ${other}`));
}"""


@pytest.mark.parametrize(
    "documents",
    [(norms(),), (convolution(observed=True),), (convolution(observed=True), norms())],
    ids=["norms", "convolution", "compared"],
)
def test_nothing_that_is_written_close_lies_over_anything_else(
    open_page: Open, documents: tuple[Document, ...]
) -> None:
    """Names, attributes, lines, types, sizes, signs on boxes and what edges carry."""
    page, *_ = open_page(*documents, size=(2400, 2400))
    if len(documents) > 1:
        page.get_by_label("Compare with").select_option(index=1)
        page.locator(".mark").first.wait_for()
    page.keyboard.press("c")
    while page.locator(".carried").count() == 0:
        page.keyboard.press("+")
        at_rest(page)
    assert page.locator(".op .more").count() > 8
    assert page.evaluate(WRITTEN) == []


def test_rivals_stand_further_out_by_rank(open_page: Open) -> None:
    page, *_ = open_page(crossed())
    page.get_by_role("button", name="Candidates").click()
    page.locator('[data-sleeve^="softmax"]').wait_for()
    if page.locator('[data-op="1"]').count() == 0:
        page.locator('[data-box="scope"] .twist').first.click()
    at_rest(page)
    width = "e => e.getBBox().width"
    widths = sorted(page.locator(f'[data-sleeve^="{name}"]').evaluate(width) for name in ("softmax", "gelu", "silu"))
    assert [round(b - a) for a, b in itertools.pairwise(widths)] == [10, 10]  # 5 on each side


def test_the_bar_counts_verdicts_and_tells_what_is_possible(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True))
    expect(page.get_by_test_id("counts")).to_have_text(re.compile(r"1\s*blocked\s*1\s*taken"))
    possible = page.locator(".possible")
    expect(possible).to_have_text("(−3.16 us possible)")
    expect(page.locator(".times")).to_contain_text("modelled")
    page.locator('.entry[data-verdict="blocked"]').click()
    free, *_ = open_page(norms())
    expect(free.locator(".possible")).to_have_count(0)


def test_the_view_from_far_is_an_svg_too(open_page: Open, tmp_path: Path) -> None:
    page, *_ = open_page(decoder(600))
    for key in ("0", "-", "-", "-"):
        page.keyboard.press(key)
    page.locator(".graph > canvas").wait_for()
    with page.expect_download() as download:
        page.locator("summary", has_text="Export").click()
        page.get_by_role("button", name="SVG of the view").click()
    file = tmp_path / "far.svg"
    download.value.save_as(file)
    root = ElementTree.parse(file).getroot()
    tag = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f"{tag}rect")) > 40
    assert any(text.text == "layers" for text in root.findall(f"{tag}text"))
    assert re.search(r'fill="url\(#declined\)"', file.read_text())
    assert drawn_alike(page, file.read_text())


def drawn_alike(page: Any, svg: str) -> bool:
    """Whether the file looks as the canvas does: all but a few pixels at edges are equal."""
    different: float = page.evaluate(
        """async svg => {
      const canvas = document.querySelector('.graph > canvas');
      const [width, height] = [canvas.clientWidth, canvas.clientHeight];
      const pixels = image => {
        const copy = Object.assign(document.createElement('canvas'), {width, height}).getContext('2d');
        copy.fillStyle = getComputedStyle(document.querySelector('.graph')).backgroundColor;
        copy.fillRect(0, 0, width, height);
        copy.drawImage(image, 0, 0, width, height);
        return copy.getImageData(0, 0, width, height).data;
      };
      const file = new Image();
      file.src = URL.createObjectURL(new Blob([svg], {type: 'image/svg+xml'}));
      await file.decode();
      const [one, other] = [pixels(canvas), pixels(file)];
      let count = 0;
      for (let i = 0; i < one.length; i += 4) count += Math.abs(one[i] - other[i]) + Math.abs(one[i + 1] - other[i + 1]) > 120 ? 1 : 0;
      return count / (width * height);
    }""",
        svg,
    )
    return different < 0.004
