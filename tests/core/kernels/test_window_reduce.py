import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.kernels.check import close, run
from tests.core.kernels.convolutions import layout, positions
from tests.support.tapes import TapeBuilder
from topos_core.kernels.home.manifest import Home
from topos_core.kernels.host import host
from topos_core.kernels.kernel import Decline, Offer
from topos_core.matching.facts import Window, WindowReduceFacts
from topos_core.matching.match import Match
from topos_core.ops.elementwise import greater, lesser
from topos_core.plan.request import Request
from topos_core.tape.type import numpy_dtype

LANES = host().lanes("f32")
SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, -1.5])
JOIN = {"max": greater, "min": lesser, "sum": np.add}


def formula(x, facts):
    """Reduces window by window with the ops' own rules; sums of floats run in f64."""
    fill = 0 if facts.pad_fill is None else facts.pad_fill
    wide = x.astype(np.float64) if facts.reducer == "sum" and x.dtype.kind not in "iub" else x
    padded = np.pad(
        wide, [(max(w.low, 0), max(w.high, 0)) for w in facts.windows], constant_values=wide.dtype.type(fill)
    )
    padded = padded[
        tuple(slice(max(-w.low, 0), e - max(-w.high, 0)) for w, e in zip(facts.windows, padded.shape, strict=True))
    ]
    result = [positions(e, w) for e, w in zip(x.shape, facts.windows, strict=True)]
    total = None
    with np.errstate(all="ignore"):
        for taps in itertools.product(*(range(w.size) for w in facts.windows)):
            part = padded[
                tuple(
                    slice(t * w.dilation, t * w.dilation + (n - 1) * w.stride + 1, w.stride)
                    for t, w, n in zip(taps, facts.windows, result, strict=True)
                )
            ]
            total = part if total is None else JOIN[facts.reducer](total, part)
        return total * facts.scale if facts.scale != 1.0 else total


def match_of(shape, windows, reducer, dtype, fill=None, scale=1.0, result=None, counted=None):
    out = [positions(e, w) for e, w in zip(shape, windows, strict=True)]
    result = result or layout(out, [str(k) for k in range(len(shape))])
    builder = TapeBuilder()
    x = builder.input("x", f"{dtype}[{','.join(map(str, shape))}]")
    root = builder.input("result", f"{dtype}[{','.join(map(str, result.shape))}]")
    facts = WindowReduceFacts(reducer, tuple(windows), result, fill, scale, counted)
    return builder.tape(root), Match("window_reduce", root, {"x": x}, frozenset(), frozenset({root}), {}, facts)


def check(shape, windows, reducer="max", dtype="f32", fill=None, scale=1.0, special=False, threads=1):
    tape, match = match_of(shape, windows, reducer, dtype, fill, scale)
    random = np.random.default_rng(0)
    kind = numpy_dtype(dtype)
    if kind.kind in "iu":
        x = random.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, kind, endpoint=True)
    elif dtype == "bool":
        x = random.integers(0, 2, shape).astype(bool)
    else:
        x = (random.choice(SPECIAL, shape) if special else random.standard_normal(shape)).astype(kind)
    got, expected = run(tape, match, {"x": x}, threads=threads), formula(x, match.facts)
    if reducer == "sum" and kind.kind not in "iu":
        close(got, expected, dtype, math.prod(w.size for w in windows) * 2.0)
    else:
        same_bits(got, expected)


def same_bits(got, expected):
    np.testing.assert_array_equal(got, expected)
    if got.dtype.kind not in "iub":
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(expected)[number])


@st.composite
def reductions(draw):
    rank = draw(st.integers(1, 4))
    windows, shape = [], []
    for _ in range(rank):
        window = Window()
        if draw(st.booleans()):
            window = Window(*(draw(st.integers(low, high)) for low, high in ((1, 4), (1, 3), (1, 2), (-1, 2), (-1, 2))))
        least = 1
        while positions(least, window) < 1:
            least += 1
        windows.append(window)
        shape.append(draw(st.integers(least, least + (60, 20, 8, 5)[rank - 1])))
    return tuple(shape), tuple(windows)


@settings(max_examples=120, deadline=None)
@given(reductions(), st.sampled_from(("max", "min", "sum")), st.sampled_from((-math.inf, 0.0, 2.5, math.nan)))
def test_any_windows_of_any_rank_give_the_formula(drawn, reducer, fill):
    check(*drawn, reducer, fill=fill, special=reducer != "sum", scale=0.25 if reducer == "sum" else 1.0)


@pytest.mark.parametrize(
    "width", [3, LANES - 1, LANES, LANES + 1, 2 * LANES, 2 * LANES + 1, 2 * LANES + 2, 4 * LANES + 1]
)
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_tails_of_lanes(width, stride, size):
    if width >= size - 2:
        check(
            (2, 5, width),
            (Window(), Window(size, stride, low=1, high=1), Window(size, stride, low=1, high=1)),
            fill=-np.inf,
        )


@pytest.mark.parametrize("reducer", ["max", "min"])
@pytest.mark.parametrize("size", [2, 3, 5, 6])
@pytest.mark.parametrize("stride", [1, 2])
def test_what_is_no_number_reaches_its_own_windows_only(reducer, size, stride):
    windows = (Window(), Window(size, stride, low=1, high=1), Window(size, stride, low=1, high=1))
    for fill in (-math.inf, math.inf, math.nan, -0.0):
        check((3, 9, 2 * LANES + 5), windows, reducer, fill=fill, special=True)


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16", "i8", "i32", "u8", "i64", "u64", "bool"])
def test_extremes_of_every_dtype_are_exact(dtype):
    fill = -math.inf if dtype in ("f64", "f16", "bf16") else (0 if dtype in ("bool", "u8", "u64") else -128)
    check(
        (2, 3, 9, 35),
        (Window(), Window(), Window(3, 2, low=1, high=1), Window(3, 2, low=1, high=1)),
        "max",
        dtype,
        fill,
    )


@pytest.mark.parametrize("dtype", ["i8", "u8", "i64"])
def test_sums_of_integers_wrap_and_are_exact(dtype):
    check((2, 9, 35), (Window(), Window(3, 2, low=1, high=1), Window(3, 2, low=1, high=1)), "sum", dtype, 3)


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16"])
@pytest.mark.parametrize("order", ["012", "120"])
def test_averages_divide_by_what_each_position_counts(dtype, order):
    shape, windows = (3, 7, 9), (Window(), Window(3, 2, low=1, high=3), Window(2, 2, low=1, high=1))
    counted = ((0, 0), (1, 1), (0, 0))
    out = (3, 5, 5)
    result = layout(tuple(out[int(axis)] for axis in order), order)
    tape, match = match_of(shape, windows, "sum", dtype, 0.0, result=result, counted=counted)
    x = np.random.default_rng(0).standard_normal(shape).astype(numpy_dtype(dtype))
    rows, columns = np.array([3, 3, 3, 3, 1]), np.array([1, 2, 2, 2, 2])  # the last row's window reaches too far
    expected = formula(x, match.facts) / (rows[:, None] * columns)
    close(run(tape, match, {"x": x}), expected.transpose([int(axis) for axis in order]), dtype, 12.0)


def test_channels_last_windows_and_windows_apart():
    check((2, 9, 8, 5), (Window(), Window(3, 2, low=1, high=1), Window(2, 2), Window()), fill=-math.inf)
    check((9, 2, 8, 5), (Window(3), Window(), Window(2, 2), Window(2)), "sum", scale=0.5)


def test_a_root_in_another_order_of_axes():
    shape, windows = (2, 6, 8), (Window(), Window(2, 2), Window(2, 2))
    tape, match = match_of(shape, windows, "max", "f32", result=layout((3, 4, 2), ("1", "2", "0")))
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    same_bits(run(tape, match, {"x": x}), formula(x, match.facts).transpose(1, 2, 0))


def test_strided_images_and_threads():
    shape, windows = (3, 10, 12), (Window(), Window(3, 2, low=1, high=1), Window(3))
    tape, match = match_of(shape, windows, "max", "f32", -math.inf)
    x = np.random.default_rng(0).standard_normal((12, 10, 6)).astype(np.float32).transpose(2, 1, 0)[::2]
    expected = formula(x, match.facts)
    for threads in (1, 2, 4):
        same_bits(run(tape, match, {"x": x}, threads=threads), expected)


def test_an_image_of_nothing_but_padding():
    tape, match = match_of((2, 0), (Window(), Window(2, low=2, high=2)), "max", "f32", 7.0)
    got = run(tape, match, {"x": np.zeros((2, 0), np.float32)})
    np.testing.assert_array_equal(got, np.full((2, 3), 7.0, np.float32))


@pytest.mark.parametrize(
    ("reducer", "dtype", "fidelity", "scale", "base", "code"),
    [
        ("max", "f32", "exact", 1.0, 1, None),
        ("sum", "i32", "exact", 1.0, 1, None),
        ("sum", "f32", "fast", 0.25, 1, None),
        ("sum", "f32", "exact", 1.0, 1, "TP205"),
        ("sum", "i32", "fast", 0.25, 1, "TP206"),
        ("max", "f32", "fast", 1.0, 2, "TP206"),
    ],
)
def test_offers_and_declines(reducer, dtype, fidelity, scale, base, code):
    tape, match = match_of(
        (2, 8), (Window(), Window(2, base_dilation=base)), reducer, dtype, scale=scale, result=layout((2, 7), "01")
    )
    answer = Home().offer(tape, match, Request(fidelity=fidelity))
    if code is None:
        assert isinstance(answer, Offer)
        assert answer.exact == (reducer != "sum" or dtype == "i32")
        assert (answer.envelope is None) == answer.exact
    else:
        assert isinstance(answer, Decline)
        assert answer.code == code
