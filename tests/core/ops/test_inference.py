from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.tapes import tensor_type
from topos_core.ops.catalog import definition, definitions
from topos_core.ops.definition import TypeMismatch
from topos_core.tape.type import TensorType

REFUSED = [
    ("add", ["f32[2]", "f64[2]"], {}, "add: operand dtypes differ: f32[2] and f64[2]; cast one of them"),
    ("add", ["f32[2]", "f32[3]"], {}, "add: operand shapes differ: f32[2] and f32[3]; broadcast one of them"),
    ("sub", ["bool[2]", "bool[2]"], {}, "sub is not defined for bool[2]; use xor for bools"),
    ("exp", ["i32[2]"], {}, "exp is not defined for i32[2]; cast it to a float dtype first"),
    ("logical_not", ["i32[2]"], {}, "logical_not is not defined for i32[2]; compare it with 0"),
    ("and", ["f32[2]", "f32[2]"], {}, "bits exist for integers and bools only"),
    ("compare", ["f32[2]", "f32[2]"], {"kind": "<"}, "compare: no kind '<'; use one of lt le gt ge eq ne"),
    ("select", ["f32[2]", "f32[2]", "f32[2]"], {}, "select: the condition is f32[2], the values are f32[2]"),
    ("cast", ["f32[2]"], {"dtype": "c64"}, "cast: no dtype 'c64'"),
    ("reshape", ["f32[2,3]"], {"shape": (4,)}, "reshape: f32[2,3] has 6 elements, [4] has 4"),
    ("reshape", ["f32[2,3]"], {"shape": (-2, -3)}, "reshape: f32[2,3] has 6 elements, [-2, -3] has 6"),
    ("broadcast", ["f32[2,3]"], {"shape": (3, 3)}, "broadcast: f32[2,3] does not broadcast to [3, 3]"),
    ("broadcast", ["f32[2,3]"], {"shape": (3,)}, "broadcast: f32[2,3] does not broadcast to [3]"),
    ("permute", ["f32[2,3]"], {"order": (0, 0)}, "permute: order [0, 0] does not name each axis of f32[2,3] once"),
    ("pad", ["f32[2]"], {"low": (-3,), "high": (0,), "interior": (0,)}, "leave [-1] of f32[2]; crop less"),
    ("slice", ["f32[4]"], {"start": (1,), "stop": (5,), "step": (1,)}, "slice: 1:5:1 does not lie in an axis of 4"),
    ("slice", ["f32[4]"], {"start": (1,), "stop": (3,), "step": (0,)}, "slice: 1:3:0 does not lie in an axis of 4"),
    ("reverse", ["f32[4]"], {"axes": (0, 0)}, "reverse: axes [0, 0] are not distinct axes of f32[4]"),
    ("concat", ["f32[2,3]", "f32[3,3]"], {"axis": 1}, "concat: f32[2,3] and f32[3,3] differ outside axis 1"),
    ("concat", ["f32[2]", "f64[2]"], {"axis": 0}, "concat: operand dtypes differ: f32[2] and f64[2]"),
    ("concat", ["f32[2]"], {"axis": 1}, "concat: f32[2] has no axis 1"),
    (
        "unfold",
        ["f32[4]"],
        {"axis": 0, "size": 3, "step": 1, "dilation": 2},
        "a window of 3 with dilation 2 reaches 5, axis 0",
    ),
    ("strided", ["f32[4]"], {"shape": (3,), "strides": (2,), "offset": 0}, "read elements 0 to 4, f32[4] has 4"),
    ("strided", ["f32[4]"], {"shape": (3,), "strides": (-1,), "offset": 1}, "read elements -1 to 1"),
    ("sum", ["f32[4]"], {"axes": (1,), "accumulate": "f32"}, "sum: axes [1] are not distinct ascending axes of f32[4]"),
    ("sum", ["f32[4]"], {"axes": (0,), "accumulate": "i32"}, "sum: f32[4] cannot accumulate in i32"),
    ("sum", ["bool[4]"], {"axes": (0,), "accumulate": "i64"}, "sum is not defined for bool[4]"),
    ("max", ["f32[0,2]"], {"axes": (0,)}, "max: a reduced axis of f32[0,2] is empty"),
    ("argmax", ["f32[2,0]"], {"axis": 1}, "argmax: axis 1 of f32[2,0] is empty"),
    (
        "matmul",
        ["f32[8,64]", "f32[32,8]"],
        {"accumulate": "f32"},
        "inner extents differ: f32[8,64] @ f32[32,8] (64, 32)",
    ),
    ("matmul", ["f32[2,3,4]", "f32[3,4,5]"], {"accumulate": "f32"}, "matmul: batch extents differ"),
    ("matmul", ["f32[3]", "f32[3]"], {"accumulate": "f32"}, "matmul: ranks differ or are below 2"),
    ("matmul", ["bool[2,2]", "bool[2,2]"], {"accumulate": "i32"}, "matmul is not defined for bool[2,2]"),
    ("gather", ["f32[3]", "f32[2]"], {"axis": 0}, "gather: indices are f32[2]; cast them to i32 or i64"),
    ("scatter_add", ["f32[3]", "i64[2]", "f32[3]"], {"axis": 0}, "takes f32[2]"),
    ("within", ["f32[3]"], {"low": 0, "high": 3}, "within: f32[3] holds no integers; cast it to an integer dtype"),
    ("within", ["i64[3]"], {"low": 4, "high": 3}, "within: no integer lies in [4, 3)"),
]


@pytest.mark.parametrize(("op", "operands", "attributes", "message"), REFUSED)
def test_a_mismatch_tells_both_values_and_the_remedy(op, operands, attributes, message):
    with pytest.raises(TypeMismatch) as failure:
        definition(op).infer([tensor_type(text) for text in operands], attributes)
    assert message in str(failure.value)


@pytest.mark.parametrize(
    ("op", "operands", "attributes", "result"),
    [
        ("compare", ["i8[2]", "i8[2]"], {"kind": "lt"}, "bool[2]"),
        ("pad", ["f32[3,0]"], {"low": (-1, 2), "high": (0, 0), "interior": (2, 5)}, "f32[6,2]"),
        ("slice", ["f32[7]"], {"start": (1,), "stop": (6,), "step": (2,)}, "f32[3]"),
        ("unfold", ["f32[2,7]"], {"axis": 1, "size": 3, "step": 2, "dilation": 1}, "f32[2,3,3]"),
        ("strided", ["f32[4]"], {"shape": (0, 9), "strides": (50, 1), "offset": 0}, "f32[0,9]"),
        ("argmax", ["bf16[2,3]"], {"axis": 0}, "i64[3]"),
        ("matmul", ["f16[5,2,3]", "f16[5,3,4]"], {"accumulate": "f32"}, "f16[5,2,4]"),
        ("gather", ["f32[3,4]", "i32[5,6]"], {"axis": 1}, "f32[3,5,6]"),
        ("sum", ["i32[0,2]"], {"axes": (0,), "accumulate": "i64"}, "i32[2]"),
        ("within", ["u8[0,2]"], {"low": 0, "high": 0}, "u8[0,2]"),
    ],
)
def test_results_have_the_type_of_the_contract(op, operands, attributes, result):
    assert str(definition(op).infer([tensor_type(text) for text in operands], attributes)) == result


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (np.zeros(3, np.float32), "f32[2]", "a table of shape [3] cannot be f32[2]"),
        (np.float64(1), "f32[2]", "a value of dtype float64 cannot be f32[2]"),
    ],
)
def test_a_constant_has_its_types_dtype_and_shape(value, kind, message):
    with pytest.raises(TypeMismatch) as failure:
        definition("constant").infer([], {"value": value, "type": tensor_type(kind)})
    assert message in str(failure.value)


WORK = [
    ("add", ["f32[10]", "f32[10]"], {}, (10, 0, 80, 40)),
    ("exp", ["f64[10]"], {}, (0, 10, 80, 80)),
    ("permute", ["f32[2,3]"], {"order": (1, 0)}, (0, 0, 0, 0)),
    ("pad", ["f32[2]"], {"low": (1,), "high": (1,), "interior": (0,)}, (0, 0, 8, 16)),
    ("sum", ["f16[4,5]"], {"axes": (1,), "accumulate": "f32"}, (20, 0, 40, 8)),
    ("matmul", ["f32[2,3]", "f32[3,4]"], {"accumulate": "f32"}, (48, 0, 72, 32)),
    ("gather", ["f32[1000,4]", "i64[2]"], {"axis": 0}, (0, 0, 48, 32)),
    ("within", ["i64[2]"], {"low": 0, "high": 5}, (0, 0, 32, 16)),
    ("logsumexp", ["f32[2,3]"], {"axes": (1,)}, (20, 8, 24, 8)),
    ("opaque", ["f32[2]"], {"types": (TensorType("f32", (3,)), TensorType("i64", ()))}, (0, 0, 8, 20)),
]


@pytest.mark.parametrize(("op", "operands", "attributes", "counts"), WORK)
def test_work_is_counted(op: str, operands: list[str], attributes: dict[str, Any], counts: tuple[int, ...]):
    row, types = definition(op), [tensor_type(text) for text in operands]
    assert tuple(row.work(types, attributes, row.infer(types, attributes))) == counts


def test_every_op_of_the_contract_has_a_row():
    names = (
        "input parameter constant iota neg abs exp expm1 log log1p sqrt rsqrt tanh erf sin cos floor ceil round sign"
        " logical_not add sub mul div pow maximum minimum remainder compare and or xor select cast reshape permute"
        " broadcast pad slice reverse concat unfold strided sum max min prod argmax logsumexp cumsum matmul gather"
        " scatter_add within opaque pick"
    )
    assert set(definitions()) == set(names.split())
