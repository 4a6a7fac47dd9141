from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.kernels.check import close, run
from tests.core.kernels.convolutions import convolutions, facts, formula, layout, match_of, positions
from topos_core.kernels.convolution.engine import COPIED_ROWS, KEPT_ROWS
from topos_core.kernels.host import Host, host
from topos_core.kernels.watching import watching
from topos_core.matching.facts import Window
from topos_core.tape.type import numpy_dtype

LANES = host().lanes("f32")


def arrays(described, dtype, seed=0):
    random = np.random.default_rng(seed)
    x = random.standard_normal(described.image.shape).astype(numpy_dtype(dtype))
    kernel = random.standard_normal(described.kernel.shape).astype(numpy_dtype(dtype))
    return {"x": x, "kernel": kernel}


def check(described, dtype="f32", threads=1):
    tape, match = match_of(described, dtype)
    given = arrays(described, dtype)
    exact = formula(given["x"], given["kernel"], described.windows)
    scale = float(np.sqrt(described.in_channels * np.prod([w.size for w in described.windows]))) + np.abs(exact).max()
    close(run(tape, match, given, threads=threads), exact, dtype, scale)


@settings(max_examples=150, deadline=None)
@given(convolutions(), st.sampled_from(("f32", "f32", "f64")))
def test_any_window_rank_group_and_pad_gives_the_formula(described, dtype):
    check(described, dtype)


@pytest.mark.parametrize(
    "width", [1, 2, LANES - 1, LANES, LANES + 1, 3 * LANES - 1, 3 * LANES, 3 * LANES + 1, 8 * LANES + 1]
)
@pytest.mark.parametrize("rows", [1, 2, 4, 5, 7, 8, 9])
def test_tails_of_lanes_and_rows(width, rows):
    check(facts(1, 1, 3, rows, (width,), (Window(1),)))
    check(facts(2, 1, 2, rows, (2, width), (Window(), Window(3, low=1, high=1))))


@pytest.mark.parametrize("side", [32, 37, 56])
@pytest.mark.parametrize("rows", [COPIED_ROWS - 1, COPIED_ROWS, KEPT_ROWS - 1, KEPT_ROWS, KEPT_ROWS + 3, KEPT_ROWS + 6])
def test_rows_that_lie_far_apart_give_the_same_bits_in_place_copied_and_kept(monkeypatch, side, rows):
    far_rows(monkeypatch, facts(2, 1, 5, rows, (side, side), (Window(), Window())), "f32")


@pytest.mark.parametrize("steps", [511, 512, 513, 1025])
def test_rows_that_lie_far_apart_give_the_same_bits_in_any_number_of_chains(monkeypatch, steps):
    far_rows(monkeypatch, facts(1, 1, steps, KEPT_ROWS, (32, 33), (Window(), Window())), "f32")
    far_rows(monkeypatch, facts(1, 1, steps, KEPT_ROWS, (32, 33), (Window(), Window())), "f64")


def far_rows(monkeypatch, described, dtype):
    """Reads an image in place, from copies of panels, and from panels that the first tile of each keeps."""
    tape, match = match_of(described, dtype)
    given, found, keeping = arrays(described, dtype), [], []
    exact = formula(given["x"], given["kernel"], described.windows)
    for in_place, keeps in ((True, False), (False, False), (True, True)):
        monkeypatch.setattr(Host, "reads_far_rows", property(lambda _, told=in_place: told))
        monkeypatch.setattr(Host, "waits_for_rows", property(lambda _, told=keeps: told))
        with watching() as seen:
            found.append(run(tape, match, given))
        keeping.append(any(variant[1].startswith("keeps") for name, variant in seen.asked if name == "tile"))
        close(found[-1], exact, dtype, 10.0 * described.in_channels**0.5)
    assert keeping == [False, False, described.out_channels >= KEPT_ROWS]
    assert all(np.array_equal(found[0], other) for other in found[1:])


@pytest.mark.parametrize("steps", [511, 512, 513, 1025])
def test_chains_of_products_are_flushed_at_their_limit(steps):
    check(facts(1, 1, steps, 9, (5, 5), (Window(), Window())))
    check(facts(1, 1, steps, 9, (5, 5), (Window(1, low=1), Window())))


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_short_floats_are_computed_in_f32_and_rounded_once(dtype):
    described = facts(2, 1, 3, 5, (9, 11), (Window(3, low=1, high=1), Window(3)))
    tape, match = match_of(described, dtype)
    given = arrays(described, dtype)
    exact = formula(given["x"].astype(np.float64), given["kernel"].astype(np.float64), described.windows)
    close(run(tape, match, given), exact, dtype)


@pytest.mark.parametrize("order", [(0, 2, 3, 1), (3, 1, 0, 2)])
@pytest.mark.parametrize("window", [Window(1), Window(3), Window(3, 2, low=1, high=1)])
def test_any_memory_order_of_the_image_is_read_through_its_strides(order, window):
    described = facts(2, 1, 4, 8, (10, 12), (window, window))
    tape, match = match_of(described, "f32")
    given = arrays(described, "f32")
    exact = formula(given["x"], given["kernel"], described.windows)
    moved = np.ascontiguousarray(given["x"].transpose(order)).transpose(np.argsort(order))
    close(run(tape, match, {**given, "x": moved}), exact, "f32")
    backwards = np.ascontiguousarray(given["x"][..., ::-1])[..., ::-1]
    close(run(tape, match, {**given, "x": backwards}), exact, "f32")
    wide = np.zeros((2, 4, 10, 24), np.float32)
    wide[..., ::2] = given["x"]
    close(run(tape, match, {**given, "x": wide[..., ::2]}), exact, "f32")


def test_channels_last_images_kernels_and_results():
    windows = (Window(3, low=1, high=1), Window(2, 2))
    described = facts(2, 2, 3, 4, (7, 10), windows)
    out = [positions(extent, w) for extent, w in zip((7, 10), windows, strict=True)]
    last = replace(
        described,
        image=layout((2, 7, 10, 6), "b01f"),
        kernel=layout((3, 2, 3, 2, 4), "01igo"[0:2] + "i" + "go"),
        result=layout((2, *out, 2, 4), "b01gf"),
    )
    last = replace(last, kernel=layout((3, 2, 3, 2, 4), ("0", "1", "i", "g", "o")))
    given = arrays(described, "f32")
    exact = formula(given["x"], given["kernel"], windows)
    moved = {
        "x": np.ascontiguousarray(given["x"].transpose(0, 2, 3, 1)),
        "kernel": np.ascontiguousarray(given["kernel"].transpose(3, 4, 2, 0, 1)),
    }
    tape, match = match_of(last, "f32")
    close(run(tape, match, moved), exact.transpose(0, 3, 4, 1, 2), "f32")


def test_a_result_whose_channels_lie_in_two_places_is_assembled():
    described = facts(2, 1, 3, 6, (5, 4), (Window(3, low=1, high=1), Window()))
    split = replace(described, result=layout((3, 2, 5, 4, 2), ("f", "b", "0", "1", "f")))
    given = arrays(described, "f32")
    exact = formula(given["x"], given["kernel"], described.windows)[:, 0]
    tape, match = match_of(split, "f32")
    close(run(tape, match, given), exact.reshape(2, 3, 2, 5, 4).transpose(1, 0, 3, 4, 2), "f32")


@pytest.mark.parametrize(
    ("batch", "channels", "rows", "image", "window"),
    [
        (0, 2, 3, (4, 4), Window(3)),
        (2, 0, 3, (4, 4), Window(3)),
        (2, 2, 3, (4, 0), Window(3, low=2, high=2)),
        (2, 2, 0, (4, 4), Window(3)),
        (1, 2, 3, (2, 2), Window(3)),
    ],
)
def test_empty_batches_channels_images_and_results(batch, channels, rows, image, window):
    described = facts(batch, 1, channels, rows, image, (window, window))
    tape, match = match_of(described, "f32")
    got = run(tape, match, arrays(described, "f32"))
    assert got.shape == described.result.shape
    np.testing.assert_array_equal(got, 0.0)


def test_nan_and_infinities_reach_exactly_the_results_that_read_them():
    described = facts(1, 1, 2, 9, (9, 33), (Window(3, low=1, high=1), Window(3, low=1, high=1)))
    tape, match = match_of(described, "f32")
    given = arrays(described, "f32")
    given["x"][0, 0, 4, 7] = np.nan
    given["x"][0, 1, 8, 32] = np.inf
    exact = formula(given["x"], given["kernel"], described.windows)
    close(run(tape, match, given), exact, "f32")


def test_an_image_at_the_end_of_its_memory_is_not_read_past_it():
    # one page that ends where the image ends; the page behind it cannot be read
    import ctypes
    import mmap

    page = mmap.PAGESIZE
    region = mmap.mmap(-1, 2 * page)
    base = ctypes.addressof(ctypes.c_char.from_buffer(region))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(base + page), page, 0) == 0
    try:
        described = facts(1, 1, 3, 9, (7, 7), (Window(1), Window(1)))
        tape, match = match_of(described, "f32")
        given = arrays(described, "f32")
        size = given["x"].size
        at_end = np.frombuffer(region, np.float32, size, page - 4 * size).reshape(given["x"].shape)
        at_end[...] = given["x"]
        exact = formula(given["x"], given["kernel"], described.windows)
        close(run(tape, match, {**given, "x": at_end}), exact, "f32")
    finally:
        libc.mprotect(ctypes.c_void_p(base + page), page, 3)


def test_threads_give_the_same_bits():
    described = facts(3, 2, 5, 13, (17, 19), (Window(3, low=1, high=1), Window(3, 2)))
    tape, match = match_of(described, "f32")
    given = arrays(described, "f32")
    one = run(tape, match, given, threads=1)
    for threads in (2, 4):
        np.testing.assert_array_equal(run(tape, match, given, threads=threads), one)


def test_an_epilogues_operations_are_counted():
    import topos_core as tp
    from topos_core import nn

    def program(x, w, b):
        return nn.relu(nn.conv2d(x, w, b) + x[:, :4, 1:-1, 1:-1])

    plan = tp.plan(tp.trace(program, "f32[2,4,10,10]", "f32[4,4,3,3]", "f32[4]"), cost="always", machine="reference")
    (taken,) = plan.taken
    elements = 2 * 4 * 8 * 8
    products = elements * 2 * 4 * 9
    assert taken.match.pattern == "conv_bn_activation"
    assert taken.numbers["flops_before"].value == products + 3 * elements  # bias, residual, relu
    assert taken.numbers["flops_after"].value == products + 4 * elements  # factor and summand, residual, relu
