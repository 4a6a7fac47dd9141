"""The page for people who see it otherwise: axe's rules, contrast of every colour pair, colour-blind looks, no motion."""

from __future__ import annotations

from importlib import resources
from itertools import combinations
from typing import Any

import pytest

from tests.browser.conftest import Open, at_rest, themes
from tests.web.documents import convolution, decoder, measured, norms

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

STATES = {
    "first look": "",
    "blocked": """page.locator('.entry[data-verdict="blocked"]').click()""",
    "op": """page.locator('[data-box="op"]').nth(4).click(); page.keyboard.press("l")""",
    "what-if": """page.locator('.entry').first.click(); page.locator('[data-fix=beside]').click(); page.get_by_test_id("whatif").wait_for()""",
    "help": """page.keyboard.press("?")""",
    "emitted": """page.get_by_role("button", name="Emitted StableHLO").click(); page.locator("summary").first.click()""",
    "kernel": """page.locator('.entry[data-verdict="taken"]').first.click(); page.get_by_role("button", name="Kernel", exact=True).click(); page.locator('.kernel .code').wait_for()""",
    "phases": """page.locator('.entry[data-verdict="taken"]').first.click(); page.keyboard.press("p"); page.locator('.phases .line').first.wait_for()""",
    "measured": """page.locator('.entry[data-verdict="taken"]').click(); page.get_by_test_id("measured").wait_for()""",
    "compared": """page.get_by_label("Compare with").select_option(index=1); page.get_by_test_id("changes").wait_for(); page.get_by_role("button", name="Source", exact=True).click(); page.locator(".beside .changed").first.wait_for()""",
}


AXE = """([tags, colours]) => axe.run(document, {resultTypes: ['violations'], runOnly: !colours ? tags : {type: 'rule',
  values: axe.getRules(tags).filter(rule => rule.tags.includes('cat.color')).map(rule => rule.ruleId)}})"""


def violations(page: Any) -> list[str]:
    """What axe finds: by all rules as the page stands, by those of colour in the other theme too."""
    pytest.importorskip("axe_playwright_python", reason="the package axe-playwright-python is missing")
    page.evaluate(resources.files("axe_playwright_python").joinpath("axe.min.js").read_text())
    at_rest(page)
    found = [("", page.evaluate(AXE, [RULES, False]))]
    other = next(themes(page))
    found.append((f"{other}: ", page.evaluate(AXE, [RULES, True])))
    assert any(one["id"] == "color-contrast" for one in found[1][1]["passes"])
    return [
        f"{where}{v['id']}: {node['html'][:160]}"
        for where, run in found
        for v in run["violations"]
        for node in v["nodes"][:3]
    ]


@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing(open_page: Open, state: str) -> None:
    profiles = [measured(convolution(observed=True))] if state == "measured" else []
    page, *_ = open_page(convolution(observed=True), norms(), profiles=profiles)
    exec(STATES[state], {"page": page})
    assert violations(page) == []


def test_axe_finds_nothing_in_a_deep_model(open_page: Open) -> None:
    page, *_ = open_page(decoder(500))
    page.locator('[role="tree"] .twist').first.click()
    page.keyboard.press("n")
    page.locator('.sleeve[data-verdict="blocked"]').wait_for(state="attached")
    assert violations(page) == []


# text on ground, then signs and lines on ground: WCAG 1.4.3 and 1.4.11
TEXTS = [(t, g) for t in ("text", "muted", "accent", "taken-text", "declined-text", "blocked-text", "near-miss-text", "measured")
         for g in ("background", "canvas", "panel", "raised", "hover", "frame", "node")]  # fmt: skip
SIGNS = [(t, g) for t in ("taken", "declined", "blocked", "near-miss", "select", "node-line", "edge", "strong-line", "accent", "measured")
         for g in ("canvas", "panel", "raised", "frame")]  # fmt: skip


# names of scopes and ops stand on a region's fill: sign, share of it over the ground (of a texture, its mean)
TINT = {"light": 0x29 / 255, "dark": 0x3D / 255}
FILLS = [("taken", None), ("declined", 0.07 + 0.42 * 1.8 / 9), ("blocked", 0.12 + 0.62 * 0.09)]
FILLED = [(t, sign, share, g) for t in ("text", "muted") for sign, share in FILLS for g in ("canvas", "frame")]
# what is written on a chosen label, and in marked source and emitted lines
CHOSEN = [("canvas", sign) for sign in ("taken", "taken-text", "declined-text", "blocked-text", "near-miss-text")]
MARKED = [("text", sign, 0.26, "raised") for sign in ("taken", "declined", "blocked", "near-miss")]


TINTED = (
    """() => Number(getComputedStyle(document.querySelector('#fill-taken rect')).fill.match(/[\\d.]+(?=\\)$)/)[0])"""
)
SEEN = {"light": 1.2, "dark": 1.5}
"""Contrast of a plain fill with its ground: near black the eye needs more of it."""


def test_every_colour_pair_has_contrast(open_page: Open) -> None:
    page, *_ = open_page(norms())
    names = sorted({name for pair in TEXTS + SIGNS + CHOSEN for name in pair})
    low: list[str] = []
    grounds = set()
    for theme in themes(page):
        colours = page.evaluate(
            """names => { const probe = document.createElement('span'); document.body.append(probe);
            return Object.fromEntries(names.map(n => { probe.style.color = `var(--${n})`; return [n, getComputedStyle(probe).color]; })); }""",
            names,
        )
        grounds.add(colours["canvas"])
        low += [
            f"{theme}: {front} on {ground}: {ratio:.2f}"
            for pairs, least in ((TEXTS + CHOSEN, 4.5), (SIGNS, 3.0))
            for front, ground in pairs
            if (ratio := contrast(colours[front], colours[ground])) < least
        ]
        low += [
            f"{theme}: {text} on {share or TINT[theme]:.2f} of {sign} over {ground}: {ratio:.2f}"
            for text, sign, share, ground in FILLED + MARKED
            if (ratio := contrast(colours[text], mixed(colours[sign], share or TINT[theme], colours[ground]))) < 4.5
        ]
        low += [
            f"{theme}: an edge on {sign} over canvas: {ratio:.2f}"
            for sign, share in FILLS
            if (ratio := contrast(colours["edge"], mixed(colours[sign], share or TINT[theme], colours["canvas"]))) < 3
        ]
        # the one fill without a texture must be seen by itself, in the dark too
        assert page.evaluate(TINTED) == pytest.approx(TINT[theme], abs=0.005)
        low += [
            f"{theme}: taken over {ground}: {ratio:.2f}"
            for ground in ("canvas", "frame")
            if (ratio := contrast(mixed(colours["taken"], TINT[theme], colours[ground]), colours[ground])) < SEEN[theme]
        ]
    assert low == []
    assert len(grounds) == 2


def mixed(front: str, share: float, ground: str) -> str:
    pairs = zip(channels(front), channels(ground), strict=True)
    return f"rgb({', '.join(str(share * one + (1 - share) * other) for one, other in pairs)})"


def channels(colour: str) -> list[float]:
    return [float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    shares = [c / 255 for c in channels(colour)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


DEFICIENCIES = ["achromatopsia", "deuteranopia", "protanopia", "tritanopia"]


def test_verdicts_stay_apart_for_every_eye(open_page: Open) -> None:
    """What the sleeves are drawn with differs in brightness or texture: pictures of it are far apart even without colour."""
    pytest.importorskip("PIL", reason="the package pillow is missing")
    import io

    import numpy as np
    from PIL import Image

    page, *_ = open_page(convolution(observed=True))
    session = page.context.new_cdp_session(page)
    legend = page.locator(".legend")
    at = legend.bounding_box()
    corners = {
        verdict: (box["x"] - at["x"], box["y"] - at["y"])
        for verdict in ("taken", "declined", "blocked", "near")
        if (box := page.locator(f".swatch.{verdict}").bounding_box())
    }
    alike = []
    for theme in themes(page):
        for deficiency in DEFICIENCIES:
            session.send("Emulation.setEmulatedVisionDeficiency", {"type": deficiency})
            picture = Image.open(io.BytesIO(page.screenshot(clip=at))).convert("L")
            looks: dict[str, Any] = {
                verdict: np.asarray(picture.crop((round(x), round(y), round(x) + 30, round(y) + 18)), dtype=float)
                for verdict, (x, y) in corners.items()
            }
            alike += [
                (theme, deficiency, one, other)
                for one, other in combinations(looks, 2)
                if np.abs(looks[one] - looks[other]).mean() <= 4
            ]
    page.context.close()  # what is emulated stays with it
    assert alike == []


@pytest.mark.parametrize(("motion", "steps"), [("reduce", range(2, 3)), ("no-preference", range(4, 100))])
def test_motion_is_left_out_where_it_is_unwanted(open_page: Open, motion: str, steps: range) -> None:
    page, *_ = open_page(norms(), reduced_motion=motion)
    page.evaluate("""() => {
      globalThis.places = new Set();
      const look = () => { places.add(document.querySelector('svg.ground > g').getAttribute('transform')); requestAnimationFrame(look); };
      look();
    }""")
    page.locator('.entry[data-verdict="near_miss"]').click()
    at_rest(page)
    assert page.evaluate("places.size") in steps
    if motion == "reduce":
        page.get_by_role("button", name="What if").first.click()
        page.get_by_test_id("whatif").wait_for()
        assert page.evaluate("document.getAnimations().filter(one => one.playState === 'running').length") == 0


def test_every_target_is_large_enough(open_page: Open) -> None:
    page, *_ = open_page(convolution(observed=True))
    page.locator('.entry[data-verdict="blocked"]').click()
    small = page.locator("button:visible, select:visible, summary:visible").evaluate_all(
        """all => all.filter(e => !e.classList.contains('link') && !e.closest('.gutter, .line, [role="tree"]'))
        .map(e => [e.outerHTML.slice(0, 80), e.getBoundingClientRect()])
        .filter(([, r]) => r.height < 24 && r.width < 24).map(([html]) => html)"""
    )
    assert small == []
