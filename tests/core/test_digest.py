from __future__ import annotations

import itertools

import numpy as np
import pytest

from topos_core.digest import Encoded, digest_of, encoded, tape_digest
from topos_core.tape.parse import parse_tape
from topos_core.tape.type import TensorType

DISTINCT = [
    None, True, False, 0, 1, -1, 2**70, 0.0, -0.0, 1.0, "1", b"1", "", (), (1,), ((1,),), (1, 1), {}, {1: 1}, {"1": 1},
    np.float32(1), np.float64(1), np.int64(1), np.ones(1), np.ones((1, 1)), np.ones(1, np.float32), frozenset(),
    frozenset({1}), TensorType("f32", (1,)), ("ab", "c"), ("a", "bc"), ("abc",), np.zeros((2, 0)), np.zeros((0, 2)),
]  # fmt: skip


def test_different_values_have_different_digests():
    digests = [digest_of(value) for value in DISTINCT]
    for (a, left), (b, right) in itertools.combinations(zip(DISTINCT, digests, strict=True), 2):
        assert left != right, (a, b)


def test_layout_byte_order_and_key_order_do_not_count():
    array = np.arange(6).reshape(2, 3)
    assert digest_of(array.T) == digest_of(np.ascontiguousarray(array.T))
    assert digest_of(array.astype(">i8")) == digest_of(array.astype("<i8"))
    assert digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})


def test_what_was_encoded_before_counts_as_what_it_was():
    for value in DISTINCT:
        assert digest_of([1, Encoded(encoded(value))]) == digest_of([1, value])


def test_what_has_no_canonical_form_is_a_bug():
    with pytest.raises(TypeError, match="object has no canonical form"):
        digest_of(object())


PLAIN = """
%0 "x" = input() : f32[4]
%1 "w" = parameter() : f32[4]
%2 = constant() value=f32:0.5 : f32[4]
%3 = mul(%0, %1) : f32[4]
%4 = add(%3, %2) : f32[4]
%5 = slice(%4) start=(0,) stop=(4,) step=(2,) : f32[2]
return (%5, %4)
observe %3 observe "scaled"
range %0 0 5
default %1 f32[4]:(1.0, 2.0, 3.0, 4.0)
"""


@pytest.mark.parametrize(
    "extra",
    [
        '@0 = user "main" "model.py":1:0-1:9; scope (encoder,)',
        'source "model.py" "text"',
        'note TP701 %3 "widened"',
    ],
)
def test_the_digest_ignores_where_things_were_written(extra):
    assert tape_digest(parse_tape(PLAIN + extra)) == tape_digest(parse_tape(PLAIN))


def test_the_digest_ignores_the_values_of_parameters():
    assert tape_digest(parse_tape(PLAIN.replace("3.0, 4.0", "3.0, 9.0"))) == tape_digest(parse_tape(PLAIN))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("f32:0.5", "f32:0.25"),
        ("step=(2,)", "step=(3,)"),
        ("start=(0,)", "start=(1,)"),
        ("mul(%0, %1)", "mul(%1, %0)"),
        ("mul(%0, %1)", "div(%0, %1)"),
        ("return (%5, %4)", "return (%4, %5)"),
        ("return (%5, %4)", "return [%5, %4]"),
        ("return (%5, %4)", 'return {"a": %5, "b": %4}'),
        ("return (%5, %4)", 'return record{"a": %5, "b": %4}'),
        ('"scaled"', '"other"'),
        ('"scaled"', '"scaled" assumed'),
        ("observe %3 observe", "observe %3 print"),
        ("observe %3", "observe %4"),
        ('%0 "x"', '%0 "y"'),
        ("range %0 0 5", "range %0 0 6"),
        ("f32", "f64"),
        ("[4]", "[5]"),
    ],
)
def test_the_digest_sees_everything_else(old, new):
    assert old in PLAIN
    changed = PLAIN.replace(old, new)
    if new == "[5]":
        changed = changed.replace("4.0)", "4.0, 5.0)")
    assert tape_digest(parse_tape(changed)) != tape_digest(parse_tape(PLAIN))
