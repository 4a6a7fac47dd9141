"""What belongs to a match: every operand link counts, diamonds are closed, movement and constants are nobody's."""

from __future__ import annotations

import numpy as np
import pytest

from topos_core.errors import InternalError
from topos_core.matching.closure import common_chain, live_readers, outside_readers, region
from topos_core.recording.trace import trace


def names(tape, values):
    return sorted(tape.ops[value].name for value in values)


def test_a_region_has_everything_between_root_and_bindings_and_claims_arithmetic_alone():
    tape = trace(lambda x: np.tanh(x.T.reshape(6) * 2.0), x="f32[2,3]")
    inside = region(tape, tape.results[0], tape.inputs)
    assert names(tape, inside.interior) == ["constant", "mul", "permute", "reshape"]
    assert names(tape, inside.computing) == ["mul", "tanh"]


def test_an_input_that_is_not_bound_is_a_bug():
    tape = trace(lambda x, y: x + y, x="f32[2]", y="f32[2]")
    with pytest.raises(InternalError, match="reads value 1 without binding it"):
        region(tape, tape.results[0], tape.inputs[:1])


def test_every_operand_link_is_a_reader():
    tape = trace(lambda x: np.exp(x) * np.exp(x), x="f32[2]")
    assert sorted(map(len, live_readers(tape))) == [0, 1, 1, 2]

    def squared(x):
        y = np.exp(x)
        return y * y

    tape = trace(squared, x="f32[2]")
    assert live_readers(tape)[1] == [2, 2]


def test_a_diamond_with_one_exit_is_closed():
    def diamond(x):
        y = np.exp(x)
        return np.tanh(y) + np.sqrt(y)

    tape = trace(diamond, x="f32[2]")
    inside = region(tape, tape.results[0], tape.inputs)
    assert outside_readers(live_readers(tape), inside.computing, tape.results) == []


def test_a_reader_outside_is_named():
    def leak(x):
        y = np.exp(x)
        return np.tanh(y), np.sqrt(y)

    tape = trace(leak, x="f32[2]")
    root, other = tape.results
    inside = region(tape, root, tape.inputs)
    assert outside_readers(live_readers(tape), inside.computing, [root]) == [other]


def test_dead_ops_read_nothing():
    def dead(x):
        y = np.exp(x)
        np.tanh(np.sqrt(y))
        return y

    tape = trace(dead, x="f32[2]")
    assert live_readers(tape)[tape.results[0]] == []


def test_the_common_chain_ends_where_readers_part():
    def two_slices(x):
        y = x.T.reshape(6)
        return y[:3] + y[3:]

    tape = trace(two_slices, x="f32[2,3]")
    root = tape.results[0]
    chain = common_chain(tape, live_readers(tape), region(tape, root, tape.inputs).interior, tape.inputs[0], root)
    assert [tape.ops[v].name for v in chain] == ["input", "permute", "reshape"]
