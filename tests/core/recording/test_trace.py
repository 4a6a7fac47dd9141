"""What a trace takes, what it gives, and how it fails."""

from __future__ import annotations

import functools
import gc
import threading
from collections import namedtuple
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.core.recording.check import record, source_of
from topos_core.errors import ConfigurationError, RecordingError, TraceError
from topos_core.recording.recorder import CURRENT, Recorder, recording
from topos_core.recording.spec import f32, i64
from topos_core.recording.trace import record as record_with
from topos_core.recording.trace import trace
from topos_core.run.interpreter import interpret
from topos_core.tape.span import Frame, Location, Span
from topos_core.tape.tape import Structure
from topos_core.tape.type import TensorType


@dataclass
class Output:
    loss: Any
    parts: list[Any]


Pair = namedtuple("Pair", "left right")


def leaf(index: int) -> Structure:
    return Structure("leaf", index=index)


RESULTS = {
    "one value": (lambda x, y: x, leaf(0)),
    "tuple": (lambda x, y: (x, y), Structure("tuple", (leaf(0), leaf(1)))),
    "list with None": (lambda x, y: [None, y], Structure("list", (Structure("none"), leaf(0)))),
    "dict": (
        lambda x, y: {"a": x, "b": (y,)},
        Structure("dict", (leaf(0), Structure("tuple", (leaf(1),))), ("a", "b")),
    ),
    "dataclass": (
        lambda x, y: Output(x, [y, y]),
        Structure("record", (leaf(0), Structure("list", (leaf(1), leaf(2)))), ("loss", "parts")),
    ),
    "named tuple": (lambda x, y: Pair(x, y), Structure("record", (leaf(0), leaf(1)), ("left", "right"))),
    "number": (lambda x, y: (x, 2.5), Structure("tuple", (leaf(0), leaf(1)))),
    "nothing": (lambda x, y: None, Structure("none")),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_keep_their_structure(name: str) -> None:
    function, structure = RESULTS[name]
    tape = record(function)
    assert tape.structure == structure
    outputs = [each for each in tape.observations if each.kind == "output"]
    assert [each.value for each in outputs] == list(tape.results)


def test_inputs_stand_in_the_functions_order_whatever_the_order_of_specs() -> None:
    def model(image, weight, bias):
        return image * weight + bias

    tape = trace(model, bias=f32[2], weight="f32[2]", image=TensorType("f32", (2,)))
    assert [tape.names[value] for value in tape.inputs] == ["image", "weight", "bias"]
    assert tape.inputs == (0, 1, 2)


def test_bounds_of_integer_inputs_are_kept() -> None:
    assert trace(lambda ids: ids + 1, ids=i64[3] < 100).ranges == {0: (0, 100)}


def test_arguments_that_are_no_specs_are_passed_as_they_are() -> None:
    def model(x, bias=None, *, power, table):
        return (x if bias is None else x + bias) ** power * table["w"]

    tape = trace(model, f32[2], None, power=3, table={"w": np.ones(2, "f4")})
    assert len(tape.inputs) == 1


def test_specs_inside_containers_become_inputs_named_by_their_path() -> None:
    def model(parameters, x):
        return x @ parameters["layers"][0]["w"] + parameters["b"]

    tape = trace(model, {"layers": [{"w": f32[4, 2]}], "b": f32[2]}, f32[3, 4])
    assert [tape.names[value] for value in tape.inputs] == ["parameters.layers.0.w", "parameters.b", "x"]


def test_starred_arguments_become_inputs() -> None:
    def model(*rows, **named):
        return sum(rows) + named["last"]

    tape = trace(model, f32[2], f32[2], last=f32[2])
    assert [tape.names[value] for value in tape.inputs] == ["rows.0", "rows.1", "last"]


def test_objects_partials_and_ufuncs_can_be_traced() -> None:
    class Model:
        def __call__(self, x):
            return x * 2

    assert len(trace(Model(), f32[2]).ops) == 3
    assert len(trace(Model, f32[2]).ops) == 3
    assert trace(functools.partial(np.add, 1.0), f32[2]).ops[-1].name == "add"
    assert trace(np.exp, f32[2]).ops[-1].name == "exp"


def test_named_extents_take_their_numbers() -> None:
    assert str(record_with(np.exp, ("f32[N,3]",), dims={"N": 4}).type_of(0)) == "f32[4,3]"


MISFITS = {
    "missing": (lambda: trace(lambda x, y: x, f32[2]), "missing a required argument: 'y'"),
    "unexpected": (lambda: trace(lambda x: x, x=f32[2], z=f32[2]), "got an unexpected keyword argument 'z'"),
    "not callable": (lambda: trace(3, f32[2]), "int cannot be called"),
    "bad text": (lambda: trace(lambda x: x, "f32(2)"), "cannot be read"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_specs_that_do_not_fit_are_configuration_errors(name: str) -> None:
    run, message = MISFITS[name]
    with pytest.raises(ConfigurationError, match=message) as caught:
        run()
    assert caught.value.code == "TP502"


def raises_inside(x, y):
    z = x + y
    return {}["missing"] * z


def test_an_exception_of_the_function_becomes_an_error_with_its_place() -> None:
    with pytest.raises(TraceError, match="the function raised KeyError: 'missing'") as caught:
        record(raises_inside)
    error = caught.value
    assert error.code == "TP402"
    assert isinstance(error.__cause__, KeyError)
    assert error.span is not None
    assert source_of(_with_source(), error.span) == '{}["missing"]'


def test_an_exception_while_building_a_class_is_told_at_its_line() -> None:
    class Model:
        def __init__(self) -> None:
            self.w = 1 / 0

    with pytest.raises(TraceError, match="ZeroDivisionError") as caught:
        trace(Model, f32[2])
    assert caught.value.span is not None
    assert source_of(_with_source(), caught.value.span) == "1 / 0"


def _with_source() -> Any:
    with open(__file__) as file:
        return SimpleNamespace(sources={__file__: file.read()})


def test_system_exit_and_interrupts_pass() -> None:
    def leaves(x):
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        trace(leaves, f32[2])
    assert CURRENT.get() is None
    assert gc.isenabled()


def test_the_collector_is_on_again_after_an_error() -> None:
    with pytest.raises(RecordingError):
        trace(lambda x: float(x), f32[2])
    assert gc.isenabled()


def test_a_value_of_an_earlier_trace_is_refused_with_both_places() -> None:
    cache: list[Any] = []

    def model(x):
        if not cache:
            cache.append(x * 2)
        return x + cache[0]

    trace(model, f32[2])
    with pytest.raises(RecordingError, match=r"f32\[2\] recorded at .*belongs to another trace") as caught:
        trace(model, f32[2])
    assert len(caught.value.related) == 1
    with pytest.raises(RecordingError, match="belongs to another trace, or to one that has ended"):
        cache[0] + 1


def test_values_of_an_outer_trace_are_refused_in_an_inner_one() -> None:
    def outer(x):
        return trace(lambda y: x + y, f32[2])

    with pytest.raises(RecordingError, match="belongs to another trace"):
        trace(outer, f32[2])


def test_another_threads_value_is_refused() -> None:
    caught: list[Exception] = []

    def model(x):
        def work():
            try:
                x + 1
            except RecordingError as error:
                caught.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return x

    trace(model, f32[2])
    assert len(caught) == 1


def test_two_threads_record_side_by_side() -> None:
    barrier = threading.Barrier(2)
    tapes: dict[int, Any] = {}

    def model(k):
        def function(x):
            for _ in range(200):
                barrier.wait()
                x = x + k
            return x

        return function

    def work(k):
        tapes[k] = trace(model(k), f32[2])

    threads = [threading.Thread(target=work, args=(k,)) for k in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, tape in tapes.items():
        assert len(tape.ops) == 401
        np.testing.assert_array_equal(interpret(tape, [np.zeros(2, "f4")])[0], np.full(2, 200.0 * k, "f4"))
    assert gc.isenabled()


def test_an_importer_records_at_places_of_its_own() -> None:
    recorder = Recorder()
    place = Location((Frame(Span("graph.onnx", 7, 0, 7, 3), "Add_3", "user"),), ("encoder",))
    with recording(recorder):
        x = recorder.source("input", TensorType("f32", (2,)))
        with recorder.at(place):
            y = x + 1
    assert recorder.place(y) == place


def test_the_function_runs_as_it_is_on_arrays() -> None:
    def model(x):
        return np.maximum(x @ x.T, 0)

    x = np.ones((2, 3), "f4")
    np.testing.assert_array_equal(interpret(trace(model, f32[2, 3]), [x])[0], model(x))
