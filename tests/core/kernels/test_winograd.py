"""Convolutions by Winograd's tiles: any shape and epilogue, what is not finite, how they are chosen and switched off."""

import random
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topos_core as tp
from topos_core import nn
from topos_core.kernels.convolution import winograd as by_tiles
from topos_core.kernels.convolution.engine import NO_LIMITS, Engine, Epilogue, Operands
from topos_core.kernels.convolution.geometry import Problem
from topos_core.kernels.convolution.strips import Strips
from topos_core.kernels.convolution.winograd import LARGE, SMALL, Winograd, form_of, transformed
from topos_core.kernels.drawn import TILES, drawn
from topos_core.kernels.envelope_table import RELATIVE
from topos_core.kernels.host import Host, host
from topos_core.kernels.launch import Scratch, address_of
from topos_core.kernels.probes import measure
from topos_core.kernels.tiles import tiles
from topos_core.kernels.vocabulary.blocks import WINOGRAD
from topos_core.kernels.watching import watching
from topos_core.matching.facts import Window

LANES = host().lanes("f32")
EACH_FORM = pytest.mark.parametrize("form", [LARGE, SMALL], ids=["large tiles", "small tiles"])


def problem(batch, channels, rows, image, pads=((1, 1), (1, 1)), size=3, stride=1):
    windows = tuple(Window(size, stride=stride, low=low, high=high) for low, high in pads)
    result = tuple((e + w.low + w.high - size) // stride + 1 for e, w in zip(image, windows, strict=True))
    return Problem(batch, 1, rows, channels, (1, *image), (1, *result), (Window(), *windows), ("", "0", "1"))


def formula(x, kernel, pads):
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), *((max(a, 0), max(b, 0)) for a, b in pads)))
    crop = [slice(max(-a, 0), x.shape[2 + k] - max(-b, 0)) for k, (a, b) in enumerate(pads)]
    windows = np.lib.stride_tricks.sliding_window_view(x[(slice(None), slice(None), *crop)], (3, 3), axis=(2, 3))
    return np.einsum("bchwij,ocij->bohw", windows, kernel.astype(np.float64))


def check(
    batch,
    channels,
    rows,
    image,
    pads=((1, 1), (1, 1)),
    threads=1,
    residual=None,
    residual_last=False,
    low=-np.inf,
    activation="none",
    form=LARGE,
):
    described = problem(batch, channels, rows, image, pads)
    random = np.random.default_rng(0)
    x = random.standard_normal((batch, channels, *image)).astype(np.float32)
    kernel = random.standard_normal((rows, channels, 3, 3)).astype(np.float32)
    scale, shift = (random.standard_normal(rows).astype(np.float32) for _ in range(2))
    exact = formula(x, kernel, pads)
    bound = 2 * RELATIVE[form.name]["f32"] * (np.abs(exact).max() + 3 * np.sqrt(9 * channels))
    exact = exact * scale[:, None, None] + shift[:, None, None]
    added = None if residual is None else random.standard_normal(exact.shape).astype(np.float32)
    if added is not None and not residual_last:
        exact = exact + added
    exact = np.maximum(exact, low)
    if activation == "silu":
        exact = exact / (1 + np.exp(-exact))
    if added is not None and residual_last:
        exact = exact + added
    out = np.full(exact.shape, np.nan, np.float32)
    engine = Winograd(described, "f32", (low, np.inf), activation, residual_last, form)
    assert run(engine, x, kernel, scale, shift, added, out, threads)
    np.testing.assert_allclose(out, exact, rtol=0, atol=bound * max(1.0, float(np.abs(scale).max())))
    return out


def run(engine, x, kernel, scale, shift, added, out, threads=1):
    left = np.ascontiguousarray(kernel.reshape(kernel.shape[0], -1))
    tiles = transformed(left, engine.problem, engine.form)
    strides = [stride // 4 for stride in x.strides]
    image = (strides[0], strides[1], 0, strides[2], strides[3])
    placed = [stride // 4 for stride in out.strides]
    reduced = engine.form.reduced(scale)
    given = (
        address_of(x),
        address_of(tiles),
        address_of(reduced),
        address_of(shift),
        0 if added is None else address_of(added),
        address_of(out),
    )
    return engine.run(image, (placed[0], 0, placed[1], 0, placed[2], placed[3]), given, threads)


@EACH_FORM
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_extent_channel_count_and_pad_gives_the_formula(form, data):
    low = st.integers(-1, 2)
    pads = tuple((data.draw(low), data.draw(low)) for _ in range(2))
    image = tuple(data.draw(st.integers(5, 21)) for _ in range(2))
    batch, channels, rows = (data.draw(st.integers(1, most)) for most in (3, 20, 19))
    check(batch, channels, rows, image, pads, form=form)


@EACH_FORM
@pytest.mark.parametrize("more", [-1, 0, 1, 5])
def test_tails_of_registers_of_tiles(form, more):
    check(1, 3, 5, (6, form.side * LANES + more), form=form)
    check(1, 3, 5, (6, 2 * form.side * LANES + more), form=form)


DENORMAL = np.float32(1e-40)


class Poisoned(Scratch):
    """Scratch memory that is full of denormal numbers, kept for who asks what became of them."""

    __slots__ = ()
    made: ClassVar = []

    def __init__(self, size):
        super().__init__(size)
        self.owner[: size // 4 * 4].view(np.float32)[:] = DENORMAL
        self.made.append(self)


@EACH_FORM
@pytest.mark.parametrize("down", range(1, 10))
@pytest.mark.parametrize("across", [5, 7, LANES + 1])
def test_no_product_is_made_of_what_scratch_memory_held(form, down, across, monkeypatch):
    image = (form.side * down, form.side * across)
    monkeypatch.setattr(by_tiles, "Scratch", Poisoned)
    monkeypatch.setattr(Poisoned, "made", [])
    channels, rows = 3, 5
    engine = Winograd(problem(1, channels, rows, image), "f32", NO_LIMITS, "none", False, form)
    x, out = np.ones((1, channels, *image), np.float32), np.empty((1, rows, *image), np.float32)
    kernel, ones = np.ones((rows, channels, 3, 3), np.float32), np.ones(rows, np.float32)
    assert run(engine, x, kernel, ones, ones, None, out)
    (scratch,), (cut,) = Poisoned.made, engine.cuts.values()
    words = dict(zip(WINOGRAD, cut.block, strict=False))
    pitch, at = words["right_pitch"], scratch.address + words["right_at"] - address_of(scratch.owner)
    product = channels * pitch + LANES  # a register behind each product's operands
    operands = scratch.owner[at : at + 4 * form.products * product].view(np.float32).reshape(form.products, product)
    read = operands[:, : channels * pitch].reshape(form.products, channels, pitch)
    tiles = min(words["block_rows"], engine.down) * engine.across
    read = read[:, :, : -(-tiles // LANES) * LANES]
    assert not np.any((read != 0) & (np.abs(read) < np.finfo(np.float32).tiny))


@EACH_FORM
@pytest.mark.parametrize("rows", [7, 8, 9])
def test_tails_of_rows(form, rows):
    check(2, 5, rows, (9, 14), form=form)


@EACH_FORM
@pytest.mark.parametrize("residual_last", [False, True])
@pytest.mark.parametrize("activation", ["none", "silu"])
def test_every_epilogue_in_the_recorded_order(form, residual_last, activation):
    check(1, 6, 9, (13, 11), residual=True, residual_last=residual_last, low=0.0, activation=activation, form=form)
    check(1, 6, 9, (7, 7), residual=True, residual_last=residual_last, low=0.0, activation=activation, form=form)
    check(1, 6, 9, (13, 11), residual=None, low=0.0, activation=activation, form=form)


@pytest.mark.parametrize(
    ("batch", "rows", "extents"), [(3, 16, (20, 20)), (1, 45, (14, 15)), (1, 16, (13, 13)), (1, 130, (16, 16))]
)
@EACH_FORM
def test_the_number_of_threads_changes_no_bit(form, batch, rows, extents):
    results = [check(batch, 16, rows, extents, threads=threads, form=form) for threads in (1, 2, 4)]
    assert all(np.array_equal(results[0], other) for other in results)


@EACH_FORM
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
def test_what_is_not_finite_is_told_so_that_the_direct_kernel_runs(form, value):
    described = problem(1, 4, 4, (9, 9))
    x = np.ones((1, 4, 9, 9), np.float32)
    x[0, 2, 4, 4] = value
    kernel, ones = np.ones((4, 4, 3, 3), np.float32), np.ones(4, np.float32)
    out = np.zeros((1, 4, 9, 9), np.float32)
    assert not run(Winograd(described, "f32", NO_LIMITS, "none", False, form), x, kernel, ones, ones, None, out)


def program(channels=32, image=24, rows=32):
    weight = np.random.default_rng(0).standard_normal((rows, channels, 3, 3)).astype(np.float32)
    tape = tp.trace(lambda x: nn.relu(nn.conv2d(x, weight, padding=1)), tp.f32[1, channels, image, image])
    x = np.random.default_rng(1).standard_normal((1, channels, image, image)).astype(np.float32)
    return tape, x


def test_a_known_kernel_runs_by_tiles_with_an_envelope_of_its_own():
    tape, x = program()
    plan = tp.plan(tape)
    (taken,) = plan.taken
    assert taken.kernel.startswith("Winograd")
    assert taken.offer.envelope.relative == RELATIVE["winograd"]["f32"]
    exact = np.maximum(formula(x, next(iter(tape.defaults.values())), ((1, 1), (1, 1))), 0)
    assert 0 < np.abs(plan.run(x) - exact).max() <= 2 * taken.offer.envelope.relative * exact.max()


def test_it_can_be_switched_off_by_name():
    tape, _ = program()
    (taken,) = tp.plan(tape, off=["winograd"]).taken
    assert taken.kernel.startswith("direct")
    assert taken.offer.envelope.relative == RELATIVE["conv_bn_activation"]["f32"]


def test_a_run_with_infinities_gives_what_was_recorded():
    tape, x = program()
    plan = tp.plan(tape)
    x[0, 3, 5, 7] = np.inf
    x[0, 4, 20, 1] = np.nan
    recorded = tp.plan(tape, off=["conv_bn_activation", "convolution", "linear"]).run(x)
    got = plan.run(x)
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(recorded))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(recorded))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_strip_after_the_other_gives_what_all_rows_at_once_give(data):
    low = st.integers(-3, 4)
    pads = tuple((data.draw(low), data.draw(low)) for _ in range(2))
    image = tuple(data.draw(st.integers(5, 21)) for _ in range(2))
    batch, channels, rows = (data.draw(st.integers(1, most)) for most in (4, 5, 9))
    described = problem(batch, channels, rows, image, pads)
    if min(described.result) < 1:
        return
    random = np.random.default_rng(0)
    x, kernel = (
        random.standard_normal(shape).astype(np.float32) for shape in ((batch, channels, *image), (rows, channels * 9))
    )
    scale, shift = (random.standard_normal(rows).astype(np.float32) for _ in range(2))
    added = random.standard_normal((batch, rows, *described.result[1:])).astype(np.float32)
    results = [np.full(added.shape, np.nan, np.float32) for _ in range(2)]
    epilogue = Epilogue((0.0, np.inf), residual=True)
    threads = data.draw(st.sampled_from([1, 2]))
    read, placed = (tuple(stride // 4 for stride in each.strides) for each in (x, added))
    given = [Operands(*map(address_of, (x, kernel, scale, shift, added, out))) for out in results]
    lies, out = (*read[:2], 0, *read[2:]), (placed[0], 0, placed[1], 0, *placed[2:])
    Engine(described, "f32", epilogue).run(lies, out, given[0], threads)
    tile_rows, side = data.draw(st.integers(1, 9)), data.draw(st.sampled_from([2, 4]))
    Strips(described, "f32", epilogue).run(lies, out, given[1], tile_rows, side, threads)
    np.testing.assert_allclose(
        results[1], results[0], rtol=0, atol=1e-6 * np.abs(results[0]).max()
    )  # few positions round once more


@pytest.mark.parametrize("shape", [(1, 64, 56, 56), (8, 32, 28, 28), (5, 32, 13, 13), (1, 512, 7, 7)], ids=str)
def test_what_is_not_finite_gives_the_same_bits_on_several_threads_and_without_tiles(shape):
    random = np.random.default_rng(0)
    x, weight = (random.standard_normal(each).astype(np.float32) for each in (shape, (32, shape[1], 3, 3)))
    x[-1, 3, 4, 5] = np.inf
    tape = tp.trace(lambda x: nn.silu(nn.conv2d(x, weight, padding=1)), tp.f32[shape])
    plan = tp.plan(tape, cost="always")
    expected = tp.plan(tape, cost="always", off=["winograd"]).run(x, threads=1).tobytes()
    with watching() as seen:
        assert [plan.run(x, threads=threads).tobytes() for threads in (1, 2, 4)] == [expected] * 3
    assert {"winograd", "contraction"} <= {start.name for start in seen.started}


def test_kernels_given_per_run_other_windows_and_few_channels_stay_direct():
    tape = tp.trace(lambda x, w: nn.conv2d(x, w, padding=1), tp.f32[1, 32, 24, 24], tp.f32[32, 32, 3, 3])
    assert [one.kernel.split()[0] for one in tp.plan(tape).taken] == ["direct"]
    assert form_of(problem(1, 64, 64, (56, 56), size=5)) is None
    assert form_of(problem(1, 64, 64, (56, 56), stride=2)) is None
    assert form_of(problem(1, 3, 64, (56, 56))) is None


def test_small_images_get_small_tiles():
    assert form_of(problem(1, 64, 64, (56, 56))) is LARGE
    assert form_of(problem(8, 512, 512, (7, 7))) is LARGE
    assert form_of(problem(1, 512, 512, (7, 7))) is SMALL
    assert form_of(problem(1, 512, 512, (4, 4))) is None  # not a register of tiles
    weight = np.random.default_rng(0).standard_normal((512, 512, 3, 3)).astype(np.float32)
    tape = tp.trace(lambda x: nn.relu(nn.conv2d(x, weight, padding=1)), tp.f32[1, 512, 7, 7])
    x = np.random.default_rng(1).standard_normal((1, 512, 7, 7)).astype(np.float32)
    plan = tp.plan(tape)
    (taken,) = plan.taken
    assert taken.kernel.startswith("Winograd F(2x2, 3x3)")
    exact = np.maximum(formula(x, weight, ((1, 1), (1, 1))), 0)
    error = np.abs(plan.run(x) - exact).max()
    assert 0 < error <= 2 * RELATIVE["conv_bn_activation"]["f32"] * exact.max()  # that of the direct kernel


def test_the_listing_of_a_region_shows_the_kernel_that_runs():
    from topos_core.kernels.listing import listing

    tape, _ = program()
    (taken,) = tp.plan(tape).taken
    assert any(text.name == "winograd" for text in listing(tape, taken.match, 1).kernels)
    off = frozenset(("winograd",))
    assert not any(text.name == "winograd" for text in listing(tape, taken.match, 1, off).kernels)


@pytest.mark.parametrize("turned", [False, True], ids=["dense", "channels last"])
def test_an_image_is_copied_into_planes_only_where_it_cannot_be_read(turned):
    random = np.random.default_rng(5)
    x, weights = (random.standard_normal(shape).astype(np.float32) for shape in ((1, 96, 56, 56), (64, 96, 3, 3)))
    if turned:
        x = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    plan = tp.plan(tp.trace(lambda x: nn.conv2d(x, weights, padding=1), tp.f32[1, 96, 56, 56]), cost="always")
    got = plan.run(x, threads=1)
    exact = formula(x, weights, ((1, 1), (1, 1)))
    assert np.abs(got - exact).max() <= RELATIVE["winograd"]["f32"] * np.abs(exact).max()
    with watching() as seen:
        plan.run(x, threads=1)
    assert [start.name for start in seen.started] == ([] if host().masked and not turned else ["planes"]) + ["winograd"]


@EACH_FORM
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("pads", [((1, 1), (1, 1)), ((0, 0), (0, 0)), ((2, 1), (0, 3)), ((-1, 2), (-2, 1))], ids=str)
@pytest.mark.parametrize("extent", [5, 16, 33])
def test_an_image_gives_the_same_bits_where_it_lies_and_in_planes(form, threads, pads, extent, monkeypatch):
    """A machine without masked loads reads planes alone; this asks for them on every machine."""
    shape = (2, 17, 19, (extent, extent + 12), pads, threads)
    with watching() as seen:
        lying = check(*shape, form=form, residual=True, activation="silu")
    assert any(start.name == "planes" for start in seen.started) != host().masked
    monkeypatch.setattr(by_tiles, "columns_follow", lambda convolution, strides: False)
    with watching() as seen:
        copied = check(*shape, form=form, residual=True, activation="silu")
    assert any(start.name == "planes" for start in seen.started)
    assert lying.tobytes() == copied.tobytes()


@EACH_FORM
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("channels", "rows"), [(63, 19), (64, 8), (64, 17), (65, 33), (128, 24)])
def test_panels_that_two_tiles_read_give_the_same_bits(form, channels, rows, threads, monkeypatch):
    found = []
    for shares in (False, True):
        monkeypatch.setattr(Host, "shares_panels", property(lambda _, told=shares: told))
        with watching() as seen:
            found.append(check(2, channels, rows, (21, 30), threads=threads, form=form))
        together = dict(zip(WINOGRAD, seen.started[-1].words, strict=False))["together"]
        assert together == tiles(host()).tall * (2 if shares and channels >= 64 else 1)
    assert found[0].tobytes() == found[1].tobytes()


SHAPES = {"channels first": (32, 30, 30), "channels last": (30, 30, 32)}


def last(x):
    return x.transpose(0, 2, 3, 1)


def first(x):
    return x.transpose(0, 3, 1, 2)


PROGRAMS = {
    "alone": ("channels first", lambda x, w: nn.conv2d(x, w, padding=1)),
    "turned": ("channels first", lambda x, w: last(nn.conv2d(x, w, padding=1))),
    "turned before relu": ("channels first", lambda x, w: nn.relu(last(nn.conv2d(x, w, padding=1)))),
    "turned after relu": ("channels first", lambda x, w: last(nn.relu(nn.conv2d(x, w, padding=1)))),
    "columns before rows": ("channels first", lambda x, w: nn.conv2d(x.transpose(0, 1, 3, 2), w, padding=1)),
    "read by a sum": ("channels first", lambda x, w: nn.conv2d(x, w, padding=1).sum(1)),
    "observed": ("channels first", lambda x, w: 2 * tp.observe(nn.relu(last(nn.conv2d(x, w, padding=1))), "seen")),
    "channels last": ("channels last", lambda x, w: last(nn.conv2d(first(x), w, padding=1))),
    "relu": ("channels last", lambda x, w: nn.relu(last(nn.conv2d(first(x), w, padding=1)))),
    "residual": ("channels last", lambda x, w: nn.relu(last(nn.conv2d(first(x), w, padding=1)) + x)),
    "read by a product": (
        "channels last",
        lambda x, w: nn.relu(last(nn.conv2d(first(x), w, padding=1))) @ w[:, :, 0, 0],
    ),
}


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("name", PROGRAMS)
def test_tiles_run_wherever_they_are_told_to(name, batch):
    order, function = PROGRAMS[name]
    random = np.random.default_rng(3)
    weight = random.standard_normal((32, 32, 3, 3)).astype(np.float32) * np.float32(0.1)
    x = random.standard_normal((batch, *SHAPES[order])).astype(np.float32)
    tape = tp.trace(lambda x: function(x, weight), tp.f32[x.shape])
    plan = tp.plan(tape, cost="always")
    got = plan.run(x, threads=1)
    with watching() as seen:
        plan.run(x, threads=1)
    (told,) = (one.kernel for one in plan.taken if "conv" in one.match.pattern)
    assert told.startswith("Winograd") == (name != "columns before rows")
    products = ["contraction"] if name == "read by a product" else []
    ran = [start.name for start in seen.started if start.name in ("winograd", "contraction")]
    assert ran == [*(["winograd"] if told.startswith("Winograd") else ["contraction"]), *products]
    expected = tp.plan(tape, fidelity="exact", off=["convolution", "conv_bn_activation"]).run(x, threads=1)
    for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (got, expected)), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=2e-5 * np.abs(other).max())


@pytest.mark.parametrize("name", TILES)
def test_what_is_measured_as_tiles_runs_by_them(name):
    choose, tried = random.Random(0).choice, 0
    while tried < 12:
        made = drawn(name, ("f32",), choose)
        if made is None:
            continue
        with watching() as seen:
            measure(made.probe)
        assert any(start.name == "winograd" for start in seen.started)
        tried += 1
