"""How the tests of this folder look at tapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from topos_core.errors import RecordingError
from topos_core.recording.spec import f32
from topos_core.recording.trace import trace
from topos_core.run.interpreter import interpret
from topos_core.tape.span import Span
from topos_core.tape.tape import Tape

MATRIX = f32[3, 4]
SOURCES = ("input", "parameter", "constant")


def record(function: Callable[..., Any], **specs: Any) -> Tape:
    """Records a function of x and y, f32[3,4] each unless said otherwise."""
    return trace(function, **(specs or {"x": MATRIX, "y": MATRIX}))


def source_of(tape: Tape, span: Span) -> str:
    """Gives the text that a span covers, as the tape's own snapshot has it."""
    lines = tape.sources[span.path].splitlines()[span.line - 1 : span.end_line]
    lines[-1] = lines[-1][: span.end_column]
    lines[0] = lines[0][span.column :]
    return "\n".join(lines)


def expressions(tape: Tape) -> list[tuple[str, str]]:
    """Lists (op, source text) of everything but inputs, in order."""
    return [
        (op.name, source_of(tape, tape.locations[op.location].span))
        for op in tape.ops
        if op.name not in ("input", "parameter")
    ]


def texts(tape: Tape) -> list[str]:
    """Lists the distinct source texts of a tape's ops, in order."""
    return list(dict.fromkeys(text for _, text in expressions(tape)))


def names(tape: Tape) -> list[str]:
    """Lists the names of the ops that are no sources."""
    return [op.name for op in tape.ops if op.name not in SOURCES]


def refusal(function: Callable[..., Any], **specs: Any) -> tuple[str, str]:
    """Gives the source text at which recording fails, and the message."""
    with pytest.raises(RecordingError) as caught:
        record(function, **specs)
    error = caught.value
    assert error.span is not None
    with open(error.span.path) as file:
        tape_like = Tape((), (), (), (), None, {}, (), (), {error.span.path: file.read()})  # type: ignore[arg-type]
    return source_of(tape_like, error.span), error.message


def agrees(function: Callable[..., Any], **specs: Any) -> Tape:
    """Checks that a recorded function gives what NumPy gives, bit for bit; gives its tape."""
    tape = record(function, **specs)
    arrays = {tape.names[value]: _sample(tape, value) for value in tape.inputs}
    wanted = function(**{name: array.copy() for name, array in arrays.items()})
    got = interpret(tape, [arrays[tape.names[value]] for value in tape.inputs])
    wanteds = wanted if isinstance(wanted, tuple) else (wanted,)
    assert len(got) == len(wanteds)
    for one, other in zip(got, map(np.asarray, wanteds), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    return tape


def _sample(tape: Tape, value: int) -> np.ndarray:
    kind = tape.type_of(value)
    generator = np.random.default_rng(value)
    if kind.dtype.startswith(("i", "u")):
        return generator.integers(*tape.ranges.get(value, (0, 7)), kind.shape).astype(
            f"{kind.dtype[0]}{int(kind.dtype[1:]) // 8}"
        )
    return generator.standard_normal(kind.shape).astype(np.float32)
