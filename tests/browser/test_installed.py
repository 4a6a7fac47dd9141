"""The wheel in an environment that holds nothing else: `topos view` as a user who installed it has it, in a browser."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODEL = """\
import numpy as np
import topos_core as tp


@tp.model(x=tp.f32[4, 8], w=tp.f32[8, 8])
def main(x, w):
    return np.tanh(np.maximum(x @ w, 0)) * 2.0
"""


@pytest.mark.conformance
@pytest.mark.timeout(900)  # pip fetches all that topos stands on
def test_an_installed_wheel_shows_a_plan_in_the_browser(browser: Any, tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="hatchling is missing")
    playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is missing")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    clean = tmp_path / "clean"
    subprocess.run([sys.executable, "-m", "venv", str(clean)], check=True, capture_output=True)
    install = [str(clean / "bin" / "python"), "-m", "pip", "install", "--quiet", str(next(tmp_path.glob("*.whl")))]
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    subprocess.run(install, check=True, capture_output=True, cwd=tmp_path, env=environment)
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
