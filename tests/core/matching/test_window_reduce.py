"""Pools are found in any spelling; the pad's fill and the divisor are part of what they are."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from tests.core.matching.check import check, matches_of
from topos_core import nn
from topos_core.matching.facts import Window


def windows(x):
    return sliding_window_view(x, (2, 2), axis=(2, 3))[:, :, ::2, ::2].max(axis=(-2, -1))


def tiles(x):
    return x.reshape(2, 3, 3, 2, 4, 2).max(axis=(3, 5))


def tiles_one_by_one(x):
    return x.reshape(2, 3, 3, 2, 8).max(axis=3).reshape(2, 3, 3, 4, 2).max(axis=-1)


def fold(x):
    return np.maximum(
        np.maximum(x[:, :, ::2, ::2], x[:, :, 1::2, 1::2]), np.maximum(x[:, :, ::2, 1::2], x[:, :, 1::2, ::2])
    )


def stacked(x):
    return np.stack([x[:, :, i::2, j::2] for i in (0, 1) for j in (0, 1)]).max(axis=0)


def taken(x):
    rows, columns = np.arange(3)[:, None] * 2 + np.arange(2), np.arange(4)[:, None] * 2 + np.arange(2)
    return np.take(np.take(x, rows, axis=2), columns, axis=4).max(axis=(3, 5))


def one_position_at_a_time(x):
    rows = [[x[:, :, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2].max(axis=(2, 3)) for j in range(4)] for i in range(3)]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def one_channel_at_a_time(x):
    return np.stack([fold(x[:, c : c + 1])[:, 0] for c in range(3)], axis=1)


@pytest.mark.parametrize(
    "function",
    [one_position_at_a_time, one_channel_at_a_time, windows, tiles, tiles_one_by_one, fold, stacked, taken],
    ids=lambda f: f.__name__,
)
def test_every_spelling_gives_the_same_pool(function):
    _, pool = check(function, {"x": "f32[2,3,6,8]"})
    match = matches_of(pool, "window_reduce")[-1]
    assert match.facts.windows == (Window(), Window(), Window(2, 2), Window(2, 2))
    assert (match.facts.reducer, match.facts.pad_fill, match.facts.scale) == ("max", None, 1.0)


@pytest.mark.parametrize(
    ("reduce", "fill", "code"),
    [
        (np.max, -np.inf, None),
        (np.min, np.inf, None),
        (np.sum, 0.0, None),
        (np.max, 0.0, "pad-fill"),
        (np.min, 0.0, "pad-fill"),
    ],
)
def test_a_pool_pads_with_its_neutral_element(reduce, fill, code):
    def padded(x):
        y = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 2)), constant_values=fill)
        return reduce(sliding_window_view(y, (3, 3), axis=(2, 3)), axis=(-2, -1))

    tape, pool = check(padded, {"x": "f32[2,3,6,6]"})
    (match,) = matches_of(pool, "window_reduce")
    if code is None:
        assert match.facts.pad_fill == fill
        assert match.facts.windows[2:] == (Window(3, low=1, high=1), Window(3, low=1, high=2))
    else:  # the pad stays what it is, and the windows are those of the padded value
        assert tape.ops[match.bindings["x"]].name == "pad"
        assert match.facts.pad_fill is None
        assert match.facts.windows[2:] == (Window(3), Window(3))
        assert [(miss.code, miss.numbers["fill"]) for miss in match.stopped] == [(code, 0.0)]
    assert not pool.near_misses


def averaged(divide):
    def function(x):
        return divide(sliding_window_view(x, (3, 3), axis=(2, 3)).sum(axis=(-2, -1)))

    return function


@pytest.mark.parametrize(
    "divide", [lambda t: t / 9, lambda t: t * (1 / 9), lambda t: (1 / 9) * t], ids=["div", "mul", "rmul"]
)
def test_a_sum_divided_by_its_count_is_an_average(divide):
    _, pool = check(averaged(divide), {"x": "f32[2,3,6,6]"})
    total, average = matches_of(pool, "window_reduce")
    assert (total.facts.scale, average.facts.scale) == (1.0, 1 / 9)
    assert not pool.near_misses


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.reshape(2, 3, 3, 2, 8).mean(3).reshape(2, 3, 3, 4, 2).mean(-1),
        lambda x: x.reshape(2, 3, 3, 2, 4, 2).mean(-1).mean(-2),
        lambda x: (x.reshape(2, 3, 3, 2, 8).sum(3) * 0.5).reshape(2, 3, 3, 4, 2).sum(-1) / 2,
    ],
    ids=["tiles of tiles", "axes of tiles", "by hand"],
)
def test_averages_taken_axis_by_axis_are_one(function):
    tape, pool = check(function, {"x": "f32[2,3,6,8]"})
    (match,) = [match for match in matches_of(pool, "window_reduce") if match.root == tape.results[0]]
    assert match.facts.windows == (Window(), Window(), Window(2, 2), Window(2, 2))
    assert match.facts.scale == 1 / 4
    assert match.bindings == {"x": tape.inputs[0]}


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (y, y.reshape(2, 3, 3, 4, 2).mean(-1)),
        lambda x, y: (y + x[:, :, :3], y.reshape(2, 3, 3, 4, 2).mean(-1)),
        lambda x, y: (None, y.reshape(2, 3, 3, 4, 2).sum(-1) * 0.3),
    ],
    ids=["returned", "read", "another factor"],
)
def test_an_average_that_is_needed_by_itself_stays_one(function):
    _, pool = check(lambda x: function(x, x.reshape(2, 3, 3, 2, 8).mean(3)), {"x": "f32[2,3,6,8]"})
    assert all(len([w for w in m.facts.windows if w != Window()]) == 1 for m in matches_of(pool, "window_reduce"))


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_narrow_floats_are_reduced_in_f32(dtype):
    def cast(x):
        return sliding_window_view(x, (3, 3), axis=(2, 3)).astype(np.float32)

    windows = (Window(), Window(), Window(3), Window(3))
    for function, scale, reducer in (
        (lambda x: cast(x).mean((-2, -1)), 1 / 9, "sum"),
        (lambda x: cast(x).mean((-2, -1)).astype(x.dtype), 1 / 9, "sum"),
        (lambda x: cast(x).max((-2, -1)), 1.0, "max"),
        (lambda x: sliding_window_view(x, (3, 3), axis=(2, 3)).mean((-2, -1)), 1 / 9, "sum"),
    ):
        tape, pool = check(function, {"x": f"{dtype}[2,3,6,8]"})
        (match,) = [match for match in matches_of(pool, "window_reduce") if match.root == tape.results[0]]
        assert (match.facts.windows, match.facts.scale, match.facts.reducer) == (windows, scale, reducer)
        assert match.bindings == {"x": tape.inputs[0]}


@pytest.mark.parametrize("narrower", ["f32", "f16"])
def test_a_cast_that_rounds_stays_outside(narrower):
    def function(x):
        return sliding_window_view(x.astype("f4" if narrower == "f32" else "f2"), 3, axis=1).astype("f8").sum(-1)

    _, pool = check(function, {"x": "f64[2,9]"})
    assert not matches_of(pool, "window_reduce")


def padded_windows(x, sides=((1, 1), (1, 2)), step=1):
    x = np.pad(x, ((0, 0),) * (x.ndim - 2) + sides)
    return sliding_window_view(x, (3, 3), axis=(-2, -1))[..., ::step, ::step, :, :]


def by_ones(x):
    return padded_windows(x).sum((-2, -1)) / padded_windows(np.ones_like(x)).sum((-2, -1))


def by_ones_of_one_image(x):
    return padded_windows(x).sum((-2, -1)) / padded_windows(np.ones_like(x[0, 0])).sum((-2, -1))


def by_averages_of_ones(x):
    return padded_windows(x).mean((-2, -1)) / padded_windows(np.ones_like(x)).mean((-2, -1))


def by_a_table(x):
    return padded_windows(x).sum((-2, -1)) / padded_windows(np.ones((6, 5), np.float32)).sum((-2, -1))


def by_integers(x):
    return padded_windows(x).sum((-2, -1)) / padded_windows(np.ones_like(x, np.int64)).sum((-2, -1)).astype(x.dtype)


def by_the_formula(x):
    return nn.avg_pool(x, 3, 1, ((1, 1), (1, 2)), count_include_pad=False)


def by_a_fold(x):
    def total(image):
        p = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 2)))
        return sum(p[..., i : i + 6, j : j + 6] for i in range(3) for j in range(3))

    return total(x) / total(np.ones_like(x))


@pytest.mark.parametrize(
    "function",
    [by_ones, by_ones_of_one_image, by_averages_of_ones, by_a_table, by_integers, by_the_formula, by_a_fold],
    ids=lambda f: f.__name__,
)
def test_an_average_divides_by_the_elements_in_the_image(function):
    tape, pool = check(function, {"x": "f32[2,3,6,5]"})
    match = matches_of(pool, "window_reduce")[-1]
    assert match.root == tape.results[0]
    assert (match.facts.counted, match.facts.scale) == (((0, 0),) * 4, 1.0)
    assert [(window.low, window.high) for window in match.facts.windows[2:]] == [(1, 1), (1, 2)]
    assert not pool.near_misses


def test_windows_that_reach_past_their_padding_count_the_padding_alone():
    def function(x):
        total = padded_windows(x, ((1, 2), (1, 2)), 2).sum((-2, -1))
        ones = np.ones_like(x, shape=(1, 1, 8, 8))  # with one row and column of padding on each side
        return total / padded_windows(ones, ((0, 1), (0, 1)), 2).sum((-2, -1))

    tape, pool = check(function, {"x": "f32[2,3,6,6]"})
    (match,) = [match for match in matches_of(pool, "window_reduce") if match.root == tape.results[0]]
    assert match.facts.counted == ((0, 0), (0, 0), (1, 1), (1, 1))


@pytest.mark.parametrize(
    "counts",
    [
        lambda x: padded_windows(np.ones_like(x), ((1, 1), (0, 3))),
        lambda x: padded_windows(np.ones_like(x))[:, :, ::-1],
        lambda x: padded_windows(2 * np.ones_like(x)),
        lambda x: padded_windows(np.ones((6, 6), np.float32) + np.eye(6, dtype=np.float32)),
    ],
    ids=["another pad", "from the end", "twos", "no ones"],
)
def test_counts_of_other_windows_stay_outside(counts):
    def function(x):
        return padded_windows(x).sum((-2, -1)) / counts(x).sum((-2, -1))

    tape, pool = check(function, {"x": "f32[2,3,6,6]"})
    assert all(match.root != tape.results[0] for match in matches_of(pool, "window_reduce"))


def test_counts_that_others_read_belong_to_nobody():
    def function(x, y):
        counts = padded_windows(np.ones_like(x)).sum((-2, -1))
        return padded_windows(x).sum((-2, -1)) / counts, padded_windows(y).sum((-2, -1)) / counts, counts

    tape, pool = check(function, {"x": "f32[2,3,6,6]", "y": "f32[2,3,6,6]"})
    first, second, counts = tape.results
    found = {match.root: match for match in matches_of(pool, "window_reduce")}
    assert {first, second} <= found.keys()
    assert counts not in found
    assert counts not in found[first].interior | found[second].interior


def test_another_divisor_is_a_note_on_the_sum():
    _, pool = check(averaged(lambda t: t / 8), {"x": "f32[2,3,6,6]"})
    (total,) = matches_of(pool, "window_reduce")
    (note,) = total.stopped
    assert (note.code, note.numbers["divisor"], note.numbers["count"]) == ("divisor", 8, 9)
    assert not pool.near_misses


@pytest.mark.parametrize(
    ("name", "function", "spec"),
    [
        ("mean", lambda x: x.mean(axis=-1), "f32[2,9]"),
        ("statistics", lambda x: x.mean(axis=(0, 2, 3)), "f32[2,3,4,4]"),
        ("group statistics", lambda x: x.reshape(2, 2, 3, 16).sum(axis=(2, 3)), "f32[2,6,4,4]"),
        ("two pieces", lambda x: x[:, 0] + x[:, 1], "f32[2,2,5]"),
        ("picked columns", lambda x: x[:, 0] + x[:, 1] + x[:, 4], "f32[2,5]"),
        ("residual", lambda x: x + x, "f32[2,5]"),
        ("maximum of two", lambda x: np.maximum(x, 0), "f32[2,5]"),
        ("all ones", lambda x: x.max(axis=(2, 3)), "f32[1,1,1,1]"),
    ],
    ids=lambda p: p if isinstance(p, str) else "",
)
def test_other_reductions_are_no_pools(name, function, spec):
    _, pool = check(function, {"x": spec})
    assert not matches_of(pool, "window_reduce")
    assert not pool.near_misses


def test_slices_off_the_grid_are_told():
    _, pool = check(lambda x: np.maximum(np.maximum(x[:, 0:5], x[:, 1:6]), x[:, 3:8]), {"x": "f32[2,9]"})
    assert [miss.code for miss in pool.near_misses] == ["grid"]


def test_integers_pool_with_their_own_limits():
    def padded(x):
        y = np.pad(x, ((0, 0), (1, 1)), constant_values=-128)
        return sliding_window_view(y, 3, axis=1).max(axis=-1)

    _, pool = check(padded, {"x": "i8[2,9]"})
    (match,) = matches_of(pool, "window_reduce")
    assert match.facts.pad_fill == -128
