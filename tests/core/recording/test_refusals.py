"""What cannot be recorded is an error at its exact expression, and says what to write instead."""

from __future__ import annotations

import contextlib
import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

from tests.core.recording.check import record, refusal
from topos_core.errors import RecordingError, TraceError
from topos_core.recording.elementary import erf
from topos_core.recording.spec import bf16, f32, i32
from topos_core.recording.trace import record as record_with
from topos_core.recording.trace import trace
from topos_core.recording.windows import as_strided, unfold


def if_on_value(x, y):
    if x.sum() > 0:
        return x
    return y


def while_on_value(x, y):
    while x.sum() > 0:
        x = x - 1
    return x


def chained_comparison(x, y):
    return 0 < x < 1


def boolean_and(x, y):
    return x > 0 and y > 0


def negated(x, y):
    return not x


def python_max(x, y):
    return max(x, y)


def in_list(x, y):
    return x if x in [y] else y


def sorted_values(x, y):
    return sorted([x.sum(), y.sum()])[0]


def item_assignment(x, y):
    x[0] = 1
    return x


def masked_assignment(x, y):
    z = x * 1
    z[z < 0] = 0
    return z


def deleted(x, y):
    del x[0]
    return x


def into_array(x, y):
    out = np.zeros((3, 4), "f4")
    out[:] = x
    return out


def array_plus_equals(x, y):
    out = np.zeros((3, 4), "f4")
    out += x
    return out + x


def list_into_array(x, y):
    return np.array([x.sum(), y.sum()])


def sum_of_a_list(x, y):
    return np.sum([x, y])


def out_argument(x, y):
    return np.add(x, y, out=np.zeros((3, 4), "f4"))


def out_of_a_reduction(x, y):
    return np.sum(x, axis=0, out=np.zeros(4, "f4"))


def where_argument(x, y):
    return np.log(x, where=x > 0)


def inner_extents(x, y):
    return x @ y


def no_broadcast(x, y):
    return x + y.reshape(4, 3)


def axis_out_of_range(x, y):
    return np.sum(x, axis=2)


def axis_twice(x, y):
    return np.sum(x, axis=(0, -2))


def reshape_misfit(x, y):
    return x.reshape(5, -1)


def range_of_value(x, y):
    return list(range(x.sum()))


def math_sqrt(x, y):
    return x / math.sqrt(y.sum())


def float_kept(x, y):
    s = float(x.sum())
    return y * s


def int_value(x, y):
    return int(x.sum())


def complex_value(x, y):
    return complex(x.sum())


def round_value(x, y):
    return round(x, 2)


def floor_of_value(x, y):
    return math.floor(x)


def complex_operand(x, y):
    return x * 1j


def string_operand(x, y):
    return x + "a"


def none_operand(x, y):
    return x == None  # noqa: E711


def complex_array(x, y):
    return x + np.ones(4, "c8")


def object_array(x, y):
    return x + np.array([1, None], object)


def long_double(x, y):
    return x.astype(np.longdouble)


def unknown_ufunc(x, y):
    return np.arctan(x)


def unknown_function(x, y):
    return np.sort(x)


def unknown_method(x, y):
    return x.argsort(1)


def strides_attribute(x, y):
    return as_strided(x, (2, 2), x.strides)


def numpys_as_strided(x, y):
    return np.lib.stride_tricks.as_strided(x, (2, 2), (4, 4))


def outside_as_strided(x, y):
    return as_strided(x, (5, 4), (4, 1))


def window_too_large(x, y):
    return unfold(x, 1, 5)


def masked_array(x, y):
    return x + np.ma.array([1, 2, 3, 4], mask=[0, 1, 0, 0])


def matrix_operand(x, y):
    return x * np.asmatrix(np.ones((4, 4)))  # type: ignore[no-untyped-call]


def mask_index(x, y):
    return x[x > 0]


def where_without_values(x, y):
    return np.where(x > 0)


def recorded_slice_bound(x, y):
    return x[: y.sum()]


def index_out_of_range(x, y):
    return x[3]


def float_index(x, y):
    return x[y]


def too_many_indices(x, y):
    return x[0, 0, 0]


def fractional_index(x, y):
    return x[1.5]


def einsum_extents(x, y):
    return np.einsum("ij,jk->ik", x, y)


def einsum_terms(x, y):
    return np.einsum("ij->i", x, y)


def einsum_lists(x, y):
    return np.einsum(x, [0, 1], [1, 0])


def column_major(x, y):
    return x.reshape(12, order="F")


def squeeze_long_axis(x, y):
    return np.squeeze(x, 0)


def uneven_split(x, y):
    return np.split(x, 3, axis=1)


def concatenate_misfit(x, y):
    return np.concatenate([x, y[:, :2]], axis=0)


def unknown_pad_mode(x, y):
    return np.pad(x, 1, mode="median")


def numbers_of_a_value(x, y):
    return x.tolist()


def linspace_of_value(x, y):
    return np.linspace(0, x, 3)


def arange_of_value(x, y):
    return np.arange(x.sum())


def full_of_value(x, y):
    return np.full((2,), x.sum())


def item_is_no_number(x, y):
    return y * x.sum().item()


def item_of_many(x, y):
    return x.item()


def integer_index_of_value(x, y):
    return [1, 2, 3][x.sum()]


def pickled(x, y):
    return pickle.dumps(x)


def norm_by_decomposition(x, y):
    return np.linalg.norm(x, 2)


def repeated_by_value(x, y):
    return np.repeat(x, x.argmax(), axis=0)


def negative_integer_power(x, y):
    return x.astype("i4") ** -1


def unsigned_overflow(x, y):
    return x.astype("u1") + 300


def ufunc_at(x, y):
    return np.add.at(x, [0], 1)


def divided_by_nothing(x, y):
    return x / {}


def returned_text(x, y):
    return {"a": x, "b": "text"}


EXPECTED = {
    if_on_value: ("x.sum() > 0", "np.where(condition, a, b)"),
    while_on_value: ("x.sum() > 0", "np.where(condition, a, b)"),
    chained_comparison: ("0 < x < 1", "np.where"),
    boolean_and: ("x > 0 and y > 0", "np.where"),
    negated: ("not x", "np.where"),
    python_max: ("max(x, y)", "np.where"),
    in_list: ("x in [y]", "np.where"),
    sorted_values: ("sorted([x.sum(), y.sum()])", "np.where"),
    item_assignment: ("x[0]", "np.where(mask, new, old)"),
    masked_assignment: ("z[z < 0]", "np.where(mask, new, old)"),
    deleted: ("x[0]", "np.concatenate"),
    into_array: ("out[:]", "tp.observe"),
    array_plus_equals: ("out += x", "x = x + value"),
    list_into_array: ("np.array([x.sum(), y.sum()])", "np.stack"),
    sum_of_a_list: ("np.sum([x, y])", "np.stack"),
    out_argument: ('np.add(x, y, out=np.zeros((3, 4), "f4"))', "use the returned value"),
    out_of_a_reduction: ('np.sum(x, axis=0, out=np.zeros(4, "f4"))', "use the returned value"),
    where_argument: ("np.log(x, where=x > 0)", "np.where(mask, np.log(...), other)"),
    inner_extents: ("x @ y", "f32[3,4] @ f32[3,4] (4, 3)"),
    no_broadcast: ("x + y.reshape(4, 3)", "f32[3,4] and f32[4,3]"),
    axis_out_of_range: ("np.sum(x, axis=2)", "axis 2 is out of range"),
    axis_twice: ("np.sum(x, axis=(0, -2))", "twice"),
    reshape_misfit: ("x.reshape(5, -1)", "12 elements"),
    range_of_value: ("range(x.sum())", "Python integer"),
    math_sqrt: ("math.sqrt(y.sum())", "np functions instead of math's"),
    float_kept: ("float(x.sum())", "tp.observe"),
    int_value: ("int(x.sum())", "tp.observe"),
    complex_value: ("complex(x.sum())", "tp.observe"),
    round_value: ("round(x, 2)", "np.round(x, 2)"),
    floor_of_value: ("math.floor(x)", "np functions"),
    complex_operand: ("x * 1j", "a complex is no operand"),
    string_operand: ('x + "a"', "a str is no operand"),
    none_operand: ("x == None", "a NoneType is no operand"),
    complex_array: ('x + np.ones(4, "c8")', "complex64 cannot be recorded"),
    object_array: ("x + np.array([1, None], object)", "object cannot be recorded"),
    long_double: ("x.astype(np.longdouble)", "cannot be recorded"),
    unknown_ufunc: ("np.arctan(x)", "no op for inverse trigonometry"),
    unknown_function: ("np.sort(x)", "no op for sorting"),
    unknown_method: ("x.argsort", "no op for sorting"),
    strides_attribute: ("x.strides", "tp.as_strided takes strides in elements"),
    numpys_as_strided: ("np.lib.stride_tricks.as_strided(x, (2, 2), (4, 4))", "tp.as_strided"),
    outside_as_strided: ("as_strided(x, (5, 4), (4, 1))", "stay inside"),
    window_too_large: ("unfold(x, 1, 5)", "a window of 5"),
    masked_array: ("x + np.ma.array([1, 2, 3, 4], mask=[0, 1, 0, 0])", "np.asarray"),
    matrix_operand: ("x * np.asmatrix(np.ones((4, 4)))", "np.asarray"),
    mask_index: ("x[x > 0]", "np.where(mask, x, 0)"),
    where_without_values: ("np.where(x > 0)", "give both values"),
    recorded_slice_bound: ("x[: y.sum()]", "mask with np.where"),
    index_out_of_range: ("x[3]", "index 3 is out of range for axis 0 of f32[3,4]"),
    float_index: ("x[y]", "cast it to an integer"),
    too_many_indices: ("x[0, 0, 0]", "f32[3,4] has 2 axes, 3 are indexed"),
    fractional_index: ("x[1.5]", "an index of type float"),
    einsum_extents: ('np.einsum("ij,jk->ik", x, y)', "'j' has extents 4 and 3"),
    einsum_terms: ('np.einsum("ij->i", x, y)', "1 terms for 2 operands"),
    einsum_lists: ("np.einsum(x, [0, 1], [1, 0])", "write the subscript string"),
    column_major: ('x.reshape(12, order="F")', "order='F' is not recorded"),
    squeeze_long_axis: ("np.squeeze(x, 0)", "has extent 3, not 1"),
    uneven_split: ("np.split(x, 3, axis=1)", "np.array_split"),
    concatenate_misfit: ("np.concatenate([x, y[:, :2]], axis=0)", "f32[3,4] and f32[3,2] differ outside axis 0"),
    unknown_pad_mode: ('np.pad(x, 1, mode="median")', "constant, edge, reflect"),
    numbers_of_a_value: ("x.tolist", "tp.observe"),
    linspace_of_value: ("np.linspace(0, x, 3)", "np.linspace(0, 1, n)"),
    arange_of_value: ("np.arange(x.sum())", "do not exist while recording"),
    full_of_value: ("np.full((2,), x.sum())", "do not exist while recording"),
    item_is_no_number: ("y * x.sum().item()", "can only be formatted"),
    item_of_many: ("x.item()", "one element is needed, it has 12"),
    integer_index_of_value: ("[1, 2, 3][x.sum()]", "np.take"),
    pickled: ("pickle.dumps(x)", "cannot be pickled"),
    norm_by_decomposition: ("np.linalg.norm(x, 2)", "needs a decomposition"),
    repeated_by_value: ("np.repeat(x, x.argmax(), axis=0)", "would depend on data"),
    negative_integer_power: ('x.astype("i4") ** -1', "cast the base to a float"),
    unsigned_overflow: ('x.astype("u1") + 300', "300 does not fit u8"),
    ufunc_at: ("np.add.at(x, [0], 1)", "no recorded meaning"),
    divided_by_nothing: ("x / {}", "a dict is no operand"),
}


@pytest.mark.parametrize("function", EXPECTED, ids=lambda function: function.__name__)
def test_a_refusal_names_the_expression_and_the_remedy(function: Any) -> None:
    where, what = EXPECTED[function]
    text, message = refusal(function)
    assert text == where
    assert what in message


def test_an_assert_on_a_value_is_refused_at_its_condition() -> None:
    text = (
        "def f(x):\n    assert (x > 0).sum() > 0, 'empty'\n    return x\n"  # not in this file: pytest rewrites asserts
    )
    space: dict[str, Any] = {}
    exec(compile(text, "asserts.py", "exec"), space)
    with pytest.raises(RecordingError) as caught:
        record_with(space["f"], (f32[2],), sources={"asserts.py": text})
    assert caught.value.span == ("asserts.py", 2, 11, 2, 28)


def test_a_result_that_is_no_array_is_refused() -> None:
    with pytest.raises(RecordingError, match=r"the result\['b'\] is a str"):
        record(returned_text)


def test_an_error_inside_a_formula_stands_at_the_callers_expression() -> None:
    from topos_core import nn

    def model(x, y):
        return nn.linear(x, y.T)

    assert refusal(model)[0] == "nn.linear(x, y.T)"


def test_missing_attributes_answer_hasattr_and_getattr_as_on_any_object() -> None:
    def model(x):
        assert not hasattr(x, "argsort")
        assert not hasattr(x, "numpy")
        assert getattr(x, "detach", None) is None
        return x + 1

    tape = trace(model, x=f32[2])
    assert [op.name for op in tape.ops] == ["input", "constant", "add"]


def test_an_error_that_was_caught_lets_recording_go_on() -> None:
    def model(x):
        try:
            return x * float(x.sum())
        except RecordingError:
            return x * x.sum()

    assert [op.name for op in trace(model, x=f32[2]).ops] == ["input", "sum", "sum", "broadcast", "mul"]


def test_the_recorders_own_error_is_told_where_numpy_replaces_it() -> None:
    def model(x):
        return np.fromiter(x, float)

    with pytest.raises(RecordingError, match="its number does not exist while recording"):
        trace(model, x=f32[3])


def test_an_earlier_swallowed_error_does_not_hide_what_the_function_raised() -> None:
    def model(x):
        with contextlib.suppress(RecordingError):
            float(x.sum())
        raise KeyError("mine")

    with pytest.raises(TraceError, match="the function raised KeyError: 'mine'") as caught:
        trace(model, x=f32[3])
    assert caught.value.code == "TP402"


def test_copies_of_a_value_are_handles_of_the_same_value() -> None:
    def model(x):
        return copy.deepcopy(x) + copy.copy(x)

    assert trace(model, x=f32[3]).ops[1].operands == (0, 0)


def test_integer_overflow_of_a_scalar_is_told_with_both() -> None:
    with pytest.raises(RecordingError, match="5000000000 does not fit i32"):
        trace(lambda n: n + 5_000_000_000, n=i32[2])


def test_functions_of_topos_work_outside_of_a_trace() -> None:
    x = np.linspace(-1, 1, 12, dtype="f4").reshape(3, 4)
    assert erf(x).dtype == np.float32
    np.testing.assert_array_equal(as_strided(x, (2, 2), (1, 2), 3), [[x.flat[3], x.flat[5]], [x.flat[4], x.flat[6]]])
    np.testing.assert_array_equal(unfold(x, 1, 2, 2, 1), np.lib.stride_tricks.sliding_window_view(x, 2, axis=1)[:, ::2])
    with pytest.raises(RecordingError, match="stay inside"):
        as_strided(x, (5, 5), (4, 1))


def test_bf16_stays_bf16_beside_python_numbers_and_integers() -> None:
    tape = trace(
        lambda x, n: (x * 2.0 + n, np.where(x > 0, x, 0.0), np.clip(x, 0, 1), x @ x.T, x.mean()), x=bf16[2, 2], n=i32[2]
    )
    assert [tape.type_of(value).dtype for value in tape.results] == ["bf16"] * 5
