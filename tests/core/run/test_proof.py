"""Proofs: algebra first, a measurement where it cannot say, and a wrong match is refuted by one of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import topos_core as tp
from topos_core import nn
from topos_core.matching.catalog import patterns
from topos_core.matching.formula import ACTIVATIONS
from topos_core.matching.search import search
from topos_core.run.proof import difference, prove
from topos_core.tape.type import numpy_dtype


def found(pattern, function, **specs):
    tape = tp.trace(function, **specs)
    matches = [match for match in search(tape, patterns().values()).matches if match.pattern == pattern]
    return tape, max(matches, key=lambda match: match.root)


def layer_norm(x, scale):
    return nn.layer_norm(x, scale)


def test_a_plan_proves_every_match_it_decides():
    def program(x, w, scale):
        return nn.gelu(nn.layer_norm(x @ w, scale))

    plan = tp.plan(tp.trace(program, x="f32[4,6]", w="f32[6,8]", scale="f32[8]"), machine="reference")
    proofs = plan.prove()
    assert {proof.match.id for proof in proofs} == {decision.match.id for decision in plan.data.decisions}
    assert {proof.verdict for proof in proofs} == {"proved"}


def test_what_algebra_cannot_say_is_measured():
    def program(x):
        return 0.5 * x * (1 + np.tanh(0.797884560803 * (x + 0.044715 * x**3)))

    tape, match = found("gelu", program, x="f64[3,7]")
    (proof,) = prove(tape, [match])
    assert proof.certificate.answer == "not provable"
    assert "0.797884561" in proof.certificate.reason
    assert proof.verdict == "measured"
    assert proof.difference is not None
    assert 0 < proof.difference < 1e-12


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS.keys() - {"none"}))
def test_every_activation_behind_a_product_is_proved(activation):
    def of_exp(y):
        return np.exp(y) / (1 + np.exp(y))

    spelled = {
        "gelu_erf": nn.gelu,
        "gelu_tanh": lambda y: nn.gelu(y, "tanh"),
        "gelu_sigmoid": lambda y: nn.gelu(y, "sigmoid"),
        "gelu_sigmoid_of_exp": lambda y: y * of_exp(1.702 * y),
        "silu_of_exp": lambda y: y * of_exp(y),
        "sigmoid_of_exp": of_exp,
        "relu_where_positive": lambda y: np.where(y > 0, y, 0),
        "relu_where_not_negative": lambda y: np.where(y >= 0, y, 0),
        "relu_unless_negative": lambda y: np.where(y < 0, 0, y),
    }
    step = spelled.get(activation) or getattr(nn, activation)

    def linear(x, w, b):
        return step(x @ w + b)

    def convolution(image, weight, b):
        return step(nn.conv2d(image, weight, b))

    for pattern, tape, match in (
        ("linear_bias_activation", *found("linear_bias_activation", linear, x="f32[4,6]", w="f32[6,8]", b="f32[8]")),
        (
            "conv_bn_activation",
            *found("conv_bn_activation", convolution, image="f32[1,2,5,5]", weight="f32[3,2,3,3]", b="f32[3]"),
        ),
    ):
        (proof,) = prove(tape, [match])
        assert proof.verdict in ("proved", "measured"), f"{pattern}: {proof.certificate}, {proof.difference}"


@pytest.mark.parametrize("epsilon", [2e-5, 1e-4])
def test_another_epsilon_is_refuted(epsilon):
    tape, match = found("layer_norm", layer_norm, x="f32[4,6]", scale="f32[6]")
    wrong = replace(match, facts=replace(match.facts, constants={"epsilon": epsilon}))
    (proof,) = prove(tape, [wrong])
    assert proof.verdict == "refuted"
    assert difference(tape, wrong) > 1e-3  # small values are among those measured, so epsilon counts


def test_an_infinity_that_enters_a_function_without_a_meaning_is_proved():
    def program(x):
        return np.tanh(np.where(x > 0, x, -np.inf))

    tape, match = found("elementwise_chain", program, x="f32[5,7]")
    (proof,) = prove(tape, [match])
    assert "tanh" in proof.certificate.assumed
    assert proof.verdict == "proved"


@pytest.mark.parametrize(
    "step", [np.tanh, np.abs, np.log, np.exp, lambda x: np.maximum(x, 0), lambda x: np.where(x > 1, x, 0)]
)
def test_a_function_of_an_exponential_and_a_logarithm_is_measured(step):
    def program(x):
        return step(np.exp(x) + np.log(x * x + 1))

    tape, match = found("elementwise_chain", program, x="f64[5,7]")
    (proof,) = prove(tape, [match])
    assert "an exponential together with a logarithm" in proof.certificate.reason
    assert proof.verdict == "measured"


def test_a_dropped_cast_is_refuted_by_measuring():
    def program(x):
        return nn.gelu(x.astype(tp.bf16.dtype).astype("f4"))

    tape, match = found("gelu", program, x="f32[5,7]")
    (proof,) = prove(tape, [replace(match, bindings={"x": tape.inputs[0]})])
    assert proof.certificate.answer == "not provable"
    assert "cast from f32 to bf16" in proof.certificate.reason
    assert proof.verdict == "refuted"


def test_a_proof_is_plain_data():
    tape, match = found("layer_norm", layer_norm, x="f32[4,6]", scale="f32[6]")
    (proof,) = prove(tape, [match, match])
    row = proof.to_json()
    assert row["id"] == match.id
    assert (row["verdict"], row["answer"], row["difference"]) == ("proved", "true", None)


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize(("on_q", "on_k"), [(0.1, 0.3), (0.35, 0.35), (0.3, 1.0)])
def test_scales_on_queries_and_keys_are_the_product_of_what_a_narrow_dtype_holds(dtype, on_q, on_k):
    def program(q, k, v):
        scores = (q * on_q) @ (k * on_k).swapaxes(-1, -2)
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True) @ v

    tape, match = found("attention", program, **dict.fromkeys("qkv", f"{dtype}[2,4,8]"))
    held = numpy_dtype(dtype).type
    assert match.facts.constants["scale"] == pytest.approx(float(held(on_q)) * float(held(on_k)), rel=1e-12)
    (proof,) = prove(tape, [match])
    assert proof.verdict in ("proved", "measured")
    assert proof.difference is None or proof.difference < 1e-12


def test_integers_that_floats_were_rounded_to_are_measured_as_recorded():
    tape, match = found("elementwise_chain", lambda t: t.astype(np.float16).astype(np.int64) + 1, t="i64[64]<4095")
    (proof,) = prove(tape, [match])
    assert (proof.verdict, proof.difference) == ("measured", 0.0)
    added = replace(match.facts, constants=dict.fromkeys(match.facts.constants, 2))
    (proof,) = prove(tape, [replace(match, facts=added)])
    assert proof.verdict == "refuted"
