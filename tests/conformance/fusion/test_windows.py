"""Geometry of windows."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tests.conformance.fusion.cases import at_result, case, planned, recorded, run, runs_as_recorded
from topos_core import nn


@case(80)
def test_a_window_that_lies_outside_of_the_image_is_a_row_of_its_fill():
    def program(x):
        padded = np.pad(x, ((0, 0), (0, 0), (0, 2), (0, 1)), constant_values=-np.inf)
        return padded[:, :, ::2, ::2]

    def pooled(x):
        padded = np.pad(x, ((0, 0), (0, 0), (0, 4), (0, 0)), constant_values=-np.inf)
        return sliding_window_view(padded, (2, 2), axis=(2, 3))[:, :, ::2, ::2].max((-2, -1))

    for function in (program, pooled):
        plan = planned(function, {"x": "f32[1,1,6,8]"})
        got = run(plan)[0]
        assert np.isneginf(got[0, 0, -1]).all()
        np.testing.assert_array_equal(got, recorded(plan)[0])


@case(82)
def test_a_window_of_no_real_elements_is_the_recorded_zero_by_zero():
    def program(x, ones):
        def total(image):
            padded = np.pad(image, ((0, 0), (0, 0), (2, 2), (2, 2)))
            return sliding_window_view(padded, (2, 2), axis=(2, 3))[:, :, ::2, ::2].sum((-2, -1))

        return total(x) / total(ones)

    plan = planned(program, {"x": "f32[1,1,4,4]", "ones": "f32[1,1,4,4]"})
    ones = np.ones((1, 1, 4, 4))
    got = run(plan, ones=ones)[0]
    assert np.isnan(got[0, 0, 0, 0])
    np.testing.assert_allclose(got, recorded(plan, ones=ones)[0], rtol=1e-5)


@case(83)
def test_an_average_over_asymmetric_pads_carries_both_ends_and_a_divisor_by_position():
    def counted(x):
        padded = np.pad(x, ((0, 0), (0, 0), (1, 2), (0, 1)))
        return sliding_window_view(padded, (3, 2), axis=(2, 3)).mean((-2, -1))

    def left_out(x):
        return nn.avg_pool(x, (3, 2), 1, ((1, 2), (0, 1)), count_include_pad=False)

    def by_position(x, count):
        padded = np.pad(x, ((0, 0), (0, 0), (1, 2), (0, 1)))
        return sliding_window_view(padded, (3, 2), axis=(2, 3)).sum((-2, -1)) / count

    plan = planned(counted, {"x": "f32[1,2,6,7]"})
    facts = at_result(plan, "window_reduce").facts
    assert [(window.low, window.high) for window in facts.windows[2:]] == [(1, 2), (0, 1)]
    assert facts.scale == 1 / 6
    runs_as_recorded(plan)
    plan = planned(left_out, {"x": "f32[1,2,6,7]"})
    facts = at_result(plan, "window_reduce").facts
    assert [(window.low, window.high) for window in facts.windows[2:]] == [(1, 2), (0, 1)]
    assert facts.counted == ((0, 0),) * 4
    runs_as_recorded(plan)
    other = planned(by_position, {"x": "f32[1,2,6,7]", "count": "f32[7,7]"})
    assert all(match.root != other.tape.results[0] for match in other.planner.pool.matches)
    runs_as_recorded(other)
