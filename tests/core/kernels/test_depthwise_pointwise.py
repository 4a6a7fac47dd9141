import numpy as np
import pytest

from tests.core.kernels.check import taken
from topos_core import nn
from topos_core.kernels.host import Host, host
from topos_core.kernels.vocabulary.blocks import CONTRACTION
from topos_core.kernels.watching import watching

LANES = host().lanes("f32")


def arrays(batch, channels, rows, image, window=(3, 3), multiplier=1, seed=0):
    random = np.random.default_rng(seed)
    made = channels * multiplier
    shapes = [(batch, channels, *image), (made, 1, *window), (rows, made, *(1 for _ in window))]
    x, depth, point = (random.standard_normal(shape) for shape in shapes)
    return [x, depth / 3, point / np.sqrt(made)]


def pair(**options):
    def program(x, depth, point):
        convolve = {3: nn.conv1d, 4: nn.conv2d, 5: nn.conv3d}[x.ndim]
        return convolve(convolve(x, depth, groups=x.shape[1], **options), point)

    return program


def check(function, given, **options):
    return taken("depthwise_pointwise", function, given, scale=4.0, **options)


@pytest.mark.parametrize("width", [2, 7, LANES - 1, LANES, LANES + 1, 3 * LANES + 1, 56])
@pytest.mark.parametrize("rows", [2, 4, 5, 8, 9, 17])
def test_tails_of_positions_and_rows(width, rows):
    check(pair(padding=1), arrays(2, 5, rows, (3, width)))


@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize("padding", [0, 1])
def test_images_whose_rows_are_asked_for_ahead(padding, asks, monkeypatch):
    monkeypatch.setattr(Host, "waits_for_rows", property(lambda _: asks))
    with watching() as seen:
        check(pair(padding=padding), arrays(2, 80, 9, (40, 84)))
    words = [dict(zip(CONTRACTION, start.words, strict=False)) for start in seen.started if start.name == "contraction"]
    assert {word["next_lines"] > 0 for word in words} == {asks and host().masked}


@pytest.mark.parametrize("rows", [1, 3])
def test_many_positions(rows):
    check(pair(padding=1), arrays(1, 24, rows, (40, 44)))


@pytest.mark.parametrize(
    "options",
    [
        {}, {"padding": 1}, {"padding": 2}, {"padding": (0, 2)}, {"stride": 2, "padding": 1}, {"stride": (1, 2)},
        {"dilation": 2, "padding": 2}, {"dilation": (2, 1)}, {"stride": 3},
    ],
)  # fmt: skip
@pytest.mark.parametrize("window", [(3, 3), (1, 3), (5, 2)])
def test_windows(options, window):
    check(pair(**options), arrays(2, 4, 6, (11, 13), window))


def test_a_row_and_a_volume():
    check(pair(padding=1), arrays(2, 4, 6, (50,), (3,)))
    check(pair(padding=1), arrays(2, 4, 6, (4, 5, 9), (3, 3, 3)))


@pytest.mark.parametrize("multiplier", [2, 3])
def test_several_results_of_one_channel(multiplier):
    def program(x, depth, point):
        return nn.conv2d(nn.relu(nn.conv2d(x, depth, padding=1, groups=4)), point)

    check(program, arrays(2, 4, 6, (9, 20), multiplier=multiplier))


@pytest.mark.parametrize("activation", [nn.relu, nn.silu, nn.gelu, np.tanh, lambda x: np.clip(x, 0, 6)])
def test_biases_and_activations(activation):
    random = np.random.default_rng(3)
    given = [*arrays(2, 5, 9, (6, 20)), random.standard_normal(5), random.standard_normal(9)]

    def program(x, depth, point, first, second):
        y = activation(nn.conv2d(x, depth, first, padding=1, groups=5))
        return activation(nn.conv2d(y, point, second))

    check(program, given)


def test_batch_norms_and_a_residual():
    random = np.random.default_rng(3)
    first = [np.abs(random.standard_normal(5)) + 0.5 for _ in range(4)]
    second = [np.abs(random.standard_normal(9)) + 0.5 for _ in range(4)]
    other = random.standard_normal((2, 9, 6, 20))

    def program(x, depth, point, other, a, b, c, d, e, f, g, h):
        y = nn.relu(nn.batch_norm(nn.conv2d(x, depth, padding=1, groups=5), a, b, c, d))
        return nn.relu(nn.batch_norm(nn.conv2d(y, point), e, f, g, h) + other)

    check(program, [*arrays(2, 5, 9, (6, 20)), other, *first, *second])


def test_a_result_with_channels_last():
    def program(x, depth, point):
        y = nn.conv2d(x, depth, padding=1, groups=5)
        return np.einsum("bchw,oc->bhwo", y, point[:, :, 0, 0])

    check(program, arrays(2, 5, 9, (6, 20)))
    check(program, arrays(2, 5, 9, (6, 20)), dtype="f16")


def test_an_image_with_channels_last():
    def program(x, depth, point):
        return pair(padding=1)(x.transpose(0, 3, 1, 2), depth, point)

    x, depth, point = arrays(2, 5, 9, (6, 20))
    check(program, [np.ascontiguousarray(x.transpose(0, 2, 3, 1)), depth, point])


def test_weights_known_beforehand():
    x, depth, point = (array.astype(np.float32) for array in arrays(2, 20, 9, (6, 20)))
    check(lambda x: pair(padding=1)(x, depth, point), [x])


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16"])
def test_other_floats(dtype):
    check(pair(padding=1), arrays(2, 5, 9, (6, 20)), dtype=dtype)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_a_number_spoils_its_own_window_alone(value):
    given = arrays(2, 5, 9, (9, 20))
    given[0][1, 2, 4, 19], given[0][0, 3, 0, 0] = value, value
    got = check(pair(padding=1), given)
    assert np.isfinite(got[1, :, :, :17]).all()
    assert np.isfinite(got[0, :, 2:]).all()


def test_threads_give_the_same_bits():
    given = arrays(2, 32, 40, (40, 41))
    one = check(pair(padding=1), given)
    for threads in (2, 4):
        np.testing.assert_array_equal(check(pair(padding=1), given, threads=threads), one)
