"""Conventions, shapes, memory and aliases."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import topos_core as tp
from tests.conformance.fusion.cases import at_result, case, inputs_of, planned, runs_as_recorded, same_bits, taken
from tests.core.matching.chains import random_chain
from topos_core import nn
from topos_core.errors import ToposError
from topos_core.matching.catalog import patterns
from topos_core.matching.certificate import certify
from topos_core.matching.context import Context
from topos_core.matching.search import search
from topos_core.matching.view import read


@case(86)
@pytest.mark.parametrize("keeps_old", [True, False])
def test_the_running_statistics_are_ordinary_ops_in_either_convention(keeps_old):
    def program(x, running):
        mean, variance = x.mean(0), x.var(0)
        old, new = (0.9, 0.1) if keeps_old else (0.1, 0.9)
        return (x - mean) / np.sqrt(variance + 1e-5), running * old + mean * new

    plan = planned(program, {"x": "f32[32,8]", "running": "f32[8]"})
    found = taken(plan, "batch_norm_training").match
    assert plan.tape.results[1] not in found.interior | found.produced
    runs_as_recorded(plan)


@case(89)
def test_elements_beyond_the_reach_of_32_bits_are_told_apart():
    def program(x):
        far = x[-8:, 65536 - 8 :]
        return sliding_window_view(far, (2, 2), axis=(0, 1)).max((-2, -1))

    tape = tp.trace(program, x="f32[131072,65536]")
    assert tape.type_of(tape.inputs[0]).size > 2**32
    (match,) = [one for one in search(tape, patterns().values()).matches if one.pattern == "window_reduce"]
    assert match.bindings["x"] == tape.inputs[0]
    assert certify(tape, match).answer == "true"
    low = [(window.low, window.high) for window in match.facts.windows]
    assert low == [(-131064, 0), (-65528, 0)]


@case(91)
@pytest.mark.parametrize("extent", [0, 1, 2])
def test_windows_that_do_not_fit_are_refused_where_they_are_written(extent):
    def program(x):
        return sliding_window_view(x, 3, axis=1).max(-1)

    with pytest.raises(ToposError) as refused:
        tp.trace(program, x=f"f32[2,{extent}]")
    assert refused.value.span is not None
    assert refused.value.span.path.endswith("test_conventions.py")


@case(93)
def test_a_fused_run_writes_into_no_buffer_that_somebody_still_reads():
    def program(x, w):
        y = nn.relu(nn.conv2d(x, w, padding=1))
        x += y
        return x, y, nn.softmax(x)

    plan = planned(program, {"x": "f32[1,3,6,6]", "w": "f32[3,3,3,3]"})
    inputs = inputs_of(plan.tape)
    kept = [array.copy() for array in inputs]
    plan.run(*inputs)
    assert all(same_bits(a, b) for a, b in zip(inputs, kept, strict=True))
    runs_as_recorded(plan)


@case(94)
def test_merged_views_of_random_chains_read_what_numpy_reads():
    merged = 0
    for seed in range(70_000, 70_400):
        build, value, arrays = random_chain(seed, 6)
        tape = build.tape(value)
        context = Context(tape)
        for inner, array in arrays.items():
            view = context.view(inner)
            np.testing.assert_array_equal(read(view, arrays[view.base]), array, err_msg=f"seed {seed}, %{inner}")
            merged += view.base != inner
    assert merged > 800


@case(97)
def test_only_extents_that_a_kernel_needs_take_part_in_what_is_recognised():
    def program(x):
        return nn.layer_norm(x)

    folds = {
        at_result(planned(program, {"x": f"f32[{rows},16]"}), "layer_norm").facts.extents["n"] for rows in (1, 3, 64)
    }
    assert folds == {16}
