"""Every op stands at its own expression: path, line and column."""

from __future__ import annotations

import functools
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tests.core.recording.check import expressions, names, record, source_of, texts
from topos_core import nn
from topos_core.recording.location import Locator
from topos_core.recording.source import SourceSnapshot
from topos_core.recording.spec import f32
from topos_core.recording.trace import record as record_with
from topos_core.recording.trace import trace
from topos_core.tape.span import Frame, Location, Span


def multi_line(x: Any, y: Any) -> Any:
    z = (x + y
         * 2.0)  # fmt: skip
    return (z
            .reshape(2, 6)
            .sum(axis=1))  # fmt: skip


def one_line(x: Any, y: Any) -> Any:
    a = x + y; b = a * a; return b - x  # fmt: skip  # noqa: E702


def comprehension(x: Any, y: Any) -> Any:
    rows = [np.exp(r) for r in (x, y)]
    return sum(r * i for i, r in enumerate(rows, 1))


def lambdas(x: Any, y: Any) -> Any:
    act = lambda v: np.maximum(v, 0)  # noqa: E731
    return functools.reduce(lambda a, b: a + b, map(act, [x, y]))


def doubled(function: Any) -> Any:
    @functools.wraps(function)
    def inner(*arguments: Any, **keywords: Any) -> Any:
        return function(*arguments, **keywords) * 2.0

    return inner


@doubled
def decorated(x: Any, y: Any) -> Any:
    return x - y


def calls_decorated(x: Any, y: Any) -> Any:
    return decorated(x, y) + decorated(y, x)


def augmented(x: Any, y: Any) -> Any:
    z = x * y
    z += x
    z -= 1
    return z


def not_ascii(x: Any, y: Any) -> Any:
    größe, 名 = x, y
    return größe * 名 + größe.sum(axis=0)


def after_emoji(x: Any, y: Any) -> Any:
    return ("🙂🙂" and x) + (y * "é".count("é"))


class Block:
    def __init__(self, w: np.ndarray) -> None:
        self.w = w

    def __call__(self, x: Any, y: Any) -> Any:
        return x @ self.w.T + self.inner(y)

    def inner(self, y: Any) -> Any:
        return np.tanh(y).sum()


def methods(x: Any, y: Any) -> Any:
    return Block(np.ones((4, 4), "f4"))(x, y)


def subscripts(x: Any, y: Any) -> Any:
    w = x[1:, ::-1] @ y.T[:, np.newaxis, 0]
    return -w if w.ndim > 1 else w


def generator(x: Any, y: Any) -> Any:
    def rows() -> Any:
        for k in range(2):
            yield x[k] + y[k]

    return np.stack(list(rows()))


def starred(x: Any, y: Any) -> Any:
    return np.concatenate([*(v * 2 for v in (x, y))], **{"axis": 0})


def walrus(x: Any, y: Any) -> Any:
    return (z := x + y) * (2 if z.ndim == 2 else 3) + (z[0] if True else y[0])


def formatted(x: Any, y: Any) -> Any:
    return x + len(f"{1 + 1}{x.sum().ndim}")


EXPECTED = {
    multi_line: ["y\n         * 2.0", "x + y\n         * 2.0", "reshape(2, 6)", "sum(axis=1)"],
    one_line: ["x + y", "a * a", "b - x"],
    comprehension: ["np.exp(r)", "r * i", "sum(r * i for i, r in enumerate(rows, 1))"],
    lambdas: ["np.maximum(v, 0)", "a + b"],
    calls_decorated: ["x - y", "function(*arguments, **keywords) * 2.0", "decorated(x, y) + decorated(y, x)"],
    augmented: ["x * y", "z += x", "z -= 1"],
    not_ascii: ["größe * 名", "größe.sum(axis=0)", "größe * 名 + größe.sum(axis=0)"],
    after_emoji: ['y * "é".count("é")', '("🙂🙂" and x) + (y * "é".count("é"))'],
    methods: ["x @ self.w.T", "np.tanh(y)", "np.tanh(y).sum()", "x @ self.w.T + self.inner(y)"],
    subscripts: ["x[1:, ::-1]", "y.T", "y.T[:, np.newaxis, 0]", "x[1:, ::-1] @ y.T[:, np.newaxis, 0]", "-w"],
    generator: ["x[k]", "y[k]", "x[k] + y[k]", "np.stack(list(rows()))"],
    starred: ["v * 2", 'np.concatenate([*(v * 2 for v in (x, y))], **{"axis": 0})'],
    walrus: [
        "x + y", "(z := x + y) * (2 if z.ndim == 2 else 3)", "z[0]",
        "(z := x + y) * (2 if z.ndim == 2 else 3) + (z[0] if True else y[0])",
    ],
    formatted: ["x.sum()", 'x + len(f"{1 + 1}{x.sum().ndim}")'],
}  # fmt: skip


@pytest.mark.parametrize("function", EXPECTED, ids=lambda function: function.__name__)
def test_every_op_covers_exactly_its_expression(function: Any) -> None:
    assert texts(record(function)) == EXPECTED[function]


def test_inputs_stand_at_their_arguments() -> None:
    tape = record(multi_line)
    assert [source_of(tape, tape.location_of(value).span) for value in tape.inputs] == ["x", "y"]


def test_inputs_of_a_decorated_method_stand_at_their_arguments() -> None:
    block = Block(np.ones((4, 4), "f4"))
    tape = trace(block, x=f32[3, 4], y=f32[3, 4])
    spans = [tape.location_of(value).span for value in tape.inputs]
    assert [source_of(tape, span) for span in spans] == ["x", "y"]
    assert spans[0].line == Block.__call__.__code__.co_firstlineno


def test_outputs_stand_at_the_only_return() -> None:
    tape = record(one_line)
    assert source_of(tape, tape.locations[tape.observations[0].location].span) == "return b - x"


def two_returns(x: Any, y: Any) -> Any:
    if x.ndim == 2:
        return x + y
    return x - y


def test_outputs_of_several_returns_stand_at_their_value() -> None:
    tape = record(two_returns)
    assert source_of(tape, tape.locations[tape.observations[0].location].span) == "x + y"


def library(image: Any, weight: Any) -> Any:
    return nn.max_pool(nn.relu(nn.conv2d(image, weight)), 2)


def test_formulas_show_the_callers_line_and_keep_their_own_frames() -> None:
    tape = trace(library, image=f32[1, 1, 6, 6], weight=f32[2, 1, 3, 3])
    assert texts(tape) == [
        "nn.conv2d(image, weight)",
        "nn.relu(nn.conv2d(image, weight))",
        "nn.max_pool(nn.relu(nn.conv2d(image, weight)), 2)",
    ]
    matmul = next(value for value, op in enumerate(tape.ops) if op.name == "matmul")
    frames = tape.location_of(matmul).frames
    assert [frame.kind for frame in frames] == ["library"] * (len(frames) - 1) + ["user"]
    assert {"convolution", "conv2d"} < {frame.function for frame in frames}
    convolution = next(frame for frame in frames if frame.function == "convolution")
    assert tape.location_of(matmul).span_in(convolution.span.path) == frames[0].span
    assert source_of(tape, convolution.span) == "images @ kernel"


def test_frames_of_other_packages_and_the_standard_library_are_framework(tmp_path: Any) -> None:
    folder = tmp_path / "lib" / "site-packages"
    folder.mkdir(parents=True)
    path = folder / "layers.py"
    path.write_text("def twice(x):\n    return x + x\n")
    space: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), space)

    def model(x: Any) -> Any:
        return functools.singledispatch(space["twice"])(x)

    tape = trace(model, x=f32[2])
    frames = tape.location_of(1).frames
    assert [frame.kind for frame in frames] == ["framework", "framework", "user"]
    assert source_of(tape, tape.location_of(1).span) == 'functools.singledispatch(space["twice"])(x)'


def test_no_frame_of_the_recorder_or_of_numpy_is_kept() -> None:
    tape = record(lambda x, y: np.linalg.norm(np.sum(x, axis=0)) + np.einsum("ij,kj->ik", x, y))
    for location in tape.locations:
        for frame in location.frames:
            assert "/numpy/" not in frame.span.path
            assert "/topos_core/recording/" not in frame.span.path


def test_the_same_place_is_one_location_however_often_it_runs() -> None:
    def loop(x: Any) -> Any:
        for _ in range(300):  # CPython specialises the instructions meanwhile, and may move f_lasti
            x = np.tanh(x) + x
        return x

    tape = trace(loop, x=f32[2])
    assert names(tape) == ["tanh", "add"] * 300
    for name in ("tanh", "add"):
        assert len({op.location for op in tape.ops if op.name == name}) == 1
    assert len(set(tape.locations)) == len(tape.locations)


def test_rows_at_equal_positions_become_one_location() -> None:
    locator = Locator()
    place = Location((Frame(Span("a.py", 1, 0, 1, 4), "f", "user"),))
    rows = [locator.add(place), locator.add(place._replace(scope=("s",))), locator.add(place)]
    locations, distinct = locator.resolve(SourceSnapshot())
    assert locations == (place, place._replace(scope=("s",)))
    assert [distinct[row] for row in rows] == [0, 1, 0]


def test_sources_hold_every_file_that_a_location_names() -> None:
    tape = trace(library, image=f32[1, 1, 6, 6], weight=f32[2, 1, 3, 3])
    named = {frame.span.path for location in tape.locations for frame in location.frames}
    assert named == set(tape.sources)
    with open(__file__) as file:
        assert tape.sources[__file__] == file.read()


def test_given_texts_take_precedence_over_files(tmp_path: Any) -> None:
    path = tmp_path / "model.py"
    path.write_text("nothing of use\n")
    text = "def f(x):\n    é = x\n    return é + é * 2\n"
    space: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), space)
    tape = record_with(space["f"], (f32[2],), sources={str(path): text})
    assert tape.sources[str(path)] == text
    assert [text for _, text in expressions(tape)] == ["é * 2", "é * 2", "é + é * 2"]


def test_code_without_source_keeps_lines_and_byte_columns() -> None:
    space: dict[str, Any] = {}
    exec("def f(x):\n    return x + 1", space)
    tape = trace(space["f"], x=f32[2])
    assert tape.location_of(tape.results[0]).span == ("<string>", 2, 11, 2, 16)
    assert tape.sources == {"<string>": ""}


WITHOUT_COLUMNS = """
import sys
from topos_core.recording.trace import trace
from topos_core.recording.spec import f32
def f(x):
    y = x + 1
    return y
tape = trace(f, x=f32[2])
print(tape.location_of(tape.results[0]).span[1:], sys.flags.dev_mode)
"""


def test_a_python_without_columns_falls_back_to_the_whole_line(tmp_path: Any) -> None:
    path = tmp_path / "script.py"
    path.write_text(WITHOUT_COLUMNS)
    done = subprocess.run(
        [sys.executable, "-X", "no_debug_ranges", str(path)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": "."},
    )
    assert done.stdout == "(6, 4, 6, 13) False\n"
