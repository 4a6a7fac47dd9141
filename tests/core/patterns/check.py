"""Programs against patterns: what must be recognised and computes the same, what must not and says why."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from topos_core.matching.catalog import pattern, patterns
from topos_core.matching.match import Match, NearMiss
from topos_core.matching.order import LAST
from topos_core.matching.search import Pool, search
from topos_core.ops.catalog import definition
from topos_core.recording.trace import trace
from topos_core.tape.tape import Tape
from topos_core.tape.type import FLOATS, numpy_dtype

TOLERANCE = {"f16": 2e-2, "bf16": 2e-1, "f32": 2e-4, "f64": 1e-8}
MOVEMENT = ("reshape", "permute", "broadcast", "slice", "reverse")


def searched(function: Callable[..., Any], specs: Mapping[str, str]) -> tuple[Tape, Pool]:
    tape = trace(function, **specs)
    return tape, search(tape, patterns().values())


def check(identifier: str, function: Callable[..., Any], specs: Mapping[str, str], **expected: Any) -> Match:
    """The pattern matches at the program's result, on every hole that the program has, and computes what was recorded.

    `expected` names facts.
    """
    tape, pool = searched(function, specs)
    match = match_at_result(tape, pool, identifier)
    assert match is not None, [miss.sentence for miss in pool.near_misses]
    agrees(tape, match)
    assert [m.sentence for m in pool.near_misses if m.pattern == identifier] == []
    for name, value in expected.items():
        assert getattr(match.facts, name) == value, name
    return match


def check_not(
    identifier: str, function: Callable[..., Any], specs: Mapping[str, str], code: str | None
) -> NearMiss | None:
    """The pattern does not match at the result; a near miss with the code says why, or none does where it is None."""
    tape, pool = searched(function, specs)
    assert match_at_result(tape, pool, identifier) is None
    told = [m for m in pool.near_misses if m.pattern == identifier]
    told += [m for match in pool.matches if match.pattern == identifier for m in match.stopped]
    if code is None:
        assert [m.sentence for m in told] == []
        return None
    assert code in [m.code for m in told], [m.sentence for m in pool.near_misses]
    return next(m for m in told if m.code == code)


def named(pool: Pool) -> set[str]:
    """Gives the patterns that matched; those that are searched last only have what these leave."""
    return {match.pattern for match in pool.matches} - LAST


def match_at_result(tape: Tape, pool: Pool, identifier: str) -> Match | None:
    root = tape.results[0]
    while tape.ops[root].name in MOVEMENT:
        root = tape.ops[root].operands[0]
    found = [match for match in pool.matches if match.pattern == identifier and match.root == root]
    return max(found, key=lambda match: len(match.bindings), default=None)


def agrees(tape: Tape, match: Match, seed: int = 0) -> None:
    """The pattern's own formula, on the arrays that the match binds, gives the recorded root and named results.

    The match's values hang together: what its interior reads is interior, bound or named, or the same as what is bound.
    """
    arrays = evaluated(tape, seed)
    within(tape, match, arrays)
    bound = {name: np.asarray(arrays[value]) for name, value in match.bindings.items()}
    with np.errstate(all="ignore"):
        answer = importlib.import_module(f"topos_core.patterns.{match.pattern}").evaluate(match.facts, bound)
    compare(answer["root"], arrays[match.root], "root")
    for name, values in match.named.items():
        for value in values:
            compare(answer[name], arrays[value], name)


def within(tape: Tape, match: Match, arrays: list[np.ndarray]) -> None:
    named = {value for values in match.named.values() for value in values}
    bound = set(match.bindings.values())
    assert not match.interior & (bound | named | {match.root})
    assert match.computing <= match.interior | {match.root}
    for value in match.computing | named:  # movement may also start from what a bound part is cut from
        for operand in tape.ops[value].operands:
            if operand not in match.interior | bound | named:
                assert any(_twins(arrays[operand], arrays[binding]) for binding in bound), operand


def _twins(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether one array is a multiple of the other, up to the order of its elements."""
    if a.size != b.size or a.dtype.kind not in "fV":
        return False
    first, second = np.sort(np.abs(a.astype(np.float64)), None), np.sort(np.abs(b.astype(np.float64)), None)
    return bool(np.allclose(first * second[-1], second * first[-1], 1e-6))


def compare(got: np.ndarray, want: np.ndarray, what: str) -> None:
    assert got.size == want.size, what
    got, want = np.asarray(got, np.float64).reshape(want.shape), np.asarray(want)
    relative = TOLERANCE[{np.dtype("f2"): "f16", np.dtype("f4"): "f32", np.dtype("f8"): "f64"}.get(want.dtype, "bf16")]
    want = want.astype(np.float64)
    finite = np.abs(want[np.isfinite(want)])
    scale = float(finite.max()) if finite.size else 1.0
    np.testing.assert_allclose(got, want, rtol=relative, atol=relative * max(scale, 1e-30), err_msg=what)


def evaluated(tape: Tape, seed: int = 0) -> list[np.ndarray]:
    """Computes every value of a tape from seeded inputs; inputs named as variances are positive."""
    rng = np.random.default_rng(seed)
    arrays: list[np.ndarray] = []
    with np.errstate(all="ignore"):
        for value, op in enumerate(tape.ops):
            operands = [arrays[o] for o in op.operands]
            if op.name in ("input", "parameter"):
                arrays.append(_fed(tape, value, rng))
            else:
                arrays.append(definition(op.name).evaluate(operands, op.attributes, op.type))
    return arrays


def _fed(tape: Tape, value: int, rng: np.random.Generator) -> np.ndarray:
    dtype, shape = tape.ops[value].type
    if value in tape.defaults:
        return tape.defaults[value]
    if dtype == "bool":
        array = rng.random(shape) < 0.7
        return np.asarray(array)
    if dtype not in FLOATS:
        low, high = tape.ranges.get(value, (0, 5))
        return rng.integers(low, high, shape).astype(numpy_dtype(dtype))
    x = rng.standard_normal(shape)
    if "var" in tape.names.get(value, ""):
        x = np.abs(x) + 0.5
    return np.asarray(x, numpy_dtype(dtype))


def examples(identifier: str) -> list[Any]:
    return list(pattern(identifier).examples)
