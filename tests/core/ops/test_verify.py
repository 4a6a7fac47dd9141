from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from topos_core.errors import InternalError
from topos_core.ops.verify import seal, verify
from topos_core.tape.parse import parse_tape
from topos_core.tape.tape import Observation, Structure
from topos_core.tape.type import TensorType

TAPE = """
%0 "x" = input() : f32[4]
%1 = parameter() : f32[4]
%2 = constant() value=f32[4]:(1.0, 2.0, 3.0, 4.0) : f32[4]
%3 = add(%0, %1) : f32[4]
%4 = pad(%3) fill=f32:0.0 low=(1,) high=(0,) interior=(0,) : f32[5]
%5 = opaque(%4) foreign="x" types=(f32[2], i64[]) note="" : f32[2]
%6 = pick(%5) index=1 : i64[]
return (%4, %2, %6)
default %1 f32[4]:(1.0, 2.0, 3.0, 4.0)
"""


def broken_op(value: int, **changes):
    tape = parse_tape(TAPE)
    ops = list(tape.ops)
    ops[value] = ops[value]._replace(**changes)
    return dataclasses.replace(tape, ops=tuple(ops))


def test_a_good_tape_passes():
    verify(parse_tape(TAPE))


@pytest.mark.parametrize(
    ("value", "changes", "message"),
    [
        (3, {"name": "plus"}, "no op is named plus"),
        (3, {"operands": (0, 3)}, "operand %3 is not made before it"),
        (3, {"operands": (0,)}, "takes 2 operands, has 1"),
        (3, {"location": 7}, "location @7 of 1 does not exist"),
        (3, {"attributes": {"axis": 1}}, "its attributes are none"),
        (3, {"type": TensorType("f32", (5,))}, "inference gives f32[4]"),
        (3, {"operands": (0, 0), "name": "and"}, "bits exist for integers and bools only"),
        (
            4,
            {"attributes": {"fill": np.float32(0), "low": (1,), "high": (0,)}},
            "its attributes are fill low high interior",
        ),
        (4, {"attributes": {"fill": 0.0, "low": (1,), "high": (0,), "interior": (0,)}}, "NumPy scalar of f32"),
        (
            2,
            {"attributes": {"value": np.ones(4, np.float32), "type": TensorType("f32", (4,))}},
            "read-only and C-contiguous",
        ),
        (
            2,
            {"attributes": {"value": 1.0, "type": TensorType("f32", (4,))}},
            "1.0 is a float; give a NumPy scalar or array",
        ),
        (6, {"attributes": {"index": 0, "type": TensorType("i64", ())}}, "%5 has no such result"),
    ],
)
def test_a_malformed_op_is_told(value, changes, message):
    with pytest.raises(InternalError) as failure:
        verify(broken_op(value, **changes))
    assert message in str(failure.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inputs": ()}, "inputs () are not the input ops [0]"),
        ({"defaults": {1: np.ones(3, np.float32)}}, "the default of %1 is float32[3], not a parameter f32[4]"),
        ({"defaults": {0: np.ones(4, np.float32)}}, "not a parameter"),
        ({"ranges": {1: (0, 3)}}, "%1 has a range but is no input"),
        ({"structure": Structure("leaf", index=0)}, "leaves [0] do not count the 3 results"),
        ({"observations": ()}, "have no output observation"),
        ({"names": {9: "y"}}, "outside the 7 ops"),
    ],
)
def test_a_table_that_does_not_fit_the_ops_is_told(changes, message):
    with pytest.raises(InternalError) as failure:
        verify(dataclasses.replace(parse_tape(TAPE), **changes))
    assert message in str(failure.value)


def test_an_observation_without_a_place_is_told():
    tape = parse_tape(TAPE)
    reader = Observation(3, "print", None, 5)
    with pytest.raises(InternalError, match="the observation of %3: location @5 does not exist"):
        verify(dataclasses.replace(tape, observations=(*tape.observations, reader)))


def test_a_sealed_tape_cannot_be_edited():
    tape = seal(parse_tape(TAPE))
    for table, key in ((tape.ops[4].attributes, "low"), (tape.names, 0), (tape.defaults, 1), (tape.ranges, 0)):
        with pytest.raises(TypeError):
            table[key] = None
    with pytest.raises(ValueError, match="read-only"):
        tape.defaults[1][0] = 3
