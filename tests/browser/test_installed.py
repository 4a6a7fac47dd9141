"""The wheel in an environment that holds nothing else: `topos view` as a user who installed it has it, in a browser."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from topos_web import static

ROOT = Path(__file__).resolve().parents[2]
MODEL = """\
import numpy as np
import topos_core as tp


@tp.model(x=tp.f32[4, 8], w=tp.f32[8, 8])
def main(x, w):
    return np.tanh(np.maximum(x @ w, 0)) * 2.0
"""


def test_an_installed_wheel_shows_a_plan_in_the_browser(browser: Any, tmp_path: Path) -> None:
    """What topos stands on is taken from here, by a path file; topos itself from the wheel alone."""
    pytest.importorskip("hatchling", reason="hatchling is missing")
    playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is missing")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    clean = tmp_path / "clean"
    venv.create(clean, with_pip=False)
    python = clean / "bin" / "python"
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-compile",
    ]
    subprocess.run([*pip, str(next(tmp_path.glob("*.whl")))], check=True, capture_output=True, env=environment)
    (site,) = (clean / "lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(
        f"{Path(pytest.__file__).parents[1]}\n"
    )  # a folder; path files in it are not read
    asked = [str(python), "-c", "import topos_core, topos_web; print(topos_core.__file__, topos_web.__file__)"]
    found = subprocess.run(
        asked, check=True, capture_output=True, text=True, cwd=tmp_path, env=environment
    ).stdout.split()
    assert all(Path(file).is_relative_to(site) for file in found)
    assert sorted(file.name for file in (site / "topos_web" / "static").iterdir()) == sorted(static.load())
    (tmp_path / "model.py").write_text(MODEL)
    command = [str(clean / "bin" / "topos"), "view", "model.py", "--no-browser", "--port", "0"]
    process = subprocess.Popen(
        command, cwd=tmp_path, env={**environment, "PYTHONUNBUFFERED": "1"}, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        page = browser.new_page()
        page.set_default_timeout(60_000)
        page.goto(url)
        page.locator("[data-box='op']").first.wait_for()
        playwright.expect(page.get_by_test_id("source")).to_contain_text("np.tanh(np.maximum(x @ w, 0)) * 2.0")
        page.close()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert process.returncode == 0
