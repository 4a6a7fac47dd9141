from __future__ import annotations

import numpy as np
import pytest

from tests.core.patterns.check import agrees, check, match_at_result, searched
from tests.laws.metamorphic import TRANSFORMS
from topos_core import nn
from topos_core.matching.catalog import patterns
from topos_core.matching.search import search
from topos_core.recording.trace import trace
from topos_core.run.proof import prove

FULL = {"x": "f64[2,3,5,8]", "cos": "f64[5,8]", "sin": "f64[5,8]"}
HALF = {"x": "f64[2,3,5,8]", "cos": "f64[5,4]", "sin": "f64[5,4]"}


def by_nn(x, cos, sin):
    return nn.rotary_embedding(x, cos, sin)


def halves(x, cos, sin):
    return x * cos + np.concatenate([-x[..., 4:], x[..., :4]], -1) * sin


def split(x, cos, sin):
    first, second = np.split(x, 2, -1)
    return np.concatenate((-second, first), -1) * sin + cos * x


def negated_by_product(x, cos, sin):
    return x * cos - np.concatenate([x[..., 4:], x[..., :4] * -1.0], -1) * sin


def interleaved(x, cos, sin):
    turned = np.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(2, 3, 5, 8)
    return x * cos + turned * sin


def of_a_projection(x, cos, sin):
    return halves(np.tanh(x), cos, sin)


@pytest.mark.parametrize("spelling", [by_nn, halves, split, negated_by_product, interleaved, of_a_projection])
def test_every_spelling_with_whole_tables_is_one_embedding(spelling):
    match = check("rotary_embedding", spelling, FULL)
    assert match.facts.extents == {"k": 30, "p": 2, "h": 4}
    assert set(match.bindings) == {"x", "cos", "sin"}


def turned(x):
    return np.concatenate([-x[..., 4:], x[..., :4]], -1)


SIGNS = {
    "subtracted first": (lambda x, cos, sin: -(turned(x) * sin) + x * cos, "input"),
    "of minus x": (lambda x, cos, sin: (-x) * cos + turned(-x) * sin, "neg"),
    "of minus x, both subtracted": (lambda x, cos, sin: -x * cos - turned(x) * sin, "neg"),
    "of twice x": (lambda x, cos, sin: (2 * x) * cos - turned(2 * x) * sin, "mul"),
}


@pytest.mark.parametrize("name", SIGNS)
@pytest.mark.parametrize("seed", range(12))
def test_a_turn_is_one_whichever_product_is_made_first(name, seed):
    program, x = SIGNS[name]
    tape = TRANSFORMS["independent ops reordered"](trace(program, **FULL), seed)
    match = match_at_result(tape, search(tape, patterns().values()), "rotary_embedding")
    assert match is not None
    assert tape.ops[match.bindings["x"]].name == x
    agrees(tape, match)


def by_minus_the_angle(x, cos, sin):
    return x * cos - np.concatenate([-x[..., 4:], x[..., :4]], -1) * sin


def sign_on_the_other_half(x, cos, sin):
    return np.concatenate([x[..., 4:], -x[..., :4]], -1) * sin + cos * x


def interleaved_by_minus_the_angle(x, cos, sin):
    return x * cos + np.stack([x[..., 1::2], -x[..., ::2]], -1).reshape(2, 3, 5, 8) * sin


@pytest.mark.parametrize("spelling", [by_minus_the_angle, sign_on_the_other_half, interleaved_by_minus_the_angle])
def test_a_turn_by_minus_the_angle_says_so(spelling):
    match = check("rotary_embedding", spelling, FULL)
    assert match.facts.options == {"direction": "backwards"}


def half_by_half(x, cos, sin):
    a, b = x[..., :4], x[..., 4:]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def half_by_half_commuted(x, cos, sin):
    a, b = np.split(x, 2, -1)
    return np.concatenate([-(sin * b) + cos * a, sin * a + cos * b], -1)


def pairs_stacked(x, cos, sin):
    a, b = x[..., ::2], x[..., 1::2]
    return np.stack([a * cos - b * sin, b * cos + a * sin], -1).reshape(2, 3, 5, 8)


@pytest.mark.parametrize("spelling", [half_by_half, half_by_half_commuted, pairs_stacked])
def test_every_spelling_half_by_half_is_one_embedding(spelling):
    check("rotary_embedding", spelling, HALF)


def test_tables_may_be_constant():
    cos, sin = (table.astype(np.float64) for table in nn.rotary_tables(5, 8))
    check("rotary_embedding", lambda x: nn.rotary_embedding(x, cos, sin), {"x": "f64[2,3,5,8]"})


def no_sign(x, cos, sin):
    return x * cos + np.concatenate([x[..., 4:], x[..., :4]], -1) * sin


def not_turned(x, cos, sin):
    return x * cos + np.concatenate([-x[..., :4], x[..., 4:]], -1) * sin


def other_value(x, cos, sin):
    return np.tanh(x) * cos + np.concatenate([-x[..., 4:], x[..., :4]], -1) * sin


def both_negative(x, cos, sin):
    return x * cos + np.concatenate([-x[..., 4:], -x[..., :4]], -1) * sin


@pytest.mark.parametrize("program", [no_sign, not_turned, other_value, both_negative])
def test_look_alikes_are_refused(program):
    _, pool = searched(program, FULL)
    assert [m for m in pool.matches if m.pattern == "rotary_embedding"] == []


@pytest.mark.parametrize("x", ["f64[2,3,5,8]", "f64[3,2,5,8]", "f64[2,2,5,8]", "f64[1,3,2,8]"])
@pytest.mark.parametrize("interleaved", [False, True], ids=["halves", "interleaved"])
def test_tables_of_angles_that_stand_twice_are_proved_whatever_else_has_two(x, interleaved):
    def turned(x, angles):
        twice = np.repeat(angles, 2, -1) if interleaved else np.concatenate([angles, angles], -1)
        if interleaved:
            across = np.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape)
        else:
            across = np.concatenate([-x[..., 4:], x[..., :4]], -1)
        return x * np.cos(twice) + across * np.sin(twice)

    tape, pool = searched(turned, {"x": x, "angles": f"f64[{x.split(',')[2]},4]"})
    (match,) = (one for one in pool.matches if one.pattern == "rotary_embedding")
    assert [proof.verdict for proof in prove(tape, [match])] == ["proved"]
