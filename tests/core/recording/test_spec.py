"""Input specs: objects and text."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from topos_core.errors import ConfigurationError
from topos_core.recording.spec import as_spec, bf16, boolean, f32, i64, parse_spec, parse_specs, u8
from topos_core.tape.type import DTYPE_NAMES, TensorType


def test_indexing_a_dtype_makes_a_spec() -> None:
    assert str(f32[1, 3, 224, 224]) == "f32[1,3,224,224]"
    assert f32[2].type == TensorType("f32", (2,))
    assert f32[()].type == TensorType("f32", ())
    assert str(i64[2, 48] < 100) == "i64[2,48]<100"
    assert (u8[3] < 256).below == 256
    assert str(boolean[2]) == "bool[2]"
    assert bf16.dtype.name == "bfloat16"
    assert f32.dtype == np.float32


READABLE = {
    "f32[1,3,224,224]": "f32[1,3,224,224]",
    " f32 [ 2 , 3 ] ": "f32[2,3]",
    "f32[]": "f32[]",
    "f32[2,]": "f32[2]",
    "i64[2,48]<100": "i64[2,48]<100",
    "i32[0] < 5": "i32[0]<5",
    "f32[N,3]": "f32[4,3]",
    "i64[2]<N": "i64[2]<4",
}


@pytest.mark.parametrize("text", READABLE)
def test_text_reads_as_the_object_would(text: str) -> None:
    assert str(parse_spec(text, {"N": 4})) == READABLE[text]


@pytest.mark.parametrize("dtype", DTYPE_NAMES)
def test_every_dtype_has_a_name_in_text(dtype: str) -> None:
    assert parse_spec(f"{dtype}[2]").type.dtype == dtype


def test_a_list_splits_at_commas_outside_of_brackets() -> None:
    positional, named = parse_specs("f32[1,2], i64[3,4]<7, mask=bool[2], größe=f32[]")
    assert [str(spec) for spec in positional] == ["f32[1,2]", "i64[3,4]<7"]
    assert {name: str(spec) for name, spec in named.items()} == {"mask": "bool[2]", "größe": "f32[]"}
    assert parse_specs("") == ((), {})


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        (np.complex128, "TP503", "complex128 is no dtype that topos has"),
        (np.float32, "TP502", "float32 is a dtype without a shape; write tp.f32[2, 3]"),
        (np.dtype("bool"), "TP502", "write tp.boolean[2, 3]"),
    ],
)
def test_a_dtype_of_numpy_is_no_spec(given: Any, code: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(words)) as caught:
        as_spec(given)
    assert caught.value.code == code


UNREADABLE = {
    "f32": ("TP502", "cannot be read"),
    "f32[2": ("TP502", "cannot be read"),
    "f32[2]]": ("TP502", "cannot be read"),
    "f32[2] f32[3]": ("TP502", "cannot be read"),
    "f32[-1]": ("TP502", "extent '-1' is not a number"),
    "f32[1.5]": ("TP502", "extent '1.5' is not a number"),
    "f32[2]<4": ("TP502", "only integers are bounded"),
    "i8[2]<200": ("TP502", "outside of 1 to 128"),
    "i64[2]<0": ("TP502", "outside of 1 to"),
    "float32[2]": ("TP503", "unknown dtype float32; use one of f16 bf16 f32"),
    "f32[M]": ("TP504", "extent M has no value"),
    "f32[2],": ("TP502", "cannot be read"),
    "x=f32[2], f32[3]": ("TP502", "follows x="),
    "x=f32[2], x=f32[3]": ("TP502", "names x twice"),
    "=f32[2]": ("TP502", "cannot be read"),
}


@pytest.mark.parametrize("text", UNREADABLE)
def test_text_that_cannot_be_read_names_what_and_remedy(text: str) -> None:
    code, message = UNREADABLE[text]
    with pytest.raises(ConfigurationError, match=message.replace("[", r"\[")) as caught:
        parse_specs(text, {"N": 4})
    assert caught.value.code == code


OBJECTS: dict[str, Any] = {
    "negative extent": lambda: f32[-1],
    "fractional extent": lambda: f32[1.5],
    "bounded float": lambda: f32[2] < 3,
    "bounded bool": lambda: boolean[2] < 1,
}


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_refuse_what_text_refuses(name: str) -> None:
    with pytest.raises(ConfigurationError):
        OBJECTS[name]()


def test_a_name_is_refused_where_one_is_given_already() -> None:
    with pytest.raises(ConfigurationError, match="drop x="):
        parse_spec("x=f32[2]")
