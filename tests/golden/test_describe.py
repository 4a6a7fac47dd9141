"""What people read of the examples' plans. `make golden` writes the texts anew; read the diff like code.

Predicted times and measured errors are left out: a better estimate or kernel is no change of what is told.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

import topos_core as tp

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "describe"

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "seed_convolution": ("examples/seed_convolution.py:main", {}),
    "seed_convolution_stablehlo": ("examples/seed_convolution.py:main", {"consumer": "stablehlo"}),
    "seed_convolution_exact": ("examples/seed_convolution.py:main", {"fidelity": "exact"}),
    "hidden_observed": ("examples/observed.py:hidden_observed", {}),
    "statistics_observed": ("examples/observed.py:statistics_observed", {}),
    "statistics_observed_xla": (
        "examples/observed.py:statistics_observed",
        {"consumer": "stablehlo", "dialect": "xla"},
    ),
    "residual_block": ("examples/residual_block.py:block", {}),
}


@pytest.mark.parametrize("name", CASES)
def test_an_examples_plan_reads_as_it_should(name: str) -> None:
    target, options = CASES[name]
    plan = tp.plan(tp.load(f"{ROOT}/{target}"), machine="reference", **options)
    text = re.sub(r"\d[\d.e-]* (?:s|ms|us|ns)\b", "TIME", plan.describe())
    text = re.sub(r"error against float64 at most .*", "error against float64 at most ...", text)
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("TOPOS_GOLDEN") == "write":
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
