"""IREE as a second compiler for what the reference interpreter does not run: batch norms."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tests.core.emission.programs import batch_norm, convolution, window_reduce
from tests.core.emission.test_raises import CONVOLUTIONS, NORMS, POOLS, check
from topos_core.emission.backend import BackendFailure, run_iree
from topos_core.errors import ConfigurationError


def iree():
    pytest.importorskip("iree.compiler", reason="needs iree-base-compiler")
    pytest.importorskip("iree.runtime", reason="needs iree-base-runtime")


@pytest.mark.parametrize(
    ("record", "cases"),
    [(batch_norm, NORMS), (convolution, CONVOLUTIONS), (window_reduce, POOLS)],
    ids=lambda v: str(v)[:24],
)
def test_raises_agree_on_iree(record, cases):
    iree()
    check(record, cases, (run_iree,), tolerance=2e-5)


def test_text_that_iree_refuses_is_told():
    iree()
    with pytest.raises(BackendFailure, match=r"stablehlo\.nothing"):
        run_iree("module @topos { func.func @main() { stablehlo.nothing } }", [])


def test_a_missing_iree_names_its_packages(monkeypatch):
    monkeypatch.setitem(sys.modules, "iree.compiler", None)
    with pytest.raises(ConfigurationError, match="pip install iree-base-compiler iree-base-runtime") as failure:
        run_iree("module {}", [np.zeros(1)])
    assert failure.value.code == "TP506"
