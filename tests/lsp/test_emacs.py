import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lsp.client import ROOT

SCRIPT = Path(__file__).with_name("emacs.el")


@pytest.mark.conformance
@pytest.mark.skipif(shutil.which("emacs") is None, reason="emacs is missing; install emacs-nox and elpa-eglot")
def test_emacs_shows_the_diagnostic_and_the_hover_once_the_folder_is_trusted(tmp_path, observed):
    report = tmp_path / "report.json"
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "TOPOS_PYTHON": sys.executable, "TOPOS_FILE": str(observed),
        "TOPOS_REPORT": str(report), "TOPOS_PLUGIN": str(ROOT / "editors" / "emacs"), "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }  # fmt: skip
    command = ["emacs", "--batch", "-Q", "-l", str(SCRIPT)]
    ran = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert report.exists(), ran.stderr
    seen = json.loads(report.read_text())
    assert seen["untrusted"] is seen["blocked"] is seen["taken"] is True
    (diagnostic,) = seen["diagnostics"]
    assert diagnostic["line"] == 14
    assert diagnostic["at"] == 'tp.observe(columns, "columns")'
    assert "blocked: convolution 3x3, 16 -> 32 channels + bias + relu" in diagnostic["text"]
    assert "`columns` is read by `tp.observe`" in seen["hover"]
    assert {"stop observing `columns`", "leave TP101 out here with a comment"} <= set(seen["actions"])
