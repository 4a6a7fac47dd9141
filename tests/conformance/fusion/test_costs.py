"""Figures behind decisions, and how much work a search does."""

from __future__ import annotations

import numpy as np

import topos_core as tp
from tests.conformance.fusion.cases import case, planned
from topos_core import nn
from topos_core.matching.catalog import patterns
from topos_core.matching.search import search


@case(99)
def test_a_join_before_elementwise_ops_forbids_nothing_and_every_figure_has_a_unit_and_a_basis():
    def program(x, y):
        return nn.softmax(np.concatenate([x[:, -2:], y, x[:, :2]], axis=1) * 2.0)

    plan = planned(program, {"x": "f32[64,64]", "y": "f32[64,64]"})
    (found,) = plan.taken
    assert found.match.pattern == "softmax"
    assert all(number.unit and number.basis in ("counted", "modelled", "measured") for number in found.numbers.values())
    assert plan.data.machine.provenance in ("modelled", "measured")


@case(101)
def test_the_most_that_lives_at_once_is_one_of_the_figures():
    def program(x, w):
        return nn.layer_norm(nn.relu(nn.conv2d(x, w, padding=1)).reshape(4, -1))

    plan = planned(program, {"x": "f32[4,8,16,16]", "w": "f32[8,8,3,3]"})
    document = plan.document()
    assert "peak_bytes" in str(document)
    plain = plan.what_if(off=[one.match.pattern for one in plan.taken])
    assert 0 < plan.data.liveness.peak_bytes <= plain.data.liveness.peak_bytes


@case(104)
def test_a_search_tries_as_often_per_op_on_a_tape_of_any_length():
    def blocks(count):
        def program(x, w, scale):
            for _ in range(count):
                x = x + nn.gelu(nn.layer_norm(x, scale) @ w)
            return x

        return tp.trace(program, x="f32[4,8]", w="f32[8,8]", scale="f32[8]")

    rates = []
    for count in (20, 80):
        tape = blocks(count)
        pool = search(tape, patterns().values())
        rates.append((pool.attempts / len(tape.ops), len(pool.matches) / count))
    assert rates[1][0] <= rates[0][0] * 1.05
    assert abs(rates[0][1] - rates[1][1]) < 0.2


@case(106)
def test_a_layer_norm_is_one_kernel_with_the_time_it_saves():
    def program(x, scale, shift):
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred * centred).mean(-1, keepdims=True)
        return centred / np.sqrt(variance + 1e-5) * scale + shift

    tape = tp.trace(program, x="f32[256,768]", scale="f32[768]", shift="f32[768]")
    plan = tp.plan(tape, machine="reference")
    (found,) = plan.taken
    assert found.match.pattern == "layer_norm"
    assert found.numbers["benefit"].value > 0
    assert found.numbers["seconds_after"].value < found.numbers["seconds_before"].value
    assert len([step for step in plan.data.schedule.steps if step.match is not None]) == 1


@case(102)
def test_products_side_by_side_run_as_one_only_where_that_is_faster():
    def program(x, q, k, v):
        return x @ q, x @ k, x @ v

    def decided(rows, width, columns):
        weights = dict.fromkeys("qkv", f"f32[{width},{columns}]")
        plan = tp.plan(tp.trace(program, x=f"f32[{rows},{width}]", **weights), machine="reference")
        return next((d for d in plan.data.decisions if d.match.pattern == "sibling_matmul"), None)

    narrow, single = decided(1024, 768, 4), decided(1, 768, 768)
    assert narrow.verdict == "taken"
    assert narrow.numbers["seconds_after"].value < narrow.numbers["seconds_before"].value
    assert (single.verdict, single.code) == ("declined", "TP202")
    before, after = (single.numbers[name] for name in ("seconds_before", "seconds_after"))
    assert after.value > before.value
    assert before.basis == after.basis == "modelled"
