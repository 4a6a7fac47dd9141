from __future__ import annotations

import numpy as np
import pytest

from tests.support.tapes import TapeBuilder
from topos_core.cost.memory import Placed, innermost_run, is_contiguous, place, reshaped_strides
from topos_core.ops.catalog import definition


def numpy_strides(array: np.ndarray) -> tuple[int, ...]:
    return tuple(s // array.itemsize for s in array.strides)


def meaningful(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """Strides of axes that have more than one element: NumPy leaves the others free."""
    return [s for extent, s in zip(shape, strides, strict=True) if extent > 1]


def random_view(rng: np.random.Generator) -> np.ndarray:
    shape = tuple(rng.choice([1, 2, 3, 4, 6], size=rng.integers(1, 5)))
    x = np.zeros(shape, np.float32).transpose(rng.permutation(len(shape)))
    if rng.random() < 0.4:
        x = x[tuple(slice(None, None, int(rng.integers(1, 3))) for _ in x.shape)]
    if rng.random() < 0.3:
        x = np.flip(x, int(rng.integers(x.ndim)))
    if rng.random() < 0.3:
        x = np.broadcast_to(x, (int(rng.integers(1, 4)), *x.shape))
    return x


def random_factors(rng: np.random.Generator, size: int) -> tuple[int, ...]:
    factors = [1] * int(rng.integers(0, 2))
    while size > 1:
        options = [k for k in range(2, size + 1) if size % k == 0]
        factors.append(int(rng.choice(options)))
        size //= factors[-1]
    rng.shuffle(factors)
    return tuple(factors)


def test_reshape_is_a_view_exactly_where_numpy_says_so() -> None:
    rng = np.random.default_rng(7)
    copies = 0
    for _ in range(4000):
        x = random_view(rng)
        target = random_factors(rng, x.size)
        got = reshaped_strides(x.shape, numpy_strides(x), target)
        try:
            want = x.copy() if x.base is None else x.view()
            want = x.view()
            want.shape = target
        except AttributeError:
            copies += 1
            assert got is None, (x.shape, x.strides, target)
        else:
            assert got is not None, (x.shape, x.strides, target)
            assert meaningful(target, got) == meaningful(target, numpy_strides(want))
    assert copies > 500


def test_contiguity_is_numpys() -> None:
    rng = np.random.default_rng(8)
    for _ in range(1000):
        x = random_view(rng)
        assert is_contiguous(x.shape, numpy_strides(x)) == x.flags.c_contiguous


@pytest.mark.parametrize(
    ("shape", "strides", "run"),
    [((2, 3), (3, 1), 6), ((2, 3), (4, 1), 3), ((3, 2), (1, 3), 1), ((2, 1, 3), (3, 9, 1), 6), ((), (), 1)],
)
def test_the_innermost_run_counts_what_lies_together(
    shape: tuple[int, ...], strides: tuple[int, ...], run: int
) -> None:
    assert innermost_run(shape, strides) == run


def test_every_op_is_placed_where_its_numpy_evaluation_puts_it() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[2,3,8,8]")
    k = b.input("k", "f32[27,4]")
    padded = b.op("pad", x, fill=np.float32(0), low=(0, 0, 1, 1), high=(0, 0, 1, 1), interior=(0, 0, 0, 0))
    windows = b.op(
        "unfold", b.op("unfold", padded, axis=2, size=3, step=1, dilation=1), axis=3, size=3, step=1, dilation=1
    )
    columns = b.op("reshape", b.op("permute", windows, order=(0, 2, 3, 1, 4, 5)), shape=(128, 27))
    product = b.op("matmul", columns, k, accumulate="f32")
    image = b.op("permute", b.op("reshape", product, shape=(2, 8, 8, 4)), order=(0, 3, 1, 2))
    total = b.op("sum", image, axes=(0, 2, 3), accumulate="f32")
    halved = b.op("mul", image, b.constant(0.5, "f32[2,4,8,8]"))
    flipped = b.op(
        "reverse", b.op("slice", halved, start=(0, 0, 1, 0), stop=(2, 4, 7, 8), step=(1, 1, 2, 1)), axes=(3,)
    )
    spread = b.op("broadcast", b.op("reshape", total, shape=(4, 1, 1)), shape=(2, 4, 8, 8))
    diagonal = b.op("strided", image, shape=(8,), strides=(9,), offset=0)
    tape = b.tape(flipped, spread, diagonal)

    arrays: list[np.ndarray] = []
    places: list[Placed] = []
    rng = np.random.default_rng(0)
    for value, op in enumerate(tape.ops):
        if op.name == "input":
            arrays.append(rng.random(op.type.shape, np.float32))
        else:
            operands = [arrays[o] for o in op.operands]
            arrays.append(definition(op.name).evaluate(operands, op.attributes, op.type))
        placement = place(tape, value, places.__getitem__)
        places.append(placement.placed)
        got = arrays[value]
        assert meaningful(op.type.shape, placement.placed.strides) == meaningful(got.shape, numpy_strides(got)), op.name
        shared = [v for v in range(value) if np.shares_memory(arrays[v], got)]
        assert (placement.placed.base != value) == bool(shared), op.name
        if shared:
            assert placement.placed.base == places[shared[0]].base
    assert place(tape, columns, places.__getitem__).copied == 128 * 27
    assert place(tape, total, places.__getitem__).temporary_bytes == tape.type_of(image).bytes
    assert place(tape, product, places.__getitem__).copied == 0
