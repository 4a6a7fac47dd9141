"""NaN and infinities stand where the recorded ops put them, for every spelling of an activation and whatever takes it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import topos_core as tp
from tests.core.patterns.check import match_at_result
from tests.laws.activations import OVERFLOWING, ROWS, SOFTMAXES, SPELLINGS, VALUES, placed
from topos_core.kernels.home.manifest import Home, prepare
from topos_core.kernels.kernel import Offer
from topos_core.matching.activation import ROOTS, read_activation
from topos_core.matching.catalog import patterns
from topos_core.matching.formula import ACTIVATIONS
from topos_core.matching.search import search
from topos_core.plan.request import Request
from topos_core.recording.trace import trace
from topos_core.run.interpreter import interpret

CHOICES = [name for name in ACTIVATIONS if name.startswith("relu_")]


def named(function, dtype="f32"):
    tape = trace(function, x=f"{dtype}[{len(VALUES)}]")
    found = read_activation(tape, tape.results[0], lambda value: value == tape.inputs[0])
    return tape, None if found is None else found[0]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_an_activation_is_what_its_name_says(spelling):
    tape, name = named(SPELLINGS[spelling])
    if name is None:
        return
    x = np.array(VALUES, np.float32)
    with np.errstate(all="ignore"):
        (want,) = interpret(tape, [x])
        got = ACTIVATIONS[name](x)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))
    if name in CHOICES:
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def test_every_activation_has_a_spelling_here():
    found = {named(function)[1] for function in SPELLINGS.values()}
    assert found >= ACTIVATIONS.keys() - {"none"}


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("x > 0", "relu_where_positive"),
        ("0 < x", "relu_where_positive"),
        ("not x > 0", "relu_where_positive"),
        ("x >= 0", "relu_where_not_negative"),
        ("0 <= x", "relu_where_not_negative"),
        ("x < 0", "relu_unless_negative"),
        ("0 > x", "relu_unless_negative"),
        ("not x < 0", "relu_unless_negative"),
        ("x <= 0", "relu"),
        ("0 >= x", "relu"),
        ("maximum with -0", None),
        ("x > -0", None),
        ("times a mask", None),
        ("half of x + |x|", None),
        ("leaky", None),
        ("absolute by choice", None),
        ("6 unless less", None),
        ("6 where greater", "relu6"),
        ("minimum of a choice", None),
        ("hardswish by choice", "hardswish"),
        ("hardswish and nothing", None),
        ("relu of a difference", None),
        ("sigmoid of exp", "sigmoid_of_exp"),
        ("sigmoid by two branches", "sigmoid"),
        ("sigmoid by two branches, positive", "sigmoid"),
        ("sigmoid by two branches, negative", "sigmoid"),
        ("sigmoid by two branches, not positive", "sigmoid"),
        ("sigmoid by two branches, not negative", "sigmoid"),
        ("sigmoid by |x|", "sigmoid"),
        ("sigmoid by |x|, drawn out", None),
        ("sigmoid by softplus", "sigmoid"),
        ("sigmoid by softplus, the smaller", "sigmoid"),
        ("sigmoid by logaddexp", "sigmoid"),
        ("sigmoid by logaddexp, commuted", "sigmoid"),
        ("sigmoid by two branches, exchanged", None),
        ("sigmoid by two branches, from 1", None),
        ("sigmoid by two branches, odd", None),
        ("sigmoid by |x|, exchanged", None),
        ("sigmoid by softplus, of itself", None),
        ("sigmoid by softplus, growing", None),
        ("sigmoid by logaddexp with 1", None),
        ("silu by two branches", "silu"),
        ("silu, whole in two branches", "silu"),
        ("silu by |x|", "silu"),
        ("silu by |x|, drawn out", None),
        ("silu by softplus", "silu"),
        ("silu by logaddexp", "silu"),
        ("tanh, odd", "tanh"),
    ],
)
def test_a_comparison_says_which_activation_it_is(spelling, name):
    assert named(SPELLINGS[spelling])[1] == name


def run(function, specs, inputs, finite=None):
    """Runs every match of a program that home offers; gives how many, by pattern.

    `finite` collects the offers that say that they stay finite, where NaN and infinities are left to them.
    """
    tape = trace(function, **specs)
    with np.errstate(all="ignore"):
        values = interpret(tape, inputs, keep=True)
    tally = Counter()
    for match in search(tape, patterns().values()).matches:
        offer = Home().offer(tape, match, Request())
        if not isinstance(offer, Offer):
            continue
        produced = {"result": match.root, **{name: made[0] for name, made in match.named.items()}}
        out = {name: np.full_like(values[value], 77) for name, value in produced.items()}
        prepare(tape, match, {}).run({name: values[value] for name, value in match.bindings.items()}, out, 1)
        for name, value in produced.items():
            got, want = out[name], values[value]
            if finite is not None and offer.range is not None:
                finite[match.pattern] = offer.range
                assert np.isfinite(got).all(), match.id
                continue
            np.testing.assert_array_equal(np.isnan(got), np.isnan(want), err_msg=match.id)
            np.testing.assert_array_equal(np.isinf(got), np.isinf(want), err_msg=match.id)
        tally[match.pattern] += 1
    return tally


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_nan_and_infinities_stand_where_they_are_recorded(spelling):
    tally = Counter()
    for dtype in ("f32", "f64"):
        for _, program in placed(SPELLINGS[spelling], dtype):
            tally += run(*program)
    assert tally["linear"]
    assert tally["convolution"]
    tape, name = named(SPELLINGS[spelling])
    wanted = name is not None and tape.ops[tape.results[0]].name in ROOTS
    assert tally["linear_bias_activation"] or not wanted


def test_every_place_takes_an_activation():
    places = dict(placed(SPELLINGS["silu"], "f32"))
    wanted = {
        "alone": "silu", "linear": "linear_bias_activation", "normed": "layer_norm_linear", "gated": "gated_mlp",
        "convolution": "conv_bn_activation", "residual": "conv_bn_activation", "separable": "depthwise_pointwise",
    }  # fmt: skip
    for name, pattern in wanted.items():
        tape = trace(places[name].function, **places[name].specs)
        assert match_at_result(tape, search(tape, patterns().values()), pattern) is not None, name


@pytest.mark.parametrize("spelling", SOFTMAXES)
def test_a_softmax_of_special_values_is_as_recorded(spelling):
    for kind in ("f4", "f8"):
        specs = {"x": f"f{8 * int(kind[1])}[{len(ROWS)},3]"}
        tally = run(lambda x: SOFTMAXES[spelling](x), specs, [ROWS.astype(kind)])
        assert tally["softmax"] or tally["log_softmax"]


@pytest.mark.parametrize("spelling", SOFTMAXES)
def test_a_softmax_that_overflows_is_as_recorded_or_says_that_it_is_not(spelling):
    said = {}
    run(lambda x: SOFTMAXES[spelling](x), {"x": f"f32[{len(OVERFLOWING)},3]"}, [OVERFLOWING.astype("f4")], said)
    unshifted = spelling not in ("softmax", "logarithm of softmax", "log softmax", "attention", *by_logsumexp())
    assert set(said.values()) == ({"shift"} if unshifted else set())


def by_logsumexp():
    """Lists the spellings that shift where the maximum is finite."""
    return [name for name in SOFTMAXES if "by logsumexp" in name]


def test_a_plan_says_where_its_kernels_stay_finite():
    for function, spec, words in (
        (SOFTMAXES["softmax, unshifted"], "f32[512,512]", "it subtracts the largest first"),
        (SPELLINGS["gelu by tanh"], "f16[512,512]", "it keeps its steps in f32"),
    ):
        plan = tp.plan(tp.trace(function, x=spec), machine="reference", cost="always")
        assert words in plan.describe()
        plan = tp.plan(tp.trace(function, x=spec), machine="reference", cost="always", fidelity="exact")
        assert words not in plan.describe()
