import random

import numpy as np
import pytest

from benchmarks import measure_envelopes
from topos_core.kernels.conditioning import condition, conditioned, inside
from topos_core.kernels.drawn import EXTENTS, FOUND, drawn, found
from topos_core.kernels.envelope_table import RELATIVE
from topos_core.kernels.probes import Measured, Probe, matched, measure
from topos_core.matching.catalog import patterns


def probe(pattern, function, kind="normal", dtype="f32", **specs):
    known = matched(pattern, dtype, (function, specs))
    assert known is not None
    return Probe(*known, kind)


def normed(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16"])
def test_an_elementwise_formula_is_well_conditioned(dtype):
    assert condition(probe("silu", lambda x: x / (1 + np.exp(-x)), dtype=dtype, x="f32[3,7]")) == 1.0


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_the_spread_of_values_far_from_zero_has_lost_its_digits(dtype):
    assert condition(probe("layer_norm", normed, dtype=dtype, x="f32[3,64]")) == 1.0
    assert condition(probe("layer_norm", normed, "large mean", dtype, x="f32[3,64]")) > 1e3


def test_a_product_is_well_conditioned_and_a_sum_that_cancels_is_not():
    product = probe("linear", lambda x, w, b: x @ w + b, x="f32[64,64]", w="f32[64,64]", b="f32[64]")
    assert condition(product) == 1.0
    losses = {each.match.id: condition(each) for each in found("cross_entropy", "f32") if each.kind == "repeated"}
    assert max(losses.values()) > 10


def test_an_envelope_grows_with_the_condition_and_no_further():
    far = probe("layer_norm", normed, "large mean", x="f32[3,64]")
    factor = condition(far)
    assert inside(far, Measured(0.9 * factor * 1e-7, True), 1e-7)
    assert not inside(far, Measured(1.1 * factor * 1e-7, True), 1e-7)
    near = probe("layer_norm", normed, x="f32[3,64]")
    assert inside(near, Measured(1e-7, True), 1e-7)
    assert not inside(near, Measured(1.1e-7, True), 1e-7)
    assert conditioned(far, Measured(factor, True)) == pytest.approx(1.0)
    assert conditioned(far, Measured(1.0, True), least=2.0) == 1.0


@pytest.mark.parametrize("pattern", sorted(FOUND))
def test_what_the_law_once_found_is_inside(pattern):
    for dtype, relative in RELATIVE[pattern].items():
        for each in found(pattern, dtype):
            measured = measure(each)
            assert inside(each, measured, relative), (dtype, each.kind, measured, condition(each))
            assert measured.specials, (dtype, each.kind)


def test_every_input_that_was_found_is_one_of_an_example():
    for pattern, inputs in FOUND.items():
        names = [example.specs.keys() for example in patterns()[pattern].examples]
        assert all(specs.keys() in names for specs in inputs)
        assert any(found(pattern, "f32"))


def test_the_shipped_errors_are_measured_on_what_the_law_draws(monkeypatch):
    monkeypatch.setattr(measure_envelopes, "DRAWS", 12)
    measured = measure_envelopes.measured(["silu"])
    assert measured["silu"].keys() == RELATIVE["silu"].keys()
    assert all(error <= RELATIVE["silu"][dtype] for dtype, error in measured["silu"].items())
    choose = random.Random("silu").choice
    made = [each for each in (drawn("silu", ["f32", "f64"], choose) for _ in range(12)) if each is not None]
    assert len({tuple(each.specs.items()) for each in made}) > 4
    assert {int(n) for each in made for spec in each.specs.values() for n in spec[4:-1].split(",")} & set(EXTENTS)
