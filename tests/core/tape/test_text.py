from __future__ import annotations

import numpy as np
import pytest

from topos_core.digest import tape_digest
from topos_core.errors import ConfigurationError
from topos_core.ops.verify import verify
from topos_core.tape.literal import Cursor, read, write
from topos_core.tape.parse import parse_tape
from topos_core.tape.span import UNKNOWN
from topos_core.tape.tape import Structure
from topos_core.tape.text import tape_text
from topos_core.tape.type import TensorType, numpy_dtype

EVERYTHING = """topos.tape/1
%0 "image" = input() : f32[1,1,6,6] @0
%1 "weight" = parameter() : bf16[2] @1
%2 = unfold(%0) axis=2 size=3 step=1 dilation=1 : f32[1,1,4,6,3] @1
%3 = constant() value=f32:nan : f32[1,1,4,6,3] @0
%4 = constant() value=f64[3]:(0.1, 0x7FF8000000000001, -inf) : f64[3] @0
%5 = pad(%1) fill=bf16:0.100098 low=(1,) high=(0,) interior=(0,) : bf16[3] @0
%6 = opaque(%2) foreign="aten::bernoulli" types=(f32[2], i64[]) note="p=0.5, \\"train\\"" : f32[2] @0
%7 = pick(%6) index=1 : i64[] @0
%8 = input() : i64[2] @0
inputs %8, %0
return record{"a": (%2,), "b": [none, %5, {"c": %7}], "d": ()}
observe %2 output none @0
observe %5 output none @0
observe %7 output none @0
observe %6 hook "kept \\u2028" @1 assumed
range %8 0 100
note TP701 %4 "widened"
@0 =
@1 = user "main" "a b.py":1:0-1:3 < library "f" "nn.py":2:0-3:1; scope (encoder, "Layer 0")
@2 = user "g" "nn.py":4:0-4:3; scope (conv,); built user "__init__" "a b.py":1:0-1:5
@3 = user "g" "nn.py":5:0-5:3; built user "<module>" "a b.py":1:0-1:5
source "a b.py" "x = 1\\n# \\u00e9\\n"
default %1 bf16[2]:(1.5, nan)
"""


def test_every_part_of_a_tape_survives():
    tape = parse_tape(EVERYTHING)
    verify(tape)
    text = tape_text(tape)
    assert text == EVERYTHING + f"seal {tape_digest(tape)}\n"
    assert tape_text(parse_tape(text)) == text


def test_parts_have_their_meaning():
    tape = parse_tape(EVERYTHING)
    assert tape.inputs == (8, 0)
    assert tape.results == (2, 5, 7)
    assert tape.structure.keys == ("a", "b", "d")
    assert tape.structure.children[2] == Structure("tuple")
    assert tape.observations[3].assumed
    assert tape.observations[3].name == "kept \u2028"
    assert tape.locations[1].scope == ("encoder", "Layer 0")
    assert str(tape.location_of(2).span) == "a b.py:1:1"
    assert tape.locations[1].built is None
    assert [str(tape.locations[row].built.span) for row in (2, 3)] == ["a b.py:1:1", "a b.py:1:1"]
    assert tape.ranges == {8: (0, 100)}
    assert not tape.defaults[1].flags.writeable
    assert np.isnan(tape.constant(3))
    assert tape.ops[7].attributes["type"] == TensorType("i64", ())


def test_a_hand_written_tape_needs_only_ops_and_a_return():
    tape = parse_tape("# two lines\n%0 = input() : f32[2]  # an input\nreturn %0")
    verify(tape)
    assert [row.kind for row in tape.observations] == ["output"]
    assert tape.location_of(0).span == UNKNOWN


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%3 = neg(%0) : f32[2]", "<tape>:2:3: value %1 comes next, found ' = neg(%0) : f32[2]'"),
        ("%1 = neg(%7) : f32[2]", "<tape>:2:10: %7 is not made before this line"),
        ("%1 = neg(%0 : f32[2]", "<tape>:2:13: `)` expected"),
        ("%1 = neg(%0) : f99[2]", "a type such as f32[2,3] expected"),
        ("%1 = neg(%0) axes=[ : f32[2]", "a value expected"),
        ("%1 = constant() value=f32[2]:(1.0,) : f32[2]", "2 elements of f32[2] expected"),
        ("%1 = constant() value=f32[20]:0xFF : f32[20]", "80 bytes of f32[20] expected"),
        ("%1 = constant() value=f32[1]:(lt,) : f32[1]", "an element of f32 expected"),
        ("%1 = neg(%0) : f32[2] junk", "end of line expected, found 'junk'"),
        ("whatever %0", "`whatever` is no directive"),
        ("observe %0 stared none", "`stared` is none of output observe print item hook kept"),
        ("@1 = user", "location @0 comes next"),
        ("@0 = guest", "`guest` is none of user library framework"),
        ("default %0 3", "an array expected"),
    ],
)
def test_errors_name_line_column_and_what_was_found(line, message):
    with pytest.raises(ConfigurationError) as failure:
        parse_tape(f"%0 = input() : f32[2]\n{line}")
    assert message in failure.value.message
    assert failure.value.code == "TP505"


def test_a_tape_must_return_something():
    with pytest.raises(ConfigurationError, match="returns nothing"):
        parse_tape("%0 = input() : f32[2]")


def test_a_broken_seal_is_told():
    with pytest.raises(ConfigurationError, match="the seal is 000000000000, the text has"):
        parse_tape(f"%0 = input() : f32[2]\nreturn %0\nseal {'0' * 64}")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "none"),
        (True, "true"),
        (-3, "-3"),
        (0.5, "0.5"),
        (float("-inf"), "-inf"),
        (1e-30, "1e-30"),
        ("lt", "lt"),
        ("none", '"none"'),
        ("nan", '"nan"'),
        ("a b", '"a b"'),
        ("", '""'),
        ((), "()"),
        ((1,), "(1,)"),
        ((1, (2.0, "x")), "(1, (2.0, x))"),
        (TensorType("u8", (2, 0)), "u8[2,0]"),
        (np.float32(0.1), "f32:0.1"),
        (np.float64(-0.0), "f64:-0.0"),
        (np.int8(-128), "i8:-128"),
        (np.uint64(2**64 - 1), "u64:18446744073709551615"),
        (np.bool_(False), "bool:false"),
        (numpy_dtype("bf16").type(3.0), "bf16:3"),
    ],
)
def test_values_have_one_text_and_read_back(value, text):
    assert write(value) == text
    again = read(Cursor(text, "here:1"))
    assert type(again) is type(value)
    assert again == value


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "i64", "u8", "bool"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3), (4, 5)])
def test_arrays_read_back_bit_for_bit(dtype, shape):
    bits = np.random.default_rng(1).integers(0, 256, (*shape, numpy_dtype(dtype).itemsize), np.uint8)
    array = bits.view(numpy_dtype(dtype)).reshape(shape) if dtype != "bool" else (bits[..., 0] > 99).reshape(shape)
    again = read(Cursor(write(array), "here:1"))
    assert again.dtype == array.dtype
    assert again.shape == array.shape
    assert again.tobytes() == np.ascontiguousarray(array).tobytes()
