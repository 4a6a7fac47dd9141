"""Observing any one value of an example changes no other result, and gives that value itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import topos_core as tp
from topos_core.run.interpreter import interpret
from topos_core.tape.tape import Tape
from topos_core.tape.type import numpy_dtype

EXAMPLES = Path(__file__).parents[2] / "examples"
TARGETS = (
    "seed_convolution.py:main",
    "observed.py:hidden_observed",
    "observed.py:statistics_observed",
    "residual_block.py:block",
    "spellings.py:library",
)
EVERY = (
    *TARGETS,
    *(f"spellings.py:{name}" for name in ("windows_einsum", "windows_tensordot", "slices_stacked")),
    *(f"spellings.py:{name}" for name in ("shifted_sum", "strided", "tables")),
    "digits_cnn.py:classify",
    "transformer_block.py:block",
)


def inputs_of(tape: Tape) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [
        (rng.standard_normal(kind.shape) ** 2 + 0.1).astype(numpy_dtype(kind.dtype))
        for kind in (tape.type_of(value) for value in tape.inputs)
    ]


@pytest.mark.parametrize("target", EVERY)
def test_observing_any_value_changes_no_bit_of_any_result_under_exact(target: str) -> None:
    tape = tp.load(f"{EXAMPLES}/{target}")
    inputs = inputs_of(tape)
    recorded = interpret(tape, inputs, keep=True)
    base = tp.plan(tape, fidelity="exact", machine="reference")
    for value, op in enumerate(tape.ops):
        if op.name == "constant":
            continue
        plan = base.what_if(observe=[value])
        result, observed = plan.run(*inputs, observed=True)
        leaves = list(result) if isinstance(result, tuple) else [result]
        for leaf, root in zip(leaves, tape.results, strict=True):
            assert np.array_equal(leaf, recorded[root], equal_nan=True), f"observing %{value} changed the result"
        seen = [array for array in observed.values() if array.shape == op.type.shape]
        if value not in tape.results:
            assert any(np.array_equal(array, recorded[value]) for array in seen), f"%{value} ({op.name}) is not given"


@pytest.mark.parametrize("target", TARGETS)
def test_every_observed_value_of_a_fast_plan_is_the_recorded_one(target: str) -> None:
    tape = tp.load(f"{EXAMPLES}/{target}")
    inputs = inputs_of(tape)
    recorded = interpret(tape, inputs, keep=True)
    base = tp.plan(tape, machine="reference")
    verdicts = set()
    for value in range(len(tape.ops)):
        plan = base.what_if(observe=[value])
        verdicts |= {decision.verdict for decision in plan.data.decisions}
        for seen, array in zip(plan.data.observed, plan.run(*inputs, observed=True)[1].values(), strict=True):
            np.testing.assert_allclose(array, recorded[seen], rtol=1e-3, atol=1e-3)
    assert "blocked" in verdicts
