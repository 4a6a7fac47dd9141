"""A framework that is missing is told with the extra that installs it; files without one load nothing."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import topos_core as tp
from topos_core.importers.imported import loading, record
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


def shifted(x: Any) -> Any:
    """Anyone's: an addition of whatever it is given."""
    return x + 1


@pytest.mark.parametrize("framework", ["jax", "torch"])
def test_a_function_is_recorded_by_whom_its_mark_names(framework: str) -> None:
    pytest.importorskip(framework)
    seen = []

    def spying(x: Any) -> Any:
        seen.append(type(x).__module__.partition(".")[0])
        return shifted(x)

    marked = tp.model(x="f32[2]", framework=framework)(spying)
    assert [op.name for op in record(marked).ops][-1] == "add"
    assert framework in seen
    seen.clear()
    record(spying, ("f32[2]",), framework="numpy")
    assert seen == ["topos_core"]


def test_a_framework_that_is_none_is_refused_where_it_is_written() -> None:
    with pytest.raises(tp.ConfigurationError, match="no framework is called 'jx'; write one of numpy, jax, torch"):
        tp.model(x="f32[2]", framework="jx")
