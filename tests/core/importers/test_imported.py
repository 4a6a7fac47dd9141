"""A framework that is missing is told with the extra that installs it; files without one load nothing."""

from __future__ import annotations

import sys

from topos_core.importers.imported import loading
from topos_core.session.places import error_of


def test_a_missing_torch_names_the_extra() -> None:
    error = ModuleNotFoundError("No module named 'torch'", name="torch")
    found = error_of(error, "/project/net.py", "/project")
    assert found["code"] == "TP409"
    assert "pip install 'topos-inspector[torch]'" in found["message"]


def test_a_file_without_torch_is_loaded_without_it() -> None:
    before = "torch" in sys.modules
    with loading("import numpy as np\n# torch is only mentioned\n"):
        pass
    assert ("torch" in sys.modules) == before
