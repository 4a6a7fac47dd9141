"""An index outside of its own axis is an error, wherever it is looked up: merged with other axes it may lie inside."""

import numpy as np
import pytest

import topos_core as tp
from tests.core.recording.check import names, refusal
from topos_core.errors import ConfigurationError
from topos_core.nn import log_softmax
from topos_core.recording.trace import trace
from topos_core.run.interpreter import interpret

X = np.arange(15, dtype=np.float32).reshape(3, 5)
ROWS = np.arange(3)


def along(x, i):
    return np.take_along_axis(x, i, axis=1)


def along_columns(x, i):
    return np.take_along_axis(x, i.reshape(3, 1) + np.zeros((1, 5), np.int8), axis=0)


def along_one_row(x, i):
    return np.take_along_axis(x[:1], i, axis=1)


def paired(x, i):
    return x[ROWS[:, None], i]


def paired_with_one(x, i):
    return x[1, i]


def twice(x, i):
    return x[i, i]


def taken(x, i):
    return np.take(x, i, axis=1)


def of_all(x, i):
    return np.take(x, i)


def chosen(x, i):
    return -log_softmax(x)[np.arange(3), i[:, 0]].mean()


def chosen_along(x, i):
    return -np.take_along_axis(log_softmax(x), i, axis=-1).sum()


LOOKUPS = {
    along: 5, along_columns: 3, along_one_row: 5, paired: 5, paired_with_one: 5, twice: 3, taken: 5, of_all: 15, chosen: 5,
    chosen_along: 5,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["i8", "i32", "i64"])
@pytest.mark.parametrize("lookup", LOOKUPS)
def test_an_index_outside_of_its_axis_is_an_error_of_every_run(lookup, dtype):
    extent = LOOKUPS[lookup]
    tape = trace(lookup, x="f32[3,5]", i=f"{dtype}[3,1]")
    plans = [tp.plan(tape, fidelity=fidelity, cost="always") for fidelity in ("exact", "fast")]
    runs = [lambda *given: interpret(tape, given)[0], *(plan.run for plan in plans)]
    for index in (-extent - 1, -extent, -1, 0, extent - 1, extent):
        given = X, np.array([[0], [index], [1]], f"i{int(dtype[1:]) // 8}")
        if -extent <= index < extent:
            for run in runs:
                np.testing.assert_allclose(run(*given), lookup(*given), rtol=1e-6)
            continue
        with pytest.raises(IndexError):
            lookup(*given)
        for run in runs:
            with pytest.raises(ConfigurationError, match=rf"out of range for an axis of {extent}; use ") as failure:
                run(*given)
            assert failure.value.code == "TP502"
            assert failure.value.span is not None


def test_the_index_that_was_given_is_told_with_the_axis_and_where():
    tape = trace(along, x="f32[3,5]", i="i64[3,1]")
    with pytest.raises(
        ConfigurationError, match="within: index -6 is out of range for an axis of 5; use -5 to 4"
    ) as failure:
        interpret(tape, (X, np.full((3, 1), -6)))
    assert (
        tape.sources[failure.value.span.path]
        .splitlines()[failure.value.span.line - 1]
        .strip()
        .startswith("return np.take")
    )


@pytest.mark.parametrize("lookup", [along, paired, chosen, chosen_along])
def test_a_declared_range_needs_no_check_and_is_held_to(lookup):
    tape = trace(lookup, x="f32[3,5]", i="i64[3,1]<5")
    assert "within" not in names(tape)
    for fidelity in ("exact", "fast"):
        plan = tp.plan(tape, fidelity=fidelity, cost="always")
        with pytest.raises(ConfigurationError, match="holds 0 to 5, the program was traced with 0 to 4"):
            plan.run(X, np.array([[0], [5], [1]]))


@pytest.mark.parametrize(
    ("index", "checks"),
    [
        (lambda i: i % 5, 0),
        (lambda i: np.clip(i, 0, 4), 0),
        (lambda i: np.clip(i, -5, 4), 0),
        (lambda i: np.where(i > 0, 4, -1), 0),
        (lambda i: np.clip(i, 0, 5), 1),
        (lambda i: np.clip(i, -6, 4), 1),
        (lambda i: np.clip(i, 0, 3) + 1, 0),
        (lambda i: np.clip(i, 0, 3) + 2, 1),
        (lambda i: np.clip(i, 0, 2) * 2, 0),
        (lambda i: np.clip(i, 0, 4).astype(np.int8), 0),
        (lambda i: i.astype(np.uint8), 1),
        (lambda i: i % 6, 1),
    ],
)
def test_what_is_known_to_lie_inside_is_not_checked(index, checks):
    tape = trace(lambda x, i: np.take_along_axis(x, index(i), axis=1), x="f32[3,5]", i="i64[3,1]")
    assert names(tape).count("within") == checks


def test_places_of_the_largest_elements_are_not_checked():
    tape = trace(lambda x: np.take_along_axis(x, x.argmax(1)[:, None], axis=1), x="f32[3,5]")
    assert "within" not in names(tape)


@pytest.mark.parametrize(
    "lookup",
    [
        lambda x: np.take_along_axis(x, np.array([[0], [5], [1]]), axis=1),
        lambda x: np.take_along_axis(x, np.array([[0], [-6], [1]]), axis=1),
        lambda x: x[np.arange(3), np.array([0, 5, 1])],
        lambda x: np.take(x, np.array([0, -6]), axis=1),
    ],
)
def test_a_constant_index_outside_is_refused_where_it_is_recorded(lookup):
    _, message = refusal(lookup, x="f32[3,5]")
    assert "is out of range for" in message
