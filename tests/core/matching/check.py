"""The folder's helper: search a program, and evaluate every match against the recorded ops."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from topos_core.matching.catalog import patterns
from topos_core.matching.match import Match
from topos_core.matching.search import Pool, search
from topos_core.recording.trace import trace
from topos_core.run.interpreter import interpret
from topos_core.tape.tape import Tape

WINDOWS = ("convolution", "conv_bn_activation", "window_reduce")
"""The patterns that this folder is about; scalar cores have checks of their own."""


def check(function: Callable[..., Any], specs: Mapping[str, str], seed: int = 0) -> tuple[Tape, Pool]:
    """Records and searches a program; every match found must give what the recorded ops give."""
    tape = trace(function, **specs)
    pool = search(tape, [pattern for name, pattern in patterns().items() if name in WINDOWS])
    evaluate(tape, pool, seed)
    return tape, pool


def evaluate(tape: Tape, pool: Pool, seed: int = 0) -> None:
    """Evaluates every match by its own formula against the interpreter, on seeded inputs."""
    if not pool.matches:
        return
    values = interpret(tape, inputs_of(tape, seed), keep=True)
    for match in pool.matches:
        evaluate_match(tape, match, values)


def evaluate_match(tape: Tape, match: Match, values: Any) -> None:
    module = importlib.import_module(f"topos_core.patterns.{match.pattern}")
    arrays = {name: values[value] for name, value in match.bindings.items()}
    with np.errstate(all="ignore"):
        answer = module.evaluate(match.facts, arrays)
    compare(np.asarray(answer["root"]), values[match.root], match.id)
    for name, producers in match.named.items():
        for value in producers:
            compare(np.asarray(answer[name]), values[value], f"{match.id}: {name}")


def compare(got: np.ndarray, want: np.ndarray, what: str) -> None:
    assert got.size == want.size, what
    if want.dtype.kind not in "biu":
        limit = 2e-2 if want.dtype.itemsize == 2 else 2e-4
        got = got.reshape(want.shape).astype(np.float64)
        np.testing.assert_allclose(got, want.astype(np.float64), rtol=limit, atol=limit, err_msg=what)
    else:
        np.testing.assert_array_equal(got.reshape(want.shape), want, err_msg=what)


def inputs_of(tape: Tape, seed: int) -> list[np.ndarray]:
    """Makes seeded inputs: standard normals, small integers."""
    from topos_core.tape.type import numpy_dtype

    rng = np.random.default_rng(seed)
    arrays = []
    for value in tape.inputs:
        kind = tape.type_of(value)
        dtype = numpy_dtype(kind.dtype)
        if np.issubdtype(dtype, np.integer):
            low, high = tape.ranges.get(value, (-9, 10) if dtype.kind == "i" else (0, 10))
            arrays.append(rng.integers(low, high, kind.shape).astype(dtype))
        else:
            arrays.append(rng.standard_normal(kind.shape).astype(dtype))
    return arrays


def matches_of(pool: Pool, pattern: str) -> list[Match]:
    return [match for match in pool.matches if match.pattern == pattern]


def outermost(matches: list[Match]) -> list[Match]:
    """Drops matches whose root stands inside another match."""
    return [m for m in matches if not any(m.root in other.interior for other in matches)]
