"""Marked entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from topos_core.errors import ConfigurationError, TraceError
from topos_core.recording.entry import record_entry
from topos_core.recording.model import entry_of, model
from topos_core.recording.spec import f32
from topos_core.recording.trace import trace


def example(seed: int) -> dict[str, np.ndarray]:
    return {"x": np.zeros((2, 3), "f4")}


@model(x=f32[2, 3], w="f32[3]", example=example, metric=np.mean)
def weighted(x, w):
    return x * w


@model("f32[2]")
class Net:
    def __init__(self) -> None:
        self.w = np.full(2, 3, "f4")

    def __call__(self, x):
        return x * self.w


def unmarked(x):
    return x + 1


instance = Net()
NAMESPACE = {"weighted": weighted, "Net": Net, "unmarked": unmarked, "instance": instance, "number": 3}


def test_a_marked_function_stays_callable_and_keeps_its_entry() -> None:
    assert weighted(2, 3) == 6
    entry = entry_of(weighted)
    assert entry is not None
    assert (entry.name, entry.example, entry.metric) == ("weighted", example, np.mean)
    assert {name: str(spec) for name, spec in entry.specs.items()} == {"x": "f32[2,3]", "w": "f32[3]"}
    assert entry_of(unmarked) is None


def test_a_marked_function_needs_no_specs() -> None:
    tape = trace(weighted)
    assert [tape.names[value] for value in tape.inputs] == ["x", "w"]
    other = trace(weighted, x=f32[3], w=f32[3])
    assert [str(other.type_of(value)) for value in other.inputs] == ["f32[3]", "f32[3]"]


@pytest.mark.parametrize("name", ["Net", "instance"])
def test_a_marked_class_is_built_without_arguments(name: str) -> None:
    assert [op.name for op in record_entry(NAMESPACE, name).ops] == ["input", "constant", "mul"]


def test_specs_as_text_take_precedence() -> None:
    tape = record_entry(NAMESPACE, "unmarked", "f32[N]", dims={"N": 5})
    assert str(tape.type_of(0)) == "f32[5]"
    assert str(record_entry(NAMESPACE, "weighted", "x=f32[4,3], w=f32[3]").type_of(0)) == "f32[4,3]"


FAILURES: dict[str, tuple[str, str | None, str]] = {
    "missing": ("absent", None, "marked are weighted, Net, instance"),
    "missing part": ("Net.absent", None, "Net has no absent"),
    "no specs": ("unmarked", None, "has no input specs"),
    "no function": ("number", "f32[2]", "cannot be called"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_what_is_no_entry_is_told(case: str) -> None:
    name, specs, message = FAILURES[case]
    with pytest.raises(TraceError, match=message) as caught:
        record_entry(NAMESPACE, name, specs)
    assert caught.value.code == "TP408"


def test_marks_that_cannot_be_read_fail_where_they_are_written() -> None:
    with pytest.raises(ConfigurationError, match="unknown dtype float"):
        model(x="float[2]")
    with pytest.raises(ConfigurationError, match="without input specs"):
        model(unmarked)  # type: ignore[arg-type]


def test_named_extents_of_a_mark_wait_for_their_numbers() -> None:
    @model(x="f32[N,3]")
    def rows(x: Any) -> Any:
        return x * 2

    assert str(record_entry({"rows": rows}, "rows", dims={"N": 7}).type_of(0)) == "f32[7,3]"
    with pytest.raises(ConfigurationError, match="extent N has no value"):
        trace(rows)


def test_methods_are_entries_by_dotted_name() -> None:
    class Space:
        @staticmethod
        def double(x: Any) -> Any:
            return x * 2

    assert record_entry({"Space": Space}, "Space.double", "f32[2]").ops[-1].name == "mul"
