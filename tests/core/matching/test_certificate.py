"""Certificates: right matches are proved, wrong ones are refuted or left to the float check, never proved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.core.patterns.check import match_at_result, searched
from topos_core import nn
from topos_core.matching.catalog import patterns
from topos_core.matching.certificate import SAMPLES, certify
from topos_core.matching.match import Match
from topos_core.matching.search import search
from topos_core.recording.trace import trace
from topos_core.tape.tape import Tape

IMAGE = {"x": "f32[2,3,6,6]", "w": "f32[4,3,3,3]"}


def found(pattern, function, **specs) -> tuple[Tape, Match]:
    tape, pool = searched(function, specs)
    match = match_at_result(tape, pool, pattern)
    assert match is not None
    return tape, match


def convolution(x, w):
    return nn.conv2d(x, w, padding=1)


def layer_norm(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)


def test_a_convolution_is_proved_by_samples_alone():
    tape, match = found("convolution", convolution, **IMAGE)
    answer = certify(tape, match)
    assert (answer.answer, answer.reason, answer.assumed) == ("true", "", ())
    assert 8 <= answer.samples < tape.type_of(match.root).size


@pytest.mark.parametrize(
    "change",
    [{"low": 0, "high": 2}, {"low": 2, "high": 0}, {"reversed": True}],
    ids=["shifted up", "shifted down", "reversed"],
)
def test_a_convolution_with_another_window_is_refuted(change):
    tape, match = found("convolution", convolution, **IMAGE)
    windows = (replace(match.facts.windows[0], **change), match.facts.windows[1])
    wrong = replace(match, facts=replace(match.facts, windows=windows))
    answer = certify(tape, wrong)
    assert answer.answer == "false"
    assert answer.reason.startswith("root: differs at [")


def test_a_large_image_costs_no_more_than_its_samples():
    tape, match = found("convolution", convolution, x="f32[32,64,512,512]", w="f32[64,64,3,3]")
    assert certify(tape, match).answer == "true"


def test_a_batch_norm_over_a_million_elements_is_proved():
    def program(x, scale):
        mean = x.mean((0, 2, 3), keepdims=True)
        return (x - mean) / np.sqrt(x.var((0, 2, 3), keepdims=True) + 1e-5) * scale.reshape(1, -1, 1, 1)

    tape, match = found("batch_norm_training", program, x="f32[32,64,40,40]", scale="f32[64]")
    assert certify(tape, match).answer == "true"


@pytest.mark.parametrize("epsilon", [2e-5, 0.0, 1.00001e-5])
def test_another_epsilon_is_never_proved(epsilon):
    tape, match = found("layer_norm", layer_norm, x="f32[4,6]")
    assert certify(tape, match).answer == "true"
    constants = {**match.facts.constants, "epsilon": epsilon}
    answer = certify(tape, replace(match, facts=replace(match.facts, constants=constants)))
    assert answer.answer == "false"


def test_an_error_function_is_only_a_function_and_the_reason_names_it():
    def program(x):
        return nn.gelu(x)

    tape, match = found("gelu", program, x="f32[3,7]")
    right = certify(tape, match)
    assert right.answer == "true"
    assert right.assumed == ("erf",)
    wrong = certify(tape, replace(match, facts=replace(match.facts, options={"approximate": "tanh"})))
    assert wrong.answer == "not provable"
    assert "erf" in wrong.reason


def test_a_dropped_cast_is_never_proved():
    def rounded(x):
        return nn.silu(x.astype("f2").astype("f4"))

    tape, pool = searched(rounded, {"x": "f32[3,7]"})
    match = match_at_result(tape, pool, "silu")
    assert match is not None
    through = replace(match, bindings={"x": tape.inputs[0]})
    answer = certify(tape, through)
    assert answer.answer == "not provable"
    assert "cast from f32 to f16" in answer.reason


def test_extremes_are_compared_in_every_order():
    def pool(x):
        return nn.max_pool(x, 2)

    tape, match = found("window_reduce", pool, x="f32[2,3,6,6]")
    assert certify(tape, match).answer == "true"
    assert certify(tape, replace(match, facts=replace(match.facts, reducer="min"))).answer != "true"


def test_a_named_result_is_proved_like_the_root():
    def program(x):
        mean, variance = x.mean(0), x.var(0)
        return (x - mean) / np.sqrt(variance + 1e-5), mean, variance

    tape, match = found("batch_norm_training", program, x="f32[12,6]")
    assert match.named
    assert certify(tape, match).answer == "true"
    swapped = {"mean": match.named["variance"], "variance": match.named["mean"]}
    assert certify(tape, replace(match, named=swapped)).answer == "false"


def test_an_empty_result_is_proved_without_a_sample():
    tape, pool = searched(lambda x: nn.softmax(x), {"x": "f32[0,4]"})
    for match in pool.matches:
        assert certify(tape, match).answer == "true"


def test_a_sum_of_many_logarithms_is_proved():
    def loss(logits, target):
        shifted = logits - logits.max(-1, keepdims=True)
        return -((shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))) * target).sum(-1).mean()

    tape, pool = searched(loss, {"logits": "f32[32,10]", "target": "f32[32,10]"})
    match = match_at_result(tape, pool, "cross_entropy")
    assert match is not None
    answer = certify(tape, match)
    assert answer.answer == "true"
    assert "roots and logs of negative numbers" in answer.assumed


def test_a_residual_that_is_a_view_of_the_image_is_pulled_through():
    def program(x, w):
        image = x.reshape(1, 3, 6, 6)
        return nn.conv2d(image, w, padding=1) + image

    tape, match = found("conv_bn_activation", program, x="f32[3,6,6]", w="f32[3,3,3,3]")
    assert certify(tape, match).answer == "true"


def test_infinities_that_meet_on_one_side_alone_prove_nothing():
    def attention(shift):
        def program(q, k, v):
            scores = np.where(np.tri(5, dtype=bool), q @ k.swapaxes(-1, -2) * 0.5, -np.inf)
            powers = np.exp(scores - getattr(scores, shift)(-1, keepdims=True))
            return powers / powers.sum(-1, keepdims=True) @ v

        return searched(program, dict.fromkeys("qkv", "f32[2,5,4]"))

    tape, pool = attention("max")
    match = match_at_result(tape, pool, "attention")
    assert match is not None
    assert certify(tape, match).answer == "true"
    other, _ = attention("min")  # a row with -inf in it becomes NaN
    assert len(other.ops) == len(tape.ops)
    assert certify(other, match).answer == "not provable"


def test_every_output_of_a_block_of_attention_is_reached_at_the_size_of_a_model():
    def program(x, wq, wk, wv, wo):
        q, k, v = ((x @ w).reshape(1, 96, 8, 32).transpose(0, 2, 1, 3) for w in (wq, wk, wv))
        scores = q @ k.swapaxes(-1, -2) * 0.125
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        seen = (powers / powers.sum(-1, keepdims=True)) @ v
        return seen.transpose(0, 2, 1, 3).reshape(1, 96, 256) @ wo

    weight = "f32[256,256]"
    tape = trace(program, x="f32[1,96,256]", wq=weight, wk=weight, wv=weight, wo=weight)
    (match,) = [m for m in search(tape, patterns().values()).matches if m.pattern == "multi_head_attention"]
    found = certify(tape, match)
    assert found.answer == "true", found.reason
    assert found.samples >= SAMPLES
