"""Takes the viewer's pictures in docs/images again, from the tree that it stands in: `make pictures`.

    python -m benchmarks.viewer.pictures [--only seed,fold,...] [--profile FILE]

Every window is 1440 x 900 pixels, every picture 1200 x 750. The real models need torch and transformers; the measured picture needs
`topos bench examples/transformer_block.py --json`, which is run where no FILE is given.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks.viewer.browser import chromium
from benchmarks.viewer.targets import SPECS, real_model
from tests.web.serving import Served, serving
from topos_web import profiles
from topos_web.agents import AgentPlanner

ROOT: Final = Path(__file__).resolve().parents[2]
IMAGES: Final = ROOT / "docs" / "images"
WINDOW: Final = {"width": 1440, "height": 900}
PICTURE: Final = (1200, 750)
EXACT: Final = 64
MEASURED: Final = "examples/transformer_block.py"

DECODER: Final = """\
import numpy as np
import topos_core as tp


def norm(x, scale):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5) * scale


def softmax(x, watched):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    if watched:
        tp.observe(e, "exponentials")
    return e / e.sum(axis=-1, keepdims=True)


def layer(x, mask, w, scale, watched):
    h = norm(x, scale[0])
    weights = softmax((h @ w[0]) @ (h @ w[1]).T * 0.125 + mask, watched)
    x = x + (weights @ (h @ w[2])) @ w[3]
    h = norm(x, scale[1])
    gate = h @ w[4]
    return x + (gate / (1 + np.exp(-gate)) * (h @ w[5])) @ w[6]


@tp.model(x=tp.f32[32, 256], mask=tp.f32[32, 32], w=tp.f32[7, 256, 256], scale=tp.f32[2, 256])
def decode(x, mask, w, scale):
    for i in range(40):
        x = layer(x, mask, w, scale, watched=i == 11)
    return x
"""
"""Forty equal layers; a value inside one of them is observed."""

VERDICTS: Final = """\
import numpy as np
import topos_core as tp
from topos_core import nn


def layer_norm(x, scale, shift):
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).sum(axis=-1, keepdims=True) / (x.shape[-1] - 1)
    return centred / np.sqrt(variance + 1e-5) * scale + shift


@tp.model(x=tp.f32[32, 64], w1=tp.f32[64, 256], b1=tp.f32[256], w2=tp.f32[256, 64], scale=tp.f32[64], shift=tp.f32[64])
def block(x, w1, b1, w2, scale, shift):
    hidden = layer_norm(x, scale, shift) @ w1 + b1
    tp.observe(hidden, "hidden")
    return nn.softmax(nn.gelu(hidden) @ w2)
"""
"""All four verdicts in one look: taken, declined by cost, blocked, and a layer norm that divides by n - 1."""

Steps = Callable[[Any, Served, Path], None]


def seed(page: Any, _served: Served, _folder: Path) -> None:
    page.locator('.entry[data-verdict="taken"]').first.click()


def certified(page: Any, _served: Served, _folder: Path) -> None:
    page.locator('.entry[data-verdict="taken"]').first.click()
    page.get_by_test_id("certificate").get_by_text("by algebra").wait_for()
    page.get_by_test_id("certificate").scroll_into_view_if_needed()


def blocked(page: Any, _served: Served, _folder: Path) -> None:
    page.keyboard.press("n")


def whatif(page: Any, _served: Served, _folder: Path) -> None:
    page.keyboard.press("n")
    page.locator("[data-fix=stop]").click()
    page.get_by_test_id("whatif").get_by_text("changed").wait_for()


def diff(page: Any, served: Served, folder: Path) -> None:
    path = folder / "observed.py"
    path.write_text("".join(line for line in path.read_text().splitlines(True) if '"columns")' not in line))
    served.refresh()
    page.get_by_label("Compare with").select_option(label="before the last save")
    page.get_by_test_id("changes").locator(".entry").first.click()


def fold(page: Any, _served: Served, _folder: Path) -> None:
    page.locator(".cell.odd").click()
    page.get_by_role("button", name="Fit", exact=True).wait_for()


def kernel(page: Any, _served: Served, _folder: Path) -> None:
    page.locator(".entry").filter(has_text="gelu").filter(has_text="Taken").first.click()
    page.get_by_role("button", name="Kernel", exact=True).click()
    page.locator(".kernel .code").wait_for(timeout=120_000)


def phases(page: Any, _served: Served, _folder: Path) -> None:
    page.locator(".entry").filter(has_text="elementwise chain").first.click()
    page.keyboard.press("p")
    page.locator(".phases .line").first.wait_for()


def measured(page: Any, _served: Served, _folder: Path) -> None:
    page.locator(".entry").filter(has_text="attention").filter(has_text="Taken").first.click()
    page.get_by_test_id("measured").wait_for()
    page.get_by_test_id("measured").scroll_into_view_if_needed()


def colourless(page: Any, _served: Served, _folder: Path) -> None:
    page.keyboard.press("n")
    page.context.new_cdp_session(page).send("Emulation.setEmulatedVisionDeficiency", {"type": "achromatopsia"})


def nothing(_page: Any, _served: Served, _folder: Path) -> None:
    """Takes the page as it opens."""


PICTURES: Final[dict[str, tuple[str, str, Steps]]] = {
    "seed": ("examples/seed_convolution.py", "light", seed),
    "digits": ("examples/digits_cnn.py", "dark", certified),
    "blocked": ("examples/observed.py:hidden_observed", "dark", blocked),
    "whatif": ("examples/observed.py:hidden_observed", "dark", whatif),
    "diff": ("copy of examples/observed.py:hidden_observed", "light", diff),
    "fold": (DECODER, "light", fold),
    "kernel": (MEASURED, "light", kernel),
    "phases": ("examples/observed.py:hidden_observed", "light", phases),
    "profile": (MEASURED, "dark", measured),
    "colourless": (VERDICTS, "light", colourless),
    "resnet": ("ResNet-50", "light", nothing),
    "bert": ("BERT-base", "dark", nothing),
    "decoder": ("decoder", "light", nothing),
}
"""By name: what is traced (a target of the tree, a program's text, a real model), theme, and what is done before the picture."""


def main() -> None:
    """Takes the pictures one after another."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default=",".join(PICTURES))
    parser.add_argument("--profile", help="a file of topos bench, else it is run")
    options = parser.parse_args()
    for name in options.only.split(","):
        what, theme, steps = PICTURES[name]
        with tempfile.TemporaryDirectory() as folder:
            given = [measurements(options.profile)] if name == "profile" else []
            with (
                traced(what, Path(folder)) as planner,
                serving(planner, profiles=given) as served,
                chromium() as browser,
            ):
                save(name, shot(browser, served, theme, steps, Path(folder)))


@contextlib.contextmanager
def traced(what: str, folder: Path) -> Iterator[AgentPlanner]:
    """Gives a planner for a target of the tree, a copy of one, a program's text or a real model."""
    if what in SPECS:
        with real_model(what) as found:
            yield found.planner
        return
    target = what
    if "\n" in what:
        (folder / "model.py").write_text(what)
        target = str(folder / "model.py")
    elif what.startswith("copy of "):
        path, _, entry = what.removeprefix("copy of ").partition(":")
        (folder / Path(path).name).write_text((ROOT / path).read_text())
        target = f"{folder / Path(path).name}:{entry}"
    planner = AgentPlanner([target])
    try:
        yield planner
    finally:
        planner.close()


def measurements(path: str | None) -> profiles.Profile:
    """Reads what `topos bench` measured, or measures it."""
    if path is not None:
        return profiles.read(path)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.json"
        command = [sys.executable, "-m", "topos_core.cli", "bench", MEASURED, "--json"]
        file.write_bytes(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
        return profiles.read(str(file))


def shot(browser: Any, served: Served, theme: str, steps: Steps, folder: Path) -> bytes:
    """Opens the page in a fresh context, does the steps, and gives the picture once nothing moves."""
    context = browser.new_context(viewport=WINDOW, color_scheme=theme, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(served.url)
    page.locator("[data-box], .graph canvas").first.wait_for()
    page.wait_for_timeout(600)
    steps(page, served, folder)
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement?.blur()")
    page.wait_for_timeout(900)
    picture: bytes = page.screenshot()
    context.close()
    return picture


def save(name: str, picture: bytes) -> None:
    """Writes a picture at its size, in 256 colours: the commonest as they are, the rest so that every hue is kept."""
    from PIL import Image

    image = Image.open(io.BytesIO(picture)).convert("RGB").resize(PICTURE, Image.Resampling.LANCZOS)
    counted = sorted(image.getcolors(PICTURE[0] * PICTURE[1]), reverse=True)
    exact = [channel for _, colour in counted[:EXACT] for channel in colour]
    rest = image.quantize(256 - EXACT, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).getpalette()[
        : 3 * (256 - EXACT)
    ]
    palette = Image.new("P", (1, 1))
    palette.putpalette(exact + rest)
    path = IMAGES / f"viewer-{name}.png"
    image.quantize(palette=palette, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1024} KiB", flush=True)


if __name__ == "__main__":
    main()
