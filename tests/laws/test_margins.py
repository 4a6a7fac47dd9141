"""Values that lie in planes along a chain: the same bits as dense ones, no copy, and an arena of the predicted size."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import topos_core as tp
import topos_core.plan.liveness as walking
from tests.laws.test_arena import check
from tests.laws.test_told_planes import laid
from topos_core import nn
from topos_core.document import figures
from topos_core.document.formats.text import spared
from topos_core.kernels.convolution import offering
from topos_core.kernels.host import host
from topos_core.kernels.watching import watching
from topos_core.plan.decision import Number

RANDOM = np.random.default_rng(0)


def drawn(*shape: int, dtype: str = "float32") -> np.ndarray:
    return (RANDOM.standard_normal(shape) * 0.2).astype(dtype)


@contextmanager
def dense() -> Iterator[None]:
    """Lays out every value densely."""
    chosen = walking.margins_of
    walking.margins_of = lambda *_: {}
    try:
        yield
    finally:
        walking.margins_of = chosen


def both(function: Callable[..., Any], shape: tuple[int, ...], dtype: Any = tp.f32, **options: Any) -> list[tp.Plan]:
    """Plans a program with values in planes, and with dense ones."""
    tape = tp.trace(function, dtype[shape])
    plans = [tp.plan(tape, cost="always", **options)]
    plans[0].data.arena  # noqa: B018  # what is read first is what is kept
    with dense():
        plans.append(tp.plan(tape, cost="always", **options))
        assert not plans[1].data.liveness.margins
    return plans


def agree(plans: list[tp.Plan], x: np.ndarray) -> None:
    chained, apart = plans
    expected = apart.run(x, threads=1)
    for threads in (1, 2, 4):
        got = chained.run(x, threads=threads)
        for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (got, expected)), strict=True):
            assert one.tobytes() == other.tobytes()


def in_planes(plan: tp.Plan) -> int:
    return len(plan.data.liveness.margins)


def stack(channels: int, count: int, size: int = 3) -> list[np.ndarray]:
    return [drawn(channels, channels, size, size) for _ in range(count)]


def chain(weights: list[np.ndarray]) -> Callable[[Any], Any]:
    def program(x: Any) -> Any:
        for weight in weights:
            x = nn.relu(nn.conv2d(x, weight, padding=weight.shape[-1] // 2))
        return x

    return program


@pytest.fixture
def without_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans for a machine without masked loads, where Winograd's tiles read planes; on this one they read them too."""
    monkeypatch.setattr(offering, "masked_on", lambda machine: False)


@pytest.mark.parametrize("extent", [5, 7, 8, 13, 15, 16, 17, 28])
@pytest.mark.parametrize("channels", [3, 16])
@pytest.mark.usefixtures("without_masks")
def test_a_chain_of_convolutions_keeps_its_bits(channels: int, extent: int) -> None:
    plans = both(chain(stack(channels, 3)), (2, channels, extent, extent + 1))
    assert in_planes(plans[0]) == 2
    agree(plans, drawn(2, channels, extent, extent + 1))
    check(plans[0].data, [drawn(2, channels, extent, extent + 1)])


@pytest.mark.parametrize(("size", "off"), [(3, ()), (3, ("winograd",)), (5, ())])
@pytest.mark.usefixtures("without_masks")
def test_no_kernel_of_the_chain_but_the_first_copies_its_image(size: int, off: tuple[str, ...]) -> None:
    plans = both(chain(stack(16, 4, size)), (1, 16, 20, 20), off=off)
    counts = []
    for plan in plans:
        plan.run(drawn(1, 16, 20, 20), threads=1)
        with watching() as seen:
            plan.run(drawn(1, 16, 20, 20), threads=1)
        counts.append(sum(start.name == "planes" for start in seen.started))
    tiled = "Winograd" in plans[0].data.taken[0].offer.kernel
    assert tiled == (size == 3 and not off)
    assert counts == ([0, 0] if tiled and host().masked else [1, 4])
    assert len(plans[0].data.liveness.spared) == 3


def test_what_is_told_as_spared_are_the_planes_of_the_copies() -> None:
    chained, apart = (plan.data.liveness for plan in both(chain(stack(8, 3, 5)), (2, 8, 20, 20)))
    assert set(chained.spared.values()) == {2 * 8 * (24 * 22 + 2) * 4}
    assert max(apart.scratch) - min(chained.scratch) == 2 * 8 * (24 * 22 + 2) * 4
    assert chained.peak_bytes < apart.peak_bytes


@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.usefixtures("without_masks")
def test_the_traffic_told_is_that_of_the_planes_that_are_made(size: int) -> None:
    for plan in both(chain(stack(8, 3, size)), (2, 8, 20, 20), off=("winograd",)):
        with watching() as seen:
            plan.run(drawn(2, 8, 20, 20), threads=1)
        made = 4 * sum(laid(start) for start in seen.started if start.name == "planes")
        tape = plan.data.tape
        operands = sum(tape.ops[v].type.bytes for d in plan.taken for v in (*d.match.bindings.values(), d.match.root))
        traffic = Number(operands + 2 * made, "byte", "counted")
        assert made
        assert f"-> {figures.with_basis(traffic, plan.document()['machine'])}" in plan.describe()


def residual(x: Any) -> Any:
    x = nn.max_pool(x, 3, stride=2, padding=1)
    for first, second in ((BLOCKS[0], BLOCKS[1]), (BLOCKS[2], BLOCKS[3])):
        y = nn.relu(nn.conv2d(x, first, padding=1))
        x = nn.relu(nn.conv2d(y, second, padding=1) + x)
    return nn.conv2d(x, STRIDED, stride=2, padding=1)


BLOCKS = stack(16, 4)
STRIDED = drawn(8, 16, 3, 3)


@pytest.mark.usefixtures("without_masks")
def test_blocks_with_residuals_behind_a_pool() -> None:
    plans = both(residual, (1, 16, 40, 40))
    assert in_planes(plans[0]) == 5  # the pool's, and those of all convolutions but the last
    agree(plans, drawn(1, 16, 40, 40))
    check(plans[0].data, [drawn(1, 16, 40, 40)])


def test_what_is_added_as_the_caller_gave_it_keeps_a_chain_dense() -> None:
    weights = stack(8, 2)

    def program(x: Any) -> Any:
        y = nn.relu(nn.conv2d(x, weights[0], padding=1) + x)
        return nn.conv2d(y, weights[1], padding=1)

    plans = both(program, (1, 8, 20, 20))
    assert in_planes(plans[0]) == 0
    agree(plans, drawn(1, 8, 20, 20))


@pytest.mark.parametrize("last", [False, True], ids=["dense", "channels last"])
@pytest.mark.parametrize("masked", [False, True])
def test_a_chain_lies_in_planes_where_its_images_would_be_copied(
    masked: bool, last: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offering, "masked_on", lambda machine: masked)
    weights = stack(32, 3)

    def program(x: Any) -> Any:
        for weight in weights:
            x = nn.relu(nn.conv2d(x.transpose(0, 3, 1, 2), weight, padding=1).transpose(0, 2, 3, 1))
        return x

    shape = (1, 30, 30, 32) if last else (1, 32, 30, 30)
    plans = both(program if last else chain(weights), shape)
    assert all("Winograd" in decision.offer.kernel for decision in plans[0].data.taken if decision.offer)
    assert in_planes(plans[0]) == (0 if masked else 2)
    assert all(plans[0].data.liveness.spared.values())
    agree(plans, drawn(*shape))
    check(plans[0].data, [drawn(*shape)])


@pytest.mark.parametrize("masked", [False, True])
def test_what_is_made_channels_last_lies_in_planes_that_tiles_read(
    masked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offering, "masked_on", lambda machine: masked)
    weights = drawn(32, 32, 5, 5), drawn(32, 32, 3, 3)

    def program(x: Any) -> Any:
        for weight in weights:
            x = nn.relu(nn.conv2d(x.transpose(0, 3, 1, 2), weight, padding=weight.shape[-1] // 2).transpose(0, 2, 3, 1))
        return x

    plans = both(program, (1, 30, 30, 32))
    assert in_planes(plans[0]) == 1
    assert [*plans[0].data.liveness.spared.values()] == [4 * 32 * (34 * 33 + 1)]
    agree(plans, drawn(1, 30, 30, 32))
    check(plans[0].data, [drawn(1, 30, 30, 32)])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.usefixtures("without_masks")
def test_what_is_not_finite_runs_directly_from_planes_too(bad: float) -> None:
    plans = both(chain(stack(64, 3)), (1, 64, 28, 28))
    assert any("Winograd" in decision.offer.kernel for decision in plans[0].data.taken if decision.offer)
    x = drawn(1, 64, 28, 28)
    x[0, 3, 5, 7] = bad
    agree(plans, x)


def test_doubles_lie_in_planes_and_halves_do_not() -> None:
    weights = [weight.astype(np.float64) for weight in stack(8, 3)]
    plans = both(chain(weights), (1, 8, 20, 20), tp.f64)
    assert in_planes(plans[0]) == 2
    agree(plans, drawn(1, 8, 20, 20, dtype="float64"))
    halves = both(chain([weight.astype(np.float16) for weight in stack(8, 3)]), (1, 8, 20, 20), tp.f16)
    assert in_planes(halves[0]) == 0


def test_rows_shorter_than_a_register_stay_one_long_row_for_whoever_makes_them_so() -> None:
    for extent, count in ((15, 0), (16, 1), (17, 1)):
        plans = both(chain([drawn(8, 8, 1, 1), drawn(8, 8, 3, 3)]), (1, 8, extent, extent))
        assert in_planes(plans[0]) == count
        agree(plans, drawn(1, 8, extent, extent))


def test_observed_and_returned_values_lie_as_recorded() -> None:
    weights = stack(8, 3)

    def program(x: Any) -> Any:
        y = tp.observe(nn.relu(nn.conv2d(x, weights[0], padding=1)), "first")
        z = nn.relu(nn.conv2d(y, weights[1], padding=1))
        return z, nn.conv2d(z, weights[2], padding=1)

    plans = both(program, (1, 8, 20, 20))
    assert in_planes(plans[0]) == 0
    agree(plans, drawn(1, 8, 20, 20))


def test_who_reads_a_value_in_place_finds_it_dense() -> None:
    weight, point = drawn(8, 8, 3, 3), drawn(8, 8, 1, 1)

    def program(x: Any) -> Any:
        y = nn.relu(nn.conv2d(x, weight, padding=1))
        return nn.conv2d(y, weight, padding=1) + nn.conv2d(y, point) + np.tanh(y)

    plans = both(program, (1, 8, 20, 20))
    assert in_planes(plans[0]) == 0
    agree(plans, drawn(1, 8, 20, 20))


def test_no_images_and_no_rows() -> None:
    for shape in ((0, 8, 20, 20), (1, 8, 20, 1)):
        agree(both(chain(stack(8, 3)), shape), drawn(*shape))


def network(seed: int) -> tuple[Callable[[Any], Any], tuple[int, ...]]:
    """Draws convolutions of all kinds, pools, residuals and activations behind each other."""
    chance = random.Random(seed)
    channels, groups = chance.choice([(3, 1), (8, 2), (16, 1)])
    steps: list[tuple[Any, ...]] = []
    for _ in range(chance.randint(3, 7)):
        size = chance.choice([1, 3, 3, 3, 5])
        kind = chance.choice(["plain", "plain", "residual", "stride", "pool", "dilated", "uneven", "grouped"])
        inner = channels // groups if kind == "grouped" else channels
        steps.append((kind, drawn(channels, inner, size, size)))

    def program(x: Any) -> Any:
        for kind, weight in steps:
            half = weight.shape[-1] // 2
            match kind:
                case "residual":
                    x = nn.relu(nn.conv2d(x, weight, padding=half) + x)
                case "stride":
                    x = nn.relu(nn.conv2d(x, weight, padding=half, stride=2))
                case "pool":
                    x = nn.max_pool(x, 3, stride=chance.choice([1, 2]), padding=1)
                case "dilated":
                    x = nn.silu(nn.conv2d(x, weight, padding=2 * half, dilation=2))
                case "uneven":
                    x = nn.relu(nn.conv2d(x, weight, padding=((half, half + 1), (half + 1, half))))
                case "grouped":
                    x = nn.conv2d(x, weight, padding=half, groups=groups)
                case _:
                    x = nn.relu(nn.conv2d(x, weight, padding=half))
        return x

    return program, (chance.randint(1, 3), channels, chance.randint(9, 40), chance.randint(9, 40))


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.usefixtures("without_masks")
def test_drawn_networks_keep_their_bits(seed: int) -> None:
    program, shape = network(seed)
    plans = both(program, shape)
    agree(plans, drawn(*shape))
    check(plans[0].data, [drawn(*shape)])


@pytest.mark.usefixtures("without_masks")
def test_most_drawn_networks_have_values_in_planes() -> None:
    assert sum(in_planes(both(*network(seed))[0]) > 0 for seed in range(24)) >= 12


def test_the_plan_tells_what_is_not_copied() -> None:
    document = both(chain(stack(8, 3)), (1, 8, 20, 20))[0].document()
    sizes = document["liveness"]["spared_bytes"]
    assert sorted(map(int, sizes)) == sorted(region["root"] for region in document["regions"])[1:]
    assert "2 images lie in planes, zeros around them:" in both(chain(stack(8, 3)), (1, 8, 20, 20))[0].describe()
    told = [spared(region, document) for region in document["regions"]]
    assert [bool(lines) for lines in told] == [False, True, True]
    assert "its image was written in planes" in told[1][0]
