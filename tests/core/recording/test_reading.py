"""Reading while recording: what observes, what is only shown, and what it shows."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from tests.core.recording.check import record, source_of
from topos_core.errors import RecordingError
from topos_core.recording.observe import observe
from topos_core.recording.spec import f32
from topos_core.recording.trace import trace


def readers(function: Any) -> list[tuple[str, str | None, str, str]]:
    """Lists (kind, name, source text, op) of every reader but the outputs."""
    tape = record(function)
    return [
        (each.kind, each.name, source_of(tape, tape.locations[each.location].span), tape.ops[each.value].name)
        for each in tape.observations
        if each.kind != "output"
    ]


def printed(x, y):
    z = x + y
    print(z)
    return z


def formatted(x, y):
    z = x + y
    text = f"{z:>20} and {z.mean():.3f}"
    assert text == "            f32[3,4] and f32[]"
    return z


def item(x, y):
    total = x.sum()
    text = f"{total.item():.2f} {total.item()!r}"
    assert text == "f32 value f32 value"
    return x


def item_at(x, y):
    str(x.item(1, 2))
    return x


def logged(x, y):
    logging.getLogger("a model").warning("mean %s", x.mean())
    return x


def array_to_text(x, y):
    np.array2string(x)
    return x


def observed(x, y):
    z = observe(x @ y.T, "scores")
    return observe(z * 2)


def only_repr(x, y):
    assert repr(x + y) == "<f32[3,4] %2 = add>"
    assert str([x]) == "[<f32[3,4] %0 = input>]"
    return x


EXPECTED = {
    printed: [("print", None, "print(z)", "add")],
    item: [("item", None, "total.item()", "sum"), ("item", None, "total.item()", "sum")],
    item_at: [("item", None, "x.item(1, 2)", "reshape")],
    logged: [("print", None, 'logging.getLogger("a model").warning("mean %s", x.mean())', "div")],
    array_to_text: [("print", None, "np.array2string(x)", "input")],
    observed: [
        ("observe", "scores", 'observe(x @ y.T, "scores")', "matmul"),
        ("observe", None, "observe(z * 2)", "mul"),
    ],
    only_repr: [],
}


@pytest.mark.parametrize("function", EXPECTED, ids=lambda function: function.__name__)
def test_a_reader_is_recorded_with_its_kind_and_expression(function: Any, capsys: Any) -> None:
    assert readers(function) == EXPECTED[function]


def test_formatting_observes_at_its_line() -> None:
    found = readers(formatted)
    assert [(kind, op) for kind, _, _, op in found] == [("print", "add"), ("print", "div")]
    assert all(text.startswith(("f", "{")) for _, _, text, _ in found)  # the whole string before Python 3.12


def test_printing_shows_the_type(capsys: Any) -> None:
    record(printed)
    assert capsys.readouterr().out == "f32[3,4]\n"


def test_outputs_come_first_among_observations() -> None:
    tape = record(observed)
    assert [each.kind for each in tape.observations] == ["output", "observe", "observe"]
    assert tape.names[tape.observations[1].value] == "scores"


def test_outside_of_a_trace_observing_gives_back_anything() -> None:
    array = np.ones(3)
    assert observe(array, "a") is array
    assert observe(None) is None


def test_observing_a_container_while_recording_is_refused() -> None:
    with pytest.raises(RecordingError, match="observe each of its values"):
        record(lambda x, y: observe((x, y))[0])


def test_a_value_prints_after_its_trace_without_effect() -> None:
    kept = []
    tape = trace(lambda x: kept.append(x + 1) or x, x=f32[2])
    assert str(kept[0]) == "f32[2]"
    assert [each.kind for each in tape.observations] == ["output"]


def test_printing_a_shape_observes_nothing(capsys: Any) -> None:
    tape = trace(lambda x: print(x.shape, x.dtype, x.ndim) or x, x=f32[2])
    assert len(tape.observations) == 1
    assert capsys.readouterr().out == "(2,) float32 1\n"
