"""Convolutions are found in any spelling, with the same facts, and mean what the recorded ops mean."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from tests.core.matching import spellings
from tests.core.matching.check import check, matches_of, outermost
from topos_core import nn
from topos_core.matching.facts import Window
from topos_core.matching.search import search
from topos_core.patterns.convolution import PATTERN
from topos_core.recording.trace import trace


def convolution(function, specs):
    """Gives the one outermost convolution of a program, evaluated against the interpreter."""
    tape, pool = check(function, specs)
    (match,) = outermost(matches_of(pool, "convolution"))
    return tape, match


@pytest.mark.parametrize("function", spellings.SPELLINGS, ids=lambda f: f.__name__)
def test_every_spelling_gives_the_same_convolution(function):
    tape, match = convolution(function, spellings.SPECS)
    assert match.facts.windows == (Window(3, 2, 1, 1, 1), Window(2, 1, 2, 0, 3))
    assert (match.facts.groups, match.facts.batch, match.facts.in_channels, match.facts.out_channels) == (1, 2, 3, 4)
    assert match.facts.image.roles == ("b", "f", "0", "1")
    assert match.bindings["x"] == tape.inputs[0]


@pytest.mark.parametrize(("function", "specs"), spellings.OTHERS, ids=lambda p: getattr(p, "__name__", ""))
def test_other_convolutions_are_found(function, specs):
    convolution(function, specs)


def test_groups_and_depthwise_are_told_apart_from_batches():
    for function, groups, inner in (
        (spellings.grouped, 2, 2),
        (spellings.depthwise, 4, 1),
        (spellings.depthwise_shifted, 4, 1),
    ):
        specs = next(s for f, s in spellings.OTHERS if f is function)
        facts = convolution(function, specs)[1].facts
        assert (facts.groups, facts.in_channels) == (groups, inner)


def channel_by_channel(x, w):
    def one(o):
        taps = ((c, i, j) for c in range(2) for i in range(3) for j in range(3))
        return sum(x[:, c, i : i + 6, j : j + 6] * w[o, c, i, j] for c, i, j in taps)

    return np.stack([one(o) for o in range(4)], axis=1)


def image_by_image(x, w):
    def one(c):
        return sum(x[:, c, i : i + 6, j : j + 6] * w[c, 0, i, j] for i in range(3) for j in range(3))

    return np.concatenate([one(c)[:, None] for c in range(4)], axis=1)


def in_two_groups(x, w):
    halves = zip(np.split(x, 2, 1), np.split(w, 2, 0), strict=True)
    return np.concatenate([nn.conv2d(image, kernel) for image, kernel in halves], axis=1)


@pytest.mark.parametrize(
    ("function", "channels", "kernel", "groups"),
    [(channel_by_channel, 2, "4,2", 1), (image_by_image, 4, "4,1", 4), (in_two_groups, 4, "4,2", 2)],
    ids=lambda p: getattr(p, "__name__", None),
)
def test_channels_made_one_at_a_time_are_one_convolution(function, channels, kernel, groups):
    tape, match = convolution(function, {"x": f"f32[2,{channels},8,8]", "w": f"f32[{kernel},3,3]"})
    assert match.root == tape.results[0]
    assert match.bindings == {"x": tape.inputs[0], "kernel": tape.inputs[1]}
    assert (match.facts.groups, match.facts.out_channels) == (groups, 4)


def test_a_transposed_convolution_has_base_dilation_and_a_reversed_kernel():
    specs = next(s for f, s in spellings.OTHERS if f is spellings.transposed)
    tape, match = convolution(spellings.transposed, specs)
    assert match.facts.windows == (Window(3, 1, 1, 2, 2, 2, True),) * 2
    assert match.bindings == {"x": tape.inputs[0], "kernel": tape.inputs[1]}


def test_what_facts_cannot_say_is_bound_above_it():
    for function, name in (
        (spellings.reversed_image, "reverse"), (spellings.cropped_then_padded, "slice"),
        (spellings.half_the_channels, "slice"), (spellings.shuffled_channels, "reshape"),
    ):  # fmt: skip
        specs = next(s for f, s in spellings.OTHERS if f is function)
        tape, match = convolution(function, specs)
        assert tape.ops[match.bindings["x"]].name in (name, "permute"), function.__name__


def test_a_crop_below_the_windows_is_a_negative_pad():
    def cropped(x, w):
        return np.einsum("bchwij,ocij->bohw", sliding_window_view(x[:, :, 1:-1, 2:], (3, 3), axis=(2, 3)), w)

    tape, match = convolution(cropped, {"x": "f32[2,3,8,9]", "w": "f32[4,3,3,3]"})
    assert match.facts.windows == (Window(3, low=-1, high=-1), Window(3, low=-2))
    assert match.bindings["x"] == tape.inputs[0]


def test_the_kernel_is_the_value_nearest_to_the_root_that_rearranges_it_whole():
    tape, match = convolution(spellings.im2col, spellings.SPECS)
    assert tape.type_of(match.bindings["kernel"]).shape == (18, 4)
    assert match.facts.kernel.shape == (3, 3, 2, 4)
    assert match.facts.kernel.roles == ("i", "0", "1", "o")


def test_units_get_the_roles_of_the_recorded_order_back():
    _, match = convolution(spellings.unit_everything, {"x": "f32[1,1,6,6]", "w": "f32[2,1,3,3]"})
    assert match.facts.image.shape == (1, 1, 6, 6)
    assert match.facts.image.roles == ("b", "f", "0", "1")
    assert match.facts.kernel.roles == ("i", "0", "1", "o")
    assert match.facts.result.roles == ("b", "0", "1", "f")


@pytest.mark.parametrize(
    ("name", "function", "specs"),
    [
        ("linear", lambda x, w: x @ w, {"x": "f32[2,5,3]", "w": "f32[3,4]"}),
        ("linear on part", lambda x, w: x[:, 1:] @ w, {"x": "f32[2,5,3]", "w": "f32[3,4]"}),
        ("matrix product", lambda x, w: x @ w, {"x": "f32[5,3]", "w": "f32[3,4]"}),
        ("every other row", lambda x, w: x[::2] @ w, {"x": "f32[6,3]", "w": "f32[3,4]"}),
        ("scores", lambda q, k: q @ np.swapaxes(k, -1, -2), {"q": "f32[2,3,5,4]", "k": "f32[2,3,5,4]"}),
        (
            "scores by einsum",
            lambda q, k: np.einsum("bqhd,bkhd->bhqk", q.reshape(2, 5, 3, 4), k.reshape(2, 5, 3, 4)),
            {"q": "f32[2,5,12]", "k": "f32[2,5,12]"},
        ),
        (
            "heads",
            lambda x, w: np.einsum("bthd,de->bthe", x.reshape(2, 5, 3, 4), w),
            {"x": "f32[2,5,12]", "w": "f32[4,6]"},
        ),
        ("whole image", lambda x, w: x.reshape(2, -1) @ w.reshape(4, -1).T, {"x": "f32[2,3,3,3]", "w": "f32[4,3,3,3]"}),
        (
            "picked rows",
            lambda x, w: x[:, 0] * w[0] + x[:, 2] * w[1] + x[:, 3] * w[2],
            {"x": "f32[2,5,4]", "w": "f32[3,4]"},
        ),
        (
            "picked and stacked",
            lambda x, w: np.stack([x[:, 0], x[:, 2], x[:, 3]], 2) @ w,
            {"x": "f32[2,5,4]", "w": "f32[3,6]"},
        ),
        ("outer product", lambda p, f: p[:, :, None] * f, {"p": "f32[2,5]", "f": "f32[4]"}),
        ("square", lambda x, w: x @ w, {"x": "f32[4,4]", "w": "f32[4,4]"}),
        ("ones", lambda x, w: x @ w, {"x": "f32[1,1]", "w": "f32[1,1]"}),
    ],
    ids=lambda p: p if isinstance(p, str) else "",
)
def test_plain_products_are_no_convolutions(name, function, specs):
    _, pool = check(function, specs)
    assert not matches_of(pool, "convolution")
    assert not pool.near_misses


def test_a_pad_of_another_number_is_told_with_the_number_and_the_pad():
    def padded(x, w):
        y = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
        return np.einsum("bchwij,ocij->bohw", sliding_window_view(y, (3, 3), axis=(2, 3)), w)

    tape, pool = check(padded, {"x": "f32[2,3,6,6]", "w": "f32[4,3,3,3]"})
    (match,) = matches_of(pool, "convolution")
    assert tape.ops[match.bindings["x"]].name == "pad"
    (miss,) = match.stopped
    assert (miss.pattern, miss.code, miss.found) == ("convolution", "pad-fill", "a pad of -inf")
    assert tape.ops[miss.at].name == "pad"
    assert not pool.near_misses
    assert 0 < miss.steps_held < miss.steps


def taps_at(offsets):
    """Sums products of slices at the given offsets with the kernel's elements in order."""

    def function(x, w):
        terms = [(x[:, :, i : i + 4, j : j + 4], w[:, :, k]) for k, (i, j) in enumerate(offsets)]
        return sum(np.einsum("bchw,oc->bohw", image, tap) for image, tap in terms)

    return function


def stacked_at(offsets):
    def function(x, w):
        taps = np.stack([x[:, :, i : i + 4, j : j + 4] for i, j in offsets], axis=2)
        return np.einsum("bckhw,ock->bohw", taps, w)

    return function


NINE = [(i, j) for i in range(3) for j in range(3)]


@pytest.mark.parametrize("spelled", [taps_at, stacked_at])
@pytest.mark.parametrize(
    ("offsets", "found"),
    [
        ([*NINE[:4], (1, 2), *NINE[5:]], "offset (1, 2) twice and (1, 1) never, along axes 2, 3"),
        ([(i, j) for i in (0, 1, 3) for j in range(3)], "offset 3 along axis 2, where the others are 1 apart"),
        ([(0, 0), (0, 1), (1, 0)], "no offset (1, 1), along axes 2, 3"),
    ],
    ids=["a slice twice", "uneven steps", "a hole"],
)
def test_slices_off_the_grid_are_told_with_the_one_at_fault(spelled, offsets, found):
    _, pool = check(spelled(offsets), {"x": "f32[2,3,7,7]", "w": f"f32[4,3,{len(offsets)}]"})
    (miss,) = pool.near_misses
    assert (miss.code, miss.found) == ("grid", found)


def test_slices_in_another_order_than_the_kernel_are_told():
    offsets = [NINE[0], NINE[5], *NINE[2:5], NINE[1], *NINE[6:]]
    _, pool = check(taps_at(offsets), {"x": "f32[2,3,7,7]", "w": "f32[4,3,9]"})
    (miss,) = pool.near_misses
    assert miss.found == "slices whose order is not that of the kernel's elements"


def test_one_window_view_serves_two_convolutions():
    def two(x, w, v):
        u = sliding_window_view(x, (3, 3), axis=(2, 3))
        return np.einsum("bchwij,ocij->bohw", u, w), np.einsum("bchwij,ocij->bohw", u, v)

    _, pool = check(two, {"x": "f32[2,3,6,6]", "w": "f32[4,3,3,3]", "v": "f32[5,3,3,3]"})
    first, second = matches_of(pool, "convolution")
    assert first.interior & second.interior
    assert not first.computing & second.computing


def test_dead_convolutions_are_not_matched():
    def dead(x, w):
        np.einsum("bchwij,ocij->bohw", sliding_window_view(x, (3, 3), axis=(2, 3)), w)
        return x + 1.0

    assert not search(trace(dead, x="f32[2,3,6,6]", w="f32[4,3,3,3]"), [PATTERN]).matches


def taps(subtracted, negated=False):
    """Nine taps summed one by one, some of them subtracted or negated."""

    def program(x, w):
        y = 0
        for i in range(3):
            for j in range(3):
                tap = np.einsum("nchw,oc->nohw", x[:, :, i : i + 4, j : j + 4], w[:, :, i, j])
                y = y + tap if (i, j) not in subtracted else y + -tap if negated else y - tap
        return y

    return program


IMAGE = {"x": "f32[2,3,6,6]", "w": "f32[4,3,3,3]"}


@pytest.mark.parametrize(
    ("program", "specs", "at", "found"),
    [
        (taps([(1, 1)]), IMAGE, "(1, 1), along axes 2, 3, is", "1 of 9 subtracted"),
        (taps([(0, 0)]), IMAGE, "(0, 0), along axes 2, 3, is", "1 of 9 subtracted"),
        (taps([(2, 2)]), IMAGE, "(2, 2), along axes 2, 3, is", "1 of 9 subtracted"),
        (taps([(0, 1)], True), IMAGE, "(0, 1), along axes 2, 3, is", "1 of 9 subtracted"),
        (taps([(0, 1), (2, 0)]), IMAGE, "the first at offset (0, 1), along axes 2, 3, are", "2 of 9 subtracted"),
        (lambda x, w: x[:, :-2] * w[0] - x[:, 1:-1] * w[1] + x[:, 2:] * w[2], {"x": "f32[2,9]", "w": "f32[3]"},
         "1, along axis 1, is", "1 of 3 subtracted"),
        (lambda w, x: x[:, :-2] * w[0] + x[:, 1:-1] * w[1] - x[:, 2:] * w[2], {"w": "f32[3]", "x": "f32[2,9]"},
         "2, along axis 1, is", "1 of 3 subtracted"),
    ],
)  # fmt: skip
def test_a_tap_of_the_wrong_sign_is_told_where_it_is_subtracted(program, specs, at, found):
    tape = trace(program, **specs)
    (miss,) = search(tape, [PATTERN]).near_misses
    assert (miss.code, miss.found, miss.root) == ("sign", found, tape.results[0])
    assert f"{at} subtracted" in miss.sentence
    assert tape.ops[miss.at].name in ("sub", "neg")


@pytest.mark.parametrize(
    ("program", "specs"),
    [
        (lambda x, w: x[:, :-1] * w[0] - x[:, 1:] * w[1], {"x": "f32[2,9]", "w": "f32[2]"}),
        (lambda x, w: x[0] * w[0] + x[1] * w[1] + x[2] * w[2] - x[3] * w[3], {"x": "f32[4]", "w": "f32[4]"}),
        (lambda x, w: x[0] * w[0] + x[1] * w[1] + x[2] * w[2] - x[3] * w[3], {"x": "f32[4,5]", "w": "f32[4]"}),
        (lambda x, w: x[:-2] * w[0] - x[1:-1] * w[2] + x[2:] * w[1], {"x": "f32[9]", "w": "f32[3]"}),
        (lambda a, b: a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2], {"a": "f32[4,5]", "b": "f32[4,5]"}),
        (lambda x, w: x[:-3] * w[0] - x[1:-2] * w[1] - x[2:-1] * w[2] + x[3:] * w[3], {"x": "f32[9]", "w": "f32[4]"}),
    ],
    ids=["two", "numbers", "rows", "another order", "quaternions", "half of them"],
)
def test_what_was_not_meant_as_taps_is_not_told_of_signs(program, specs):
    pool = search(trace(program, **specs), [PATTERN])
    assert [miss.code for miss in pool.near_misses if miss.code == "sign"] == []


def test_a_slice_that_is_added_once_more_is_told():
    def program(x, w):
        y = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
        taps = [y[:, i : i + 6, j : j + 6] * w[i, j] for i, j in [*NINE, (0, 2)]]
        return sum(taps[1:], taps[0])

    _, pool = check(program, {"x": "f32[2,6,6,3]", "w": "f32[3,3,3]"})
    (miss,) = pool.near_misses
    assert (miss.code, miss.found) == ("grid", "a slice that stands twice, at offset (-1, 1)")
