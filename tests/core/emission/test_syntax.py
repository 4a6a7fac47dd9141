from __future__ import annotations

import numpy as np
import pytest

from topos_core.emission.syntax import dense, element, literal, location, string, tensor
from topos_core.tape.span import UNKNOWN, Span
from topos_core.tape.type import TensorType, numpy_dtype


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (TensorType("f32", ()), "tensor<f32>"),
        (TensorType("bf16", (2, 0)), "tensor<2x0xbf16>"),
        (TensorType("u16", (3,)), "tensor<3xui16>"),
        (TensorType("bool", (3,)), "tensor<3xi1>"),
    ],
)
def test_types(kind, text):
    assert tensor(kind) == text
    assert text.endswith(f"{element(kind.dtype)}>")


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (0.0, "f32", "0.0"),
        (-0.0, "f32", "-0.0"),
        (1, "f64", "1.0"),
        (0.1, "f32", "0.1"),
        (0.1, "f64", "0.1"),
        (0.1, "bf16", "0.100097656"),
        (0.1, "f16", "0.099975586"),
        (1e-5, "f32", "1.0e-05"),
        (1e20, "f32", "1.0e+20"),
        (2.0**-149, "f32", "1.0e-45"),
        (np.pi, "f64", "3.141592653589793"),
        (-np.inf, "f32", "0xFF800000"),
        (np.inf, "f16", "0x7C00"),
        (np.nan, "f64", "0x7FF8000000000000"),
        (np.inf, "bf16", "0x7F80"),
        (True, "bool", "true"),
        (2**64 - 1, "u64", "18446744073709551615"),
        (-128, "i8", "-128"),
    ],
)
def test_numbers_are_the_shortest_text_that_reads_back(value, dtype, text):
    assert literal(value, dtype) == text
    if not text.startswith("0x") and "." in text:
        kind = numpy_dtype(dtype)
        assert np.float64(text).astype(kind).tobytes() == np.asarray(value).astype(kind).tobytes()


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (np.float32(0), TensorType("f32", (2, 3)), "dense<0.0> : tensor<2x3xf32>"),
        (np.array([[1], [2]]), TensorType("i64", (2, 1)), "dense<[[1], [2]]> : tensor<2x1xi64>"),
        (np.array([[7]]), TensorType("i64", (1, 1)), "dense<7> : tensor<1x1xi64>"),
        (np.empty((0, 2)), TensorType("f64", (0, 2)), "dense<> : tensor<0x2xf64>"),
        (np.array([True, False]), TensorType("bool", (2,)), "dense<[true, false]> : tensor<2xi1>"),
        (
            np.arange(65, dtype=np.uint8),
            TensorType("u8", (65,)),
            f'dense<"0x{bytes(range(65)).hex().upper()}"> : tensor<65xui8>',
        ),
    ],
)
def test_dense_attributes(value, kind, text):
    assert dense(value, kind) == text


def test_places_are_ascii_with_columns_from_one():
    span = Span('a "b"\\é\n.py', 3, 4, 3, 9)
    assert location(span) == 'loc("a \\22b\\22\\5C\\C3\\A9\\0A.py":3:5)'
    assert location(UNKNOWN) == "loc(unknown)"
    assert string("plain") == '"plain"'
