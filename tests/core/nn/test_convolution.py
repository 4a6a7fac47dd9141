"""Convolution against loops over every output element."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.core.nn.check import check, numbers
from topos_core import nn
from topos_core.errors import RecordingError
from topos_core.recording.spec import f32
from topos_core.recording.trace import trace


def reference(x, weight, bias, stride, pads, dilation, groups):
    """Sums products tap by tap in f64."""
    rank = x.ndim - 2
    x = np.pad(x.astype("f8"), ((0, 0), (0, 0), *pads))
    out, inner, *window = weight.shape
    positions = [(x.shape[2 + k] - dilation[k] * (window[k] - 1) - 1) // stride[k] + 1 for k in range(rank)]
    y = np.zeros((x.shape[0], out, *positions))
    for b, o in np.ndindex(x.shape[0], out):
        first = o // (out // groups) * inner
        for place in np.ndindex(*positions):
            for c in range(inner):
                for tap in np.ndindex(*window):
                    at = tuple(p * s + t * d for p, s, t, d in zip(place, stride, tap, dilation, strict=True))
                    y[(b, o, *place)] += x[(b, first + c, *at)] * weight[(o, c, *tap)]
        if bias is not None:
            y[b, o] += bias[o]
    return y


def transposed_reference(x, weight, stride, pads, dilation, groups, extra):
    """Scatters every input element times the kernel."""
    rank = x.ndim - 2
    channels, part, *window = weight.shape
    full = [(x.shape[2 + k] - 1) * stride[k] + dilation[k] * (window[k] - 1) + 1 + extra[k] for k in range(rank)]
    y = np.zeros((x.shape[0], part * groups, *full))
    for b, c in np.ndindex(x.shape[0], channels):
        group = c // (channels // groups)
        for place in np.ndindex(*x.shape[2:]):
            for o in range(part):
                for tap in np.ndindex(*window):
                    at = tuple(p * s + t * d for p, s, t, d in zip(place, stride, tap, dilation, strict=True))
                    y[(b, group * part + o, *at)] += float(x[(b, c, *place)]) * weight[(c, o, *tap)]
    crop = tuple(slice(before, extent - after) for extent, (before, after) in zip(full, pads, strict=True))
    return y[(slice(None), slice(None), *crop)]


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "stride": {"stride": (2, 1)},
    "dilation": {"dilation": (1, 2)},
    "padding": {"padding": 1},
    "padding per axis": {"padding": (2, 0)},
    "asymmetric padding": {"padding": ((1, 2), (0, 3))},
    "everything": {"stride": (2, 1), "dilation": (1, 2), "padding": ((1, 2), (0, 3)), "groups": 2},
    "groups": {"groups": 2},
    "depthwise": {"groups": 4},
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("with_bias", [False, True])
def test_convolution_over_two_axes(name: str, with_bias: bool) -> None:
    options = CASES[name]
    groups = options.get("groups", 1)
    arrays = {"x": numbers(2, 4, 6, 7), "weight": numbers(8, 4 // groups, 3, 2)}
    if with_bias:
        arrays["bias"] = numbers(8)
    padding = options.get("padding", 0)
    sides = padding if isinstance(padding, tuple) else (padding, padding)
    pads = [side if isinstance(side, tuple) else (side, side) for side in sides]
    wanted = reference(
        arrays["x"],
        arrays["weight"],
        arrays.get("bias"),
        options.get("stride", (1, 1)),
        pads,
        options.get("dilation", (1, 1)),
        groups,
    )
    check(lambda x, weight, bias=None: nn.conv2d(x, weight, bias, **options), arrays, wanted)


def test_convolution_over_one_and_three_axes() -> None:
    x, weight = numbers(2, 3, 9), numbers(4, 3, 3)
    check(
        lambda x, weight: nn.conv1d(x, weight, padding=2, stride=3),
        {"x": x, "weight": weight},
        reference(x, weight, None, (3,), [(2, 2)], (1,), 1),
    )
    x, weight = numbers(1, 2, 4, 5, 4), numbers(3, 2, 2, 3, 2)
    wanted = reference(x, weight, None, (1, 2, 1), [(0, 0)] * 3, (1,) * 3, 1)
    check(lambda x, weight: nn.conv3d(x, weight, stride=(1, 2, 1)), {"x": x, "weight": weight}, wanted)


def test_same_and_valid_padding() -> None:
    x, weight = numbers(1, 2, 5, 6), numbers(3, 2, 3, 4)
    same = reference(x, weight, None, (1, 1), [(1, 1), (1, 2)], (1, 1), 1)
    check(lambda x, weight: nn.conv2d(x, weight, padding="same"), {"x": x, "weight": weight}, same)
    valid = reference(x, weight, None, (1, 1), [(0, 0), (0, 0)], (1, 1), 1)
    check(lambda x, weight: nn.conv2d(x, weight, padding="valid"), {"x": x, "weight": weight}, valid)


def test_an_image_without_a_batch_gives_a_result_without_one() -> None:
    x, weight = numbers(2, 5, 6), numbers(3, 2, 3, 3)
    check(
        lambda x, weight: nn.conv2d(x, weight),
        {"x": x, "weight": weight},
        reference(x[None], weight, None, (1, 1), [(0, 0)] * 2, (1, 1), 1)[0],
    )


TRANSPOSED = list(itertools.product((1, 2), (0, 1), (1, 2), (1, 2), (0, 1)))


@pytest.mark.parametrize(("stride", "padding", "dilation", "groups", "extra"), TRANSPOSED)
def test_transposed_convolution(stride: int, padding: int, dilation: int, groups: int, extra: int) -> None:
    x, weight = numbers(2, 4, 3, 4), numbers(4, 2, 3, 2)
    if extra >= stride and extra >= dilation:
        extra = 0
    wanted = transposed_reference(
        x, weight, (stride,) * 2, [(padding, padding)] * 2, (dilation,) * 2, groups, (extra,) * 2
    )

    def formula(x, weight):
        return nn.conv_transpose2d(x, weight, None, stride, padding, extra, groups, dilation)

    check(formula, {"x": x, "weight": weight}, wanted)


def test_a_transposed_convolution_spells_zero_insertion_as_one_pad() -> None:
    tape = trace(lambda x, w: nn.conv_transpose1d(x, w, stride=3), f32[1, 2, 4], f32[2, 3, 2])
    pad = next(op for op in tape.ops if op.name == "pad")
    assert (pad.attributes["interior"], pad.attributes["low"], pad.attributes["high"]) == (
        (0, 0, 2),
        (0, 0, 1),
        (0, 0, 1),
    )


def seed_example(weight, bias, image):
    return nn.max_pool(nn.relu(nn.conv2d(image, weight, bias)), 2)


SEED = """
7 permute f32[1,3,3,2]
8 reshape f32[9,2]
9 matmul f32[16,2]
10 broadcast f32[16,2]
11 add f32[16,2]
12 reshape f32[1,4,4,2]
13 permute f32[1,2,4,4]
14 constant f32[1,2,4,4]
15 maximum f32[1,2,4,4]
"""


def test_the_seed_example_records_the_values_that_its_text_numbers() -> None:
    tape = trace(seed_example, weight=f32[2, 1, 3, 3], bias=f32[2], image=f32[1, 1, 6, 6])
    found = [f"{value} {op.name} {op.type}" for value, op in enumerate(tape.ops)]
    assert found[7:16] == SEED.split("\n")[1:-1]
    assert tape.ops[14].attributes["value"] == 0
    assert [str(tape.type_of(value)) for value in tape.inputs] == ["f32[2,1,3,3]", "f32[2]", "f32[1,1,6,6]"]


MISFITS: dict[str, tuple[Any, str]] = {
    "channels": (
        lambda x: nn.conv2d(x, np.ones((2, 3, 3, 3), "f4")),
        "weight f32[2,3,3,3] does not fit f32[1,4,6,6] with groups=1",
    ),
    "groups": (lambda x: nn.conv2d(x, np.ones((3, 2, 3, 3), "f4"), groups=2), "groups=2"),
    "rank": (lambda x: nn.conv1d(x, np.ones((2, 4, 3, 3), "f4")), "has 4 axes, 3 are needed"),
    "bias": (lambda x: nn.conv2d(x, np.ones((2, 4, 3, 3), "f4"), np.ones(3, "f4")), "does not fit 2 channels out"),
    "same with stride": (
        lambda x: nn.conv2d(x, np.ones((2, 4, 3, 3), "f4"), padding="same", stride=2),
        "stride 1; give numbers",
    ),
    "unknown padding": (lambda x: nn.conv2d(x, np.ones((2, 4, 3, 3), "f4"), padding="full"), "'same', 'valid'"),
    "too many strides": (
        lambda x: nn.conv2d(x, np.ones((2, 4, 3, 3), "f4"), stride=(1, 2, 3)),
        "3) for 2 spatial axes",
    ),
    "window too large": (lambda x: nn.conv2d(x, np.ones((2, 4, 9, 9), "f4")), "a window of 9"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_arguments_that_do_not_fit_are_told_at_the_call(name: str) -> None:
    formula, message = MISFITS[name]
    with pytest.raises(RecordingError) as caught:
        trace(formula, f32[1, 4, 6, 6])
    assert message in caught.value.message
    assert caught.value.span is not None
    assert caught.value.span.path == __file__
