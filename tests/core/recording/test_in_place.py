"""`x += y` means what it means to a NumPy array, or is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.core.recording.check import agrees, refusal


def fresh(x, y):
    z = x * 2
    z += y
    return z


def aliased(x, y):
    z = x * 2
    w = z
    z += y
    return w + z


def argument(x, y):
    x += y
    return x


def element_of_a_list(x, y):
    parts = [x * 2, y * 2]
    parts[0] += y
    return parts[0]


class Holder:
    z: Any


def attribute(x, y):
    holder = Holder()
    holder.z = x * 2
    holder.z += y
    return holder.z


def keeps_its_dtype(x, y):
    z = x * 2
    z *= np.float64(3)
    return z


def copied_by_plus(x, y):
    z = x * 2
    w = +z
    z += y
    return w + z


def copied_by_astype(x, y):
    z = x * 2
    w = z.astype(z.dtype)
    z += y
    return w + z


def through_a_function(x, y):
    def bump(a):
        a += y
        return a * 0

    z = x * 2
    return bump(z) + z


def in_a_loop(x, y):
    total = np.zeros_like(x)
    for k in range(3):
        total += x * k
    return total


def every_operator(x, y):
    z = abs(x) + 1
    z -= y
    z *= 3
    z /= 2
    z **= 2
    z //= 1
    z %= 5
    return z


def bits(n, y):
    a = n + 1
    a &= 6
    a |= 1
    a ^= 3
    a //= 2
    return a


def matrix(x, y):
    z = x @ y.T
    z @= z
    return z


def temporary_was_reshaped(x, y):
    z = (x * 2).reshape(12)
    z += 1
    return z


def temporary_view_is_gone(x, y):
    z = x * 2
    first = z[0].sum()
    z += y
    return z * first


def broadcast_by_an_operator(x, y):
    bias = y[0] * 1
    z = x + bias
    bias += 1
    return z + bias


def reduced_with_kept_axes(x, y):
    mean = x.mean(1, keepdims=True)
    z = x - mean
    mean += 1
    return z + mean


def scalar_picked(x, y):
    z = x * 2
    one = z[0, 0]
    z += y
    return z + one


def rows_taken_by_an_index_array(x, y):
    z = x * 2
    rows = z[[0, 1]]
    z += y
    return z[:2] + rows


def flattened(x, y):
    z = x * 2
    flat = z.flatten()
    z += y
    return z.reshape(-1) + flat


def whole_view(x, y):
    z = x * 2
    w = z[:]
    w += y
    return w + z


def padded_by_nothing(x, y):
    z = x * 2
    w = np.pad(z, 0)
    z += y
    return w + z


def scalars_are_rebound(x, y):
    s = x.sum()
    t = s
    s += 1
    return s + t * 0, t


def a_scalar_grows(x, y):
    s = x.sum()
    s *= y
    return s


def a_picked_scalar_changes_its_dtype(x, y):
    s = x[0, 0]
    s += np.float64(1)
    return s


def a_zero_dimensional_view_is_an_array(x, y):
    z = x[0, 0:1] * 2
    s = z.reshape(())
    del z
    t = s
    s += 1
    return t * 1


SAME = [
    scalars_are_rebound, a_scalar_grows, a_picked_scalar_changes_its_dtype, a_zero_dimensional_view_is_an_array,
    fresh, aliased, argument, element_of_a_list, attribute, keeps_its_dtype, copied_by_plus, copied_by_astype,
    through_a_function, in_a_loop, every_operator, matrix, temporary_was_reshaped, temporary_view_is_gone,
    broadcast_by_an_operator, reduced_with_kept_axes, scalar_picked, rows_taken_by_an_index_array, flattened, whole_view,
    padded_by_nothing,
]  # fmt: skip


@pytest.mark.parametrize("function", SAME, ids=lambda function: function.__name__)
def test_an_in_place_update_gives_what_numpy_gives(function: Any) -> None:
    agrees(function)


def test_integers_update_in_place_too() -> None:
    from topos_core.recording.spec import f32, i32

    agrees(bits, n=i32[3, 4] < 50, y=f32[2])


def grows(x, y):
    z = x[0] * 2
    z += y
    return z


def changes_kind(x, y):
    n = x.astype("i4")
    n += 1.5
    return n


def divides_integers(x, y):
    n = x.astype("i4")
    n /= 2
    return n


def updates_a_view(x, y):
    z = x * 2
    first = z[0]
    first += 1
    return z


def updates_under_a_view(x, y):
    z = x * 2
    w = z[0]
    z += y
    return w


def updates_a_transposed_view(x, y):
    z = x * 2
    w = z.T
    w += 1
    return z


def updates_a_view_of_a_view(x, y):
    z = x * 2
    w = z[1:]
    v = w.reshape(-1)
    v += 1
    return z


def updates_under_an_einsum_view(x, y):
    z = x * 2
    w = np.einsum("ij->ji", z)
    z += 1
    return w


def updates_a_slice_by_statement(x, y):
    z = x * 1
    z[1:] += y[1:]
    return z


def updates_under_a_split(x, y):
    z = x * 2
    parts = np.split(z, 2, axis=1)
    z += 1
    return parts[0]


REFUSED = {
    grows: ("z += y", "would change f32[4] to f32[3,4]"),
    changes_kind: ("n += 1.5", "would cast f64[3,4] to i32[3,4]"),
    divides_integers: ("n /= 2", "would cast f64[3,4] to i32[3,4]"),
    updates_a_view: ("first += 1", "would also change f32[3,4]"),
    updates_under_a_view: ("z += y", "would also change f32[4]"),
    updates_a_transposed_view: ("w += 1", "would also change f32[3,4]"),
    updates_a_view_of_a_view: ("v += 1", "would also change"),
    updates_under_an_einsum_view: ("z += 1", "would also change f32[4,3]"),
    updates_a_slice_by_statement: ("z[1:] += y[1:]", "would also change f32[3,4]"),
    updates_under_a_split: ("z += 1", "would also change f32[3,2]"),
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda function: function.__name__)
def test_an_update_that_a_handle_cannot_follow_is_refused(function: Any) -> None:
    where, what = REFUSED[function]
    text, message = refusal(function)
    assert text == where
    assert what in message
