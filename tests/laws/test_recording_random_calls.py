"""The law of recording on random calls: indices, einsums, reductions, pads and reshapes with arguments that nobody chose."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from topos_core.errors import RecordingError
from topos_core.recording.spec import f32, i64
from topos_core.recording.trace import trace
from topos_core.run.interpreter import interpret

ARRAY = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype("f4")
INDEX = np.array([1, 0, -1, -2])


def index(chooser: random.Random) -> tuple[Any, ...]:
    """Gives a random index of t, f32[2,3,4,5]; "i" stands for the recorded i64[4]."""
    keys: list[Any] = []
    wide = chooser.randint(1, 3)  # index arrays of one index broadcast together
    for extent in ARRAY.shape[: chooser.randint(0, 4)]:
        kind = chooser.random()
        if kind < 0.35:
            bounds = [chooser.choice([None, *range(-extent - 1, extent + 2)]) for _ in range(2)]
            keys.append(slice(*bounds, chooser.choice([None, 1, 2, 3, -1, -2])))
        elif kind < 0.6:
            keys.append(chooser.randrange(-extent, extent))
        elif kind < 0.75:
            table = np.array([chooser.randrange(-extent, extent) for _ in range(wide)])
            keys.append(table[:, None] if chooser.random() < 0.3 else table)
        elif kind < 0.82:
            keys.append(np.array([chooser.random() < 0.6 for _ in range(extent)]))
        elif kind < 0.9:
            keys.append("i")
        else:
            keys.append(slice(None))
    for _ in range(chooser.choice([0, 0, 1, 2])):
        keys.insert(chooser.randint(0, len(keys)), None)
    if chooser.random() < 0.3:
        keys.insert(chooser.randint(0, len(keys)), Ellipsis)
    return tuple(keys)


def indexing(chooser: random.Random) -> tuple[Callable[..., Any], str]:
    keys = index(chooser)
    return lambda t, i: t[tuple(i if isinstance(k, str) else k for k in keys)], f"t[{keys}]"


def einsum(chooser: random.Random) -> tuple[Callable[..., Any], str]:
    extents = dict(zip("abcde", (2, 3, 4, 5, 2), strict=True))
    terms = ["".join(chooser.choices("abcde", k=chooser.randint(1, 3))) for _ in range(chooser.randint(1, 3))]
    letters = sorted(set("".join(terms)))
    result = "".join(chooser.sample(letters, chooser.randint(0, len(letters))))
    text = ",".join(terms) + (f"->{result}" if chooser.random() < 0.85 else "")
    flat = ARRAY.reshape(-1)
    sizes = [[extents[letter] for letter in term] for term in terms]

    def function(t: Any, i: Any) -> Any:
        line = t.reshape(-1)
        return np.einsum(text, *[line[k : k + int(np.prod(shape))].reshape(shape) for k, shape in enumerate(sizes)])

    assert flat.size > 60
    return function, text


def reduction(chooser: random.Random) -> tuple[Callable[..., Any], str]:
    function = chooser.choice([np.sum, np.max, np.min, np.mean, np.var, np.std, np.prod, np.any, np.all, np.ptp])
    axes = chooser.choice([None, chooser.randrange(-4, 4), tuple(chooser.sample(range(4), chooser.randint(0, 3)))])
    if function is np.ptp and axes == ():
        axes = None
    keywords = {"axis": axes, **({"keepdims": True} if chooser.random() < 0.4 else {})}
    return lambda t, i: function(t, **keywords), f"np.{function.__name__}(t, {keywords})"


def padding(chooser: random.Random) -> tuple[Callable[..., Any], str]:
    mode = chooser.choice(["constant", "edge", "reflect", "symmetric", "wrap"])
    widths = [(chooser.randint(0, 3), chooser.randint(0, 3)) for _ in range(4)]
    return lambda t, i: np.pad(t, widths, mode=mode), f"np.pad(t, {widths}, {mode!r})"


def shape(chooser: random.Random) -> tuple[Callable[..., Any], str]:
    factors = [2, 3, 2, 2, 5]
    chooser.shuffle(factors)
    extents: list[int] = []
    for factor in factors:
        if extents and chooser.random() < 0.4:
            extents[-1] *= factor
        else:
            extents.append(factor)
    order = chooser.sample(range(4), 4)
    text = f"t.transpose({order}).reshape({extents})"
    return lambda t, i: np.roll(t.transpose(order).reshape(extents), chooser_shift, 0), text


chooser_shift = 1


def check(function: Callable[..., Any], text: str) -> str:
    with np.errstate(all="ignore"):
        try:
            wanted = np.asarray(function(ARRAY, INDEX))
        except (IndexError, ValueError):
            with pytest.raises(RecordingError):
                trace(function, f32[2, 3, 4, 5], i64[4])
            return "refused by both"
        try:
            tape = trace(function, f32[2, 3, 4, 5], i64[4])
        except RecordingError as error:
            raise AssertionError(f"{text}: {error}") from error
        try:
            (got,) = interpret(tape, [ARRAY, INDEX])
        except Exception as error:
            raise AssertionError(f"{text}: {error}") from error
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), text
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-5, err_msg=text)
    return "same"


@pytest.mark.parametrize(
    ("family", "least"), [(indexing, 1000), (einsum, 300), (reduction, 380), (padding, 380), (shape, 380)]
)
def test_random_calls_give_numpys_answer(family: Callable[[random.Random], Any], least: int) -> None:
    count = 2000 if family is indexing else 400
    found = [check(*family(random.Random(seed))) for seed in range(count)]
    assert found.count("same") >= least
