"""Sums of products have one form, whichever ops they were recorded with."""

from __future__ import annotations

import numpy as np
import pytest

from topos_core.matching.context import Context
from topos_core.matching.form import Form, OffGrid, neutral
from topos_core.recording.trace import trace


def form(function, **specs):
    tape = trace(function, **specs)
    return Context(tape).form(tape.results[0])


def summary(found):
    """Counts what a form keeps and reduces."""
    assert isinstance(found, Form)
    kept = sorted(digit.extent for axis in found.joint.axes for digit in axis)
    return found.operation, found.bases, kept, sorted(digit.extent for digit in found.reduced)


SPECS = {"a": "f32[2,3]", "b": "f32[3,4]"}


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: a @ b,
        lambda a, b: (a[:, :, None] * b).sum(axis=1),
        lambda a, b: np.einsum("jk,ij->ik", b, a),
        lambda a, b: np.tensordot(a, b, 1),
        lambda a, b: (b.T @ a.T).T,
        lambda a, b: a[:, 0:1] * b[0] + a[:, 1:2] * b[1] + a[:, 2:3] * b[2],
        lambda a, b: 0 + (b[2] * a[:, 2:3] + (b[0] * a[:, 0:1] + a[:, 1:2] * b[1])),
        lambda a, b: sum(a[:, k : k + 1] @ b[k : k + 1] for k in range(3)),
        lambda a, b: np.stack([a[:, k, None] * b[k] for k in range(3)]).sum(axis=0),
    ],
    ids=["matmul", "product", "einsum", "tensordot", "transposed", "terms", "commuted", "outer products", "stacked"],
)
def test_a_matrix_product_has_one_form(function):
    assert summary(form(function, **SPECS)) == ("sum", (0, 1), [2, 4], [3])


def test_a_fold_of_slices_is_a_reduction():
    fold = form(lambda x: np.maximum(np.maximum(x[:, 4:6], x[:, 0:2]), x[:, 2:4]), x="f32[3,6]")
    plain = form(lambda x: x.reshape(3, 3, 2).max(axis=1), x="f32[3,6]")
    assert summary(fold) == summary(plain) == ("max", (0,), [2, 3], [3])


def test_movement_above_a_product_is_read_through():
    def taps(a, b):
        return sum((a[:, k : k + 1] @ b[k : k + 1]).T.reshape(2, 4).T for k in range(3))

    assert summary(form(taps, **SPECS))[3] == [3]


def test_a_sum_that_others_read_stays_one_value():
    def shared(x):
        y = x.sum(axis=1)
        return y.sum(axis=0) + y[0]

    tape = trace(shared, x="f32[3,4,5]")
    context = Context(tape)
    inner = next(v for v, op in enumerate(tape.ops) if op.name == "sum")
    outer = next(v for v, op in enumerate(tape.ops) if op.name == "sum" and v != inner)
    assert context.form(outer).bases == (inner,)


def test_unlike_terms_are_no_fold():
    assert summary(form(lambda a, b: a[:, 0] + a[:, 1] * b[0, 0], **SPECS))[0] is None


def test_terms_off_the_grid_are_told():
    found = form(lambda x: x[:, 0:2] + x[:, 3:5] + x[:, 1:3], x="f32[3,6]")
    assert isinstance(found, OffGrid)
    assert not found.is_product
    assert [view.offsets[1] for view in found.views] == [0, 1, 3]


def test_the_largest_fold_is_found_below_other_terms():
    def fold_and_bias(x, b):
        return x[:, 0:2] + x[:, 1:3] + x[:, 2:4] + b

    tape = trace(fold_and_bias, x="f32[3,6]", b="f32[3,2]")
    context = Context(tape)
    adds = [v for v, op in enumerate(tape.ops) if op.name == "add"]
    assert [len(context.forms.fold_terms(v) or []) for v in adds] == [0, 3, 0]


@pytest.mark.parametrize(
    ("operation", "dtype", "value"),
    [("sum", "f32", 0), ("max", "f32", -np.inf), ("min", "f16", np.inf), ("max", "i8", -128), ("min", "u8", 255)],
)
def test_what_a_reduction_may_read_for_nothing(operation, dtype, value):
    assert neutral(operation, dtype) == value


def test_long_chains_of_movement_are_no_recursion():
    def chain(a, b):
        y = a @ b
        for _ in range(700):
            y = y.T.reshape(2, 4)
        return y.sum(axis=0) + 1.0

    tape = trace(chain, **SPECS)
    total = next(v for v, op in enumerate(tape.ops) if op.name == "sum")
    assert summary(Context(tape).form(total))[0] == "sum"
