import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import topos_core as tp
from tests.core.kernels.check import close, run
from tests.core.kernels.convolutions import convolutions, facts, formula, match_of
from topos_core import nn
from topos_core.kernels.convolution import phases
from topos_core.kernels.convolution.geometry import problem
from topos_core.kernels.convolution.phases import least_flops, phases_of
from topos_core.matching.facts import Window


@pytest.fixture
def always(monkeypatch):
    """Takes phases wherever zeros are inserted, however small."""
    monkeypatch.setattr(phases, "LAUNCH_FLOPS", -(1 << 40))


def check(described, dtype="f32", threads=1, spoil=None):
    random = np.random.default_rng(0)
    kind = np.float64 if dtype == "f64" else np.float32
    x = random.standard_normal(described.image.shape).astype(kind)
    kernel = random.standard_normal(described.kernel.shape).astype(kind)
    if spoil is not None:
        spoil(x, kernel)
    exact = formula(x, kernel, described.windows)
    finite = exact[np.isfinite(exact)]
    scale = float(np.sqrt(described.in_channels * np.prod([w.size for w in described.windows])))
    scale += float(np.abs(finite).max(initial=0.0))
    tape, match = match_of(described, dtype)
    close(run(tape, match, {"x": x, "kernel": kernel}, threads=threads), exact, dtype, scale)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(convolutions().filter(lambda d: any(w.base_dilation > 1 for w in d.windows)), st.sampled_from(("f32", "f64")))
def test_any_convolution_with_inserted_zeros_gives_the_formula(always, described, dtype):
    assert phases_of(problem(described))
    check(described, dtype)


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize(("size", "stride", "low"), [(4, 2, 2), (3, 2, 1), (2, 2, 1), (2, 3, 0), (5, 3, 4), (1, 2, 0)])
def test_upsampling_by_a_stride(always, size, stride, low, threads):
    window = Window(size, base_dilation=stride, low=low, high=low, reversed=True)
    check(facts(2, 1, 5, 9, (13, 11), (window, window)), threads=threads)


def test_what_is_not_finite_in_the_image_reaches_what_reads_it(always):
    def spoil(x, kernel):
        x[0, 0, 4, 7], x[1, 1, 0, 0] = np.nan, np.inf

    window = Window(4, base_dilation=2, low=2, high=2)
    check(facts(2, 1, 2, 9, (9, 17), (window, window)), spoil=spoil)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_a_kernel_that_is_not_finite_meets_the_inserted_zeros_too(always, value):
    def spoil(x, kernel):
        kernel[0, 3, 1, 2, 1] = value

    window = Window(4, base_dilation=2, low=2, high=2)
    check(facts(1, 1, 2, 9, (9, 17), (window, window)), spoil=spoil)


@pytest.mark.parametrize("known", [True, False])
def test_the_epilogue_reads_its_residual_where_each_phase_writes(known):
    random = np.random.default_rng(1)
    weight = (random.standard_normal((48, 24, 4, 4)) * 0.05).astype(np.float32)
    x = random.standard_normal((1, 48, 15, 14)).astype(np.float32)
    other = random.standard_normal((1, 24, 30, 28)).astype(np.float32)

    def up(x, other, w):
        return nn.relu(nn.conv_transpose2d(x, w, stride=2, padding=1) + other)

    if known:
        tape = tp.trace(lambda x, other: up(x, other, weight), x="f32[1,48,15,14]", other="f32[1,24,30,28]")
        given = (x, other)
    else:
        tape = tp.trace(up, x="f32[1,48,15,14]", other="f32[1,24,30,28]", w="f32[48,24,4,4]")
        given = (x, other, weight)
    plan = tp.plan(tape, cost="always")
    assert [decision.match.pattern for decision in plan.taken] == ["conv_bn_activation"]
    assert "4 direct convolutions" in plan.taken[0].offer.kernel
    exact = plan.run(*given, threads=1)
    np.testing.assert_allclose(exact, np.maximum(_upsampled(x, weight) + other, 0), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(plan.run(*given, threads=2), exact)


def test_phases_are_taken_where_they_save_more_than_their_launches():
    window = Window(4, base_dilation=2, low=2, high=2)
    flops = {extent: problem(facts(1, 1, 8, 8, (extent, extent), (window, window))).flops for extent in (8, 40)}
    for extent, whole in flops.items():
        described = problem(facts(1, 1, 8, 8, (extent, extent), (window, window)))
        saves = whole * 3 / 4 >= 4 * phases.LAUNCH_FLOPS
        assert bool(phases_of(described)) == saves
        assert least_flops(described) == pytest.approx(whole / 4 if saves else whole, rel=0.1)
    assert min(flops.values()) < 4 * phases.LAUNCH_FLOPS < max(flops.values()) / 2


def _upsampled(x, weight):
    """Adds every input element times its window to where the window lies."""
    batch, _, height, width = x.shape
    total = np.zeros((batch, weight.shape[1], 2 * height + 2, 2 * width + 2))
    for i in range(4):
        for j in range(4):
            total[:, :, i : i + 2 * height : 2, j : j + 2 * width : 2] += np.einsum(
                "bchw,co->bohw", x.astype(np.float64), weight[:, :, i, j]
            )
    return total[:, :, 1:-1, 1:-1]
