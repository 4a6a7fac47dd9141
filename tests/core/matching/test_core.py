from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from topos_core.matching.core import Keys
from topos_core.recording.elementary import logsumexp
from topos_core.recording.trace import trace

X = {"x": "f64[4,6]", "y": "f64[4,6]"}


def same(first: Any, second: Any, specs: dict[str, str] = X) -> bool:
    """Whether two spellings have one function and one coefficient."""

    def both(x: Any, y: Any) -> Any:
        return first(x, y), second(x, y)

    tape = trace(both, **specs)
    keys = Keys(tape)
    a, b = tape.results
    return keys.funcs[a] is keys.funcs[b] and bool(np.isclose(keys.coefficients[a], keys.coefficients[b], rtol=1e-12))


EQUAL = [
    (lambda x, y: x + y, lambda x, y: y + x),
    (lambda x, y: x - y, lambda x, y: -(y - x)),
    (lambda x, y: 2 * x + 4 * y, lambda x, y: 2.0 * (x + y * 2)),
    (lambda x, y: (x + 1.0) + y, lambda x, y: x + (y + 1.0)),
    (lambda x, y: x * y / 3, lambda x, y: (1 / 3) * (y * x)),
    (lambda x, y: x / np.sqrt(np.exp(y)), lambda x, y: x * np.exp(y) ** -0.5),
    (lambda x, y: np.exp(x).T, lambda x, y: np.exp(x.T)),
    (lambda x, y: x.mean(1), lambda x, y: x.sum(1) / 6),
    (lambda x, y: x.sum((0, 1)), lambda x, y: x.reshape(24).sum()),
    (lambda x, y: (x * y).sum(1), lambda x, y: np.einsum("ij,ij->i", x, y)),
    (lambda x, y: x @ y.T, lambda x, y: (x[:, None] * y[None]).sum(-1)),
    (lambda x, y: (-x).max(1), lambda x, y: -(x.min(1))),
    (lambda x, y: x > y, lambda x, y: y < x),
    (lambda x, y: logsumexp(x, 1), lambda x, y: x.max(1) + np.log(np.exp(x - x.max(1)[:, None]).sum(1))),
    (lambda x, y: np.concatenate([x, y])[4:], lambda x, y: y),
    (lambda x, y: np.stack([x * 2, y])[0], lambda x, y: x + x),
    (lambda x, y: np.square(x), lambda x, y: x**2),
    (lambda x, y: np.sqrt((x * x).sum(1)) ** 2, lambda x, y: np.square(x).sum(1)),
    (lambda x, y: np.sqrt(np.exp(x)) ** 2, lambda x, y: np.exp(x)),
    (lambda x, y: np.exp(-np.log1p(np.exp(x))), lambda x, y: 1 / (1 + np.exp(x))),
    (lambda x, y: np.exp(-2 * np.log1p(3 * np.exp(x))), lambda x, y: (1 + 3 * np.exp(x)) ** -2.0),
    (lambda x, y: np.exp(0.5 * np.log((x * x).mean(1) + 1.0)), lambda x, y: np.sqrt((x * x).mean(1) + 1.0)),
    (lambda x, y: np.exp(np.log(np.exp(x)).T), lambda x, y: np.exp(x).T),
]


@pytest.mark.parametrize(("first", "second"), EQUAL)
def test_spellings_of_one_function_have_one_key(first, second):
    assert same(first, second)


DIFFERENT = [
    (lambda x, y: np.sqrt(x * x), lambda x, y: x),
    (lambda x, y: np.sqrt(x) * np.sqrt(x), lambda x, y: x),
    (lambda x, y: np.sqrt(x) ** 2, lambda x, y: x),
    (lambda x, y: np.sqrt((x * y).sum(1)) ** 2, lambda x, y: (x * y).sum(1)),
    (lambda x, y: np.sqrt((x**3).sum(1)) ** 2, lambda x, y: (x**3).sum(1)),
    (lambda x, y: np.maximum(x, -0.0), lambda x, y: np.maximum(x, 0.0)),
    (lambda x, y: np.exp(np.log(x)), lambda x, y: x),
    (lambda x, y: np.exp(2 * np.log(x)), lambda x, y: x**2),
    (lambda x, y: np.exp(-np.log1p(x)), lambda x, y: 1 / (1 + x)),
    (lambda x, y: np.exp(-np.log(np.exp(x) - 1.0)), lambda x, y: 1 / (np.exp(x) - 1.0)),
    (lambda x, y: np.exp(-np.log(-np.exp(x))), lambda x, y: -1 / np.exp(x)),
    (lambda x, y: x / x, lambda x, y: x**0),
    (lambda x, y: 2 * x - x, lambda x, y: x),
    (lambda x, y: x * 0, lambda x, y: y * 0),
    (lambda x, y: x + 0.0, lambda x, y: x),
    (lambda x, y: (x * 0) ** 1.5, lambda x, y: x**1.5 * 0),
    (lambda x, y: np.sqrt(x * y), lambda x, y: np.sqrt(x) * np.sqrt(y)),
    (lambda x, y: x.astype("f4").astype("f8"), lambda x, y: x),
    (lambda x, y: x - y, lambda x, y: x + y),
    (lambda x, y: np.pad(x, 1)[1:-1, 1:-1] + np.pad(y, 1)[1:-1, :-2], lambda x, y: x + y),
]


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_what_differs_somewhere_has_another_key(first, second):
    assert not same(first, second)


def test_a_square_shape_fools_nobody():
    square = {"x": "f64[4,4]", "y": "f64[4,4]"}
    assert not same(lambda x, y: x.sum(0), lambda x, y: x.sum(1), square)
    assert not same(lambda x, y: x + y.T, lambda x, y: x + y, square)
    assert same(lambda x, y: (x + y.T).T, lambda x, y: y + x.T, square)


def test_integers_are_not_rearranged():
    integers = {"x": "i32[4]", "y": "i32[4]"}
    assert not same(lambda x, y: x + y + y, lambda x, y: x + 2 * y, integers)
    assert same(lambda x, y: x + y, lambda x, y: y + x, integers)


def test_a_residual_stream_keeps_functions_small():
    def stream(x: Any, y: Any) -> Any:
        for _ in range(60):
            x = x + np.tanh(x)
        return x

    tape = trace(stream, **X)
    keys = Keys(tape)
    assert max(len(func.kids) for func in keys.table.funcs) <= 2


def test_work_grows_with_the_tape_alone():
    def functions(layers: int) -> int:
        def stream(x: Any, y: Any) -> Any:
            for _ in range(layers):
                x = np.tanh(x * y + x)
            return x

        return len(Keys(trace(stream, **X)).table.funcs)

    assert functions(80) - functions(40) == functions(40) - functions(0)


@pytest.mark.parametrize("cut", [slice(0, 1), slice(1, 2), slice(0, 3)])
def test_a_sum_of_a_padded_product_sums_the_padded_value(cut):
    def program(x):
        rows = x.sum(1)
        return np.pad(rows * rows, 2)[cut].sum()

    tape = trace(program, x="f64[4,6]")
    keys = Keys(tape)
    assert keys.funcs[tape.results[0]] is not keys.funcs[tape.inputs[0]]
