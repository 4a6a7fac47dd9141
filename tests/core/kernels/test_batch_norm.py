from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.kernels.check import close, run
from tests.core.kernels.convolutions import layout
from tests.support.tapes import TapeBuilder
from topos_core.cost.profiles import machine as profile
from topos_core.kernels.home.manifest import Home
from topos_core.kernels.kernel import Decline
from topos_core.matching.facts import NormFacts
from topos_core.matching.match import Match
from topos_core.plan.pricing import Before, offered_seconds, price_after
from topos_core.plan.request import Request
from topos_core.tape.type import numpy_dtype

EPSILON = 1e-5


def match_of(shape, roles, dtype, pattern, vectors, result=None):
    channels = int(np.prod([e for e, r in zip(shape, roles, strict=True) if r == "c"]))
    image = layout(shape, roles)
    facts = NormFacts(image, result or image, channels, int(np.prod(shape)) // max(channels, 1), EPSILON)
    builder = TapeBuilder()
    bindings = {"x": builder.input("x", f"{dtype}[{','.join(map(str, shape))}]")}
    for name in vectors:
        bindings[name] = builder.input(name, f"{dtype}[{channels}]")
    root = builder.input("result", f"{dtype}[{','.join(map(str, facts.result.shape))}]")
    return builder.tape(root), Match(pattern, root, bindings, frozenset(), frozenset({root}), {}, facts)


def columns(x, roles):
    """Gives x as f64 [channels, elements]."""
    order = [k for k, r in enumerate(roles) if r == "c"] + [k for k, r in enumerate(roles) if r == "n"]
    channels = int(np.prod([x.shape[k] for k, r in enumerate(roles) if r == "c"]))
    return x.astype(np.float64).transpose(order).reshape(channels, -1), order


def check_training(shape, roles, dtype="f32", affine=True, mean=0.0, spread=1.0, threads=1, bound=None):
    vectors = ("scale", "shift") if affine else ()
    tape, match = match_of(shape, roles, dtype, "batch_norm_training", vectors)
    random = np.random.default_rng(0)
    kind = numpy_dtype(dtype)
    arrays = {"x": (random.standard_normal(shape) * spread + mean).astype(kind)}
    for name in vectors:
        arrays[name] = random.standard_normal(match.facts.channels).astype(kind)
    named = {name: np.full((match.facts.channels, 1), np.nan, kind) for name in ("mean", "variance")}
    got = run(tape, match, arrays, threads=threads, named=named)
    x, order = columns(arrays["x"], roles)
    exact_mean, exact_variance = x.mean(1), x.var(1)
    exact = (x - exact_mean[:, None]) / np.sqrt(exact_variance + EPSILON)[:, None]
    if affine:
        exact = exact * arrays["scale"].astype(np.float64)[:, None] + arrays["shift"].astype(np.float64)[:, None]
    moved = got.transpose(order).reshape(exact.shape)
    close(moved, exact, dtype, bound)
    close(named["mean"][:, 0], exact_mean, dtype, max(abs(mean), spread))
    close(named["variance"][:, 0], exact_variance, dtype)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.sampled_from("ccn")), min_size=1, max_size=4),
    st.integers(1, 40),
    st.booleans(),
)
def test_any_order_of_channel_and_reduced_axes(axes, last, affine):
    shape, roles = [e for e, _ in axes] + [last], [r for _, r in axes] + ["n"]
    check_training(tuple(shape), roles, affine=affine)


@pytest.mark.parametrize("inner", [1, 2, 15, 16, 17, 49, 8191, 8193])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_planes_around_the_thresholds(inner, dtype):
    check_training((3, 5, inner), "ncn", dtype)


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 200])
def test_row_blocks_around_their_size(rows):
    check_training((rows, 37), "nc")


@pytest.mark.parametrize("shape", [(64, 3, 40), (4000, 5)])
@pytest.mark.parametrize(("mean", "spread"), [(1e3, 1e-1), (1e5, 1.0), (-1e4, 1e-2)])
def test_a_large_mean_with_a_small_spread_keeps_its_digits(shape, mean, spread):
    check_training(shape, "ncn" if len(shape) == 3 else "nc", mean=mean, spread=spread, bound=4.0)


@pytest.mark.parametrize("threads", [2, 4])
def test_threads_agree(threads):
    check_training((5, 7, 40), "ncn", threads=threads)
    check_training((300, 7), "nc", threads=threads)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_short_floats_are_computed_in_f32(dtype):
    check_training((4, 3, 20), "ncn", dtype)


@pytest.mark.parametrize("roles", ["ncn", "nc"])
def test_nan_and_infinity_stay_in_their_channel(roles):
    shape = (6, 4, 20) if roles == "ncn" else (120, 4)
    tape, match = match_of(shape, roles, "f32", "batch_norm_training", ())
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x[2, 1] = np.nan
    x[3, 2] = np.inf
    got = run(tape, match, {"x": x}, named={"mean": np.zeros(4, np.float32)})
    bad = np.isnan(got).all(axis=tuple(k for k, r in enumerate(roles) if r == "n"))
    np.testing.assert_array_equal(bad, [False, True, True, False])
    assert np.isfinite(got[:, [0, 3]]).all()


@pytest.mark.parametrize("factor", [np.inf, -np.inf])
@pytest.mark.parametrize("roles", ["ncn", "nc"])
def test_an_infinite_scale_leaves_the_signs_of_deviations(roles, factor):
    shape = (6, 4, 20) if roles == "ncn" else (120, 4)
    tape, match = match_of(shape, roles, "f32", "batch_norm_training", ("scale", "shift"))
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    scale, shift = np.array([1, factor, 2, 3], np.float32), np.arange(4, dtype=np.float32)
    got = run(tape, match, {"x": x, "scale": scale, "shift": shift})
    axes = tuple(k for k, r in enumerate(roles) if r == "n")
    wide = x.astype(np.float64)
    exact = (wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + EPSILON)
    column = (4, 1) if roles == "ncn" else (4,)
    close(got, exact * scale.reshape(column) + shift.reshape(column), "f32")


def test_the_statistics_of_nothing_are_nan():
    tape, match = match_of((0, 3), "nc", "f32", "batch_norm_training", ())
    mean = np.zeros(3, np.float32)
    assert run(tape, match, {"x": np.zeros((0, 3), np.float32)}, named={"mean": mean}).shape == (0, 3)
    assert np.isnan(mean).all()


def test_a_result_in_another_layout_and_strided_images():
    shape = (3, 4, 20)
    tape, match = match_of(shape, "ncn", "f32", "batch_norm_training", (), layout((4, 3, 20), "cnn"))
    x = np.random.default_rng(0).standard_normal((20, 4, 6)).astype(np.float32).transpose(2, 1, 0)[::2]
    wide = x.astype(np.float64)
    exact = (wide - wide.mean((0, 2), keepdims=True)) / np.sqrt(wide.var((0, 2), keepdims=True) + EPSILON)
    close(run(tape, match, {"x": x}), exact.transpose(1, 0, 2), "f32")


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("shape", "roles"), [((2, 5, 21), "ncn"), ((2, 5, 3), "ncn"), ((70, 5), "nc"), ((5, 40), "cn")]
)
@pytest.mark.parametrize("vectors", [("mean", "variance"), ("mean", "variance", "scale", "shift")])
def test_inference_with_known_and_unknown_statistics(known, shape, roles, vectors):
    tape, match = match_of(shape, roles, "f32", "batch_norm_inference", vectors)
    random = np.random.default_rng(0)
    arrays = {name: random.random(5).astype(np.float32) + 0.5 for name in vectors}
    arrays["x"] = random.standard_normal(shape).astype(np.float32)
    constants = {match.bindings[name]: arrays[name] for name in vectors} if known else {}
    got = run(tape, match, arrays, constants)
    x, order = columns(arrays["x"], roles)
    exact = (x - arrays["mean"][:, None]) / np.sqrt(arrays["variance"].astype(np.float64) + EPSILON)[:, None]
    if "scale" in vectors:
        exact = exact * arrays["scale"][:, None] + arrays["shift"][:, None]
    close(got.transpose(order).reshape(exact.shape), exact, "f32")


@pytest.mark.parametrize("pattern", ["batch_norm_training", "batch_norm_inference"])
def test_exact_is_declined_with_the_measured_error(pattern):
    tape, match = match_of((4, 3), "nc", "f32", pattern, ("mean", "variance"))
    answer = Home().offer(tape, match, Request(fidelity="exact"))
    assert isinstance(answer, Decline)
    assert answer.code == "TP205"
    assert answer.numbers["relative_error"] > 0


@pytest.mark.parametrize(
    ("pattern", "shape", "roles", "calls"),
    [
        ("batch_norm_training", (4, 4), "nc", 4.5),
        ("batch_norm_training", (4, 3, 5), "ncn", 4.5),
        ("batch_norm_training", (8, 32, 16, 16), "ncnn", 2.5),
        ("batch_norm_inference", (4, 4), "nc", 2.5),
    ],
)
def test_what_starting_a_kernel_costs_is_in_its_price(pattern, shape, roles, calls):
    tape, match = match_of(shape, roles, "f32", pattern, ("mean", "variance"))
    offer = Home().offer(tape, match, Request())
    assert offer.calls == calls
    before = Before(offer.work, 9, 30e-6, 0)
    machine = profile("reference")
    seconds = offered_seconds(offer, "f32", machine)
    figures = price_after(offer, before, seconds)
    once = price_after(offer, before, offered_seconds(offer._replace(calls=1.0), "f32", machine))
    extra = figures["seconds_after"].value - once["seconds_after"].value
    assert extra == pytest.approx((calls - 1) * machine.call_seconds)
    assert figures["benefit"].value == pytest.approx(30e-6 - figures["seconds_after"].value)


def test_an_inference_of_known_statistics_starts_sooner():
    tape, match = match_of((4, 3), "nc", "f32", "batch_norm_inference", ("mean", "variance"))
    ops = [
        op._replace(name="parameter") if value in match.bindings.values() else op for value, op in enumerate(tape.ops)
    ]
    ops[match.bindings["x"]] = tape.ops[match.bindings["x"]]
    assert Home().offer(replace(tape, ops=tuple(ops)), match, Request()).calls == 1.5
