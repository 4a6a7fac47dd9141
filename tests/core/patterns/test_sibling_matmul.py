from __future__ import annotations

import numpy as np

import topos_core as tp
from tests.core.patterns.check import agrees, check_not, searched

SPECS = {"x": "f32[512,768]", "q": "f32[768,4]", "k": "f32[768,4]", "v": "f32[768,4]"}


def projections(x, q, k, v):
    return x @ q, x @ k, x @ v


def found(function, specs):
    tape, pool = searched(function, specs)
    matches = [match for match in pool.matches if match.pattern == "sibling_matmul"]
    for match in matches:
        agrees(tape, match)
    return [match.facts.columns for match in matches]


def test_projections_of_batches_are_products_of_rows():
    specs = {"x": "f32[2,5,6]", "a": "f32[6,3]", "b": "f32[6,4]"}
    assert found(lambda x, a, b: (x @ a, x @ b), specs) == [(3, 4)]


def test_weights_may_be_transposed_and_read_twice():
    assert found(lambda x, a: (x @ a.T, x @ a.T), {"x": "f32[5,6]", "a": "f32[3,6]"}) == [(3, 3)]


def test_a_weight_that_waits_for_a_sibling_is_none():
    def program(x, a):
        y = x @ a
        return y, x @ np.tanh(y)

    check_not("sibling_matmul", program, {"x": "f32[6,6]", "a": "f32[6,6]"}, None)


def test_another_view_of_the_left_operand_is_another_operand():
    check_not("sibling_matmul", lambda x, a: (x @ a, x.T @ a), {"x": "f32[6,6]", "a": "f32[6,6]"}, None)


def test_narrow_products_run_as_one_with_known_and_with_given_weights():
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((512, 768), (768, 4), (768, 4), (768, 4))]
    plan = tp.plan(tp.trace(projections, **SPECS), machine="reference")
    assert [d.match.pattern for d in plan.taken] == ["sibling_matmul"]
    pinned = tp.plan(tp.trace(lambda x: projections(x, *arrays[1:]), x=SPECS["x"]), machine="reference")
    assert [d.match.pattern for d in pinned.taken] == ["sibling_matmul"]
    want = [array.astype(np.float64) for array in projections(*(array.astype(np.float64) for array in arrays))]
    for results in (plan.run(*arrays), pinned.run(arrays[0])):
        for got, exact in zip(results, want, strict=True):
            np.testing.assert_allclose(got, exact, atol=1e-3)


def test_one_row_runs_as_recorded_and_both_times_are_told():
    plan = tp.plan(tp.trace(projections, x="f32[1,768]", **dict.fromkeys("qkv", "f32[768,768]")), machine="reference")
    (decision,) = (d for d in plan.data.decisions if d.match.pattern == "sibling_matmul")
    assert (decision.verdict, decision.code) == ("declined", "TP202")
    assert decision.numbers["seconds_after"].value > decision.numbers["seconds_before"].value
