"""Every example, emitted for every dialect with its observed values, computes on XLA what was recorded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.core.matching.check import inputs_of
from topos_core.api import load, plan
from topos_core.emission.backend import run_xla
from topos_core.emission.module import emitted_results
from topos_core.run.interpreter import bind, evaluate

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMED = {
    "seed_convolution.py:main": ["convolution", "reduce_window"],
    "digits_cnn.py:classify": ["convolution", "reduce_window"],
    "residual_block.py:block": ["convolution", "batch_norm_inference"],
    "observed.py:hidden_observed": ["dot_general"],
    "observed.py:statistics_observed": ["batch_norm_training"],
    "spellings.py:library": ["convolution"],
    "spellings.py:shifted_sum": ["convolution"],
    "spellings.py:tables": ["convolution"],
}


@pytest.mark.parametrize("target", NAMED)
def test_an_example_computes_the_same_on_xla(target):
    tape = load(str(EXAMPLES / target))
    chosen = plan(tape, consumer="stablehlo", cost="always", machine="reference")
    text = chosen.emit_stablehlo()
    assert all(f"stablehlo.{name}" in text for name in NAMED[target])
    inputs = inputs_of(tape, 0)
    results = emitted_results(tape, chosen.data.observed)
    values = evaluate(tape, bind(tape, inputs), results)
    arguments = [*inputs, *(tape.defaults[value] for value in tape.parameters)]
    for value, got in zip(results, run_xla(text, arguments), strict=True):
        want = values[value]
        scale = max(1.0, float(np.abs(want).max()))
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * scale, err_msg=f"%{value}")


def test_a_training_norm_keeps_its_recorded_formula_for_xla():
    tape = load(str(EXAMPLES / "observed.py:statistics_observed"))
    text = plan(tape, consumer="stablehlo", dialect="xla", machine="reference").emit_stablehlo()
    assert "batch_norm" not in text


def test_observing_an_interior_keeps_the_recorded_ops():
    tape = load(str(EXAMPLES / "observed.py:hidden_observed"))
    text = plan(tape, consumer="stablehlo", machine="reference").emit_stablehlo()
    assert "stablehlo.convolution(" not in text
