"""Runs prepared matches the way the executor does, and compares with f64."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import topos_core as tp
from topos_core.kernels.home.manifest import prepare
from topos_core.matching.match import Match
from topos_core.run.interpreter import interpret
from topos_core.run.widened import widen_array, widened
from topos_core.tape.tape import Tape
from topos_core.tape.type import numpy_dtype

BOUND = {"f16": 2e-3, "bf16": 1.6e-2, "f32": 4e-6, "f64": 1e-14}


def run(
    tape: Tape,
    match: Match,
    arrays: Mapping[str, np.ndarray],
    constants: Mapping[int, np.ndarray] | None = None,
    threads: int = 1,
    named: Mapping[str, np.ndarray] | None = None,
) -> np.ndarray:
    """Prepares and runs a match; results start as NaN so that nothing is left unwritten, and inputs stay as they are."""
    prepared = prepare(tape, match, constants or {})
    kind = tape.ops[match.root].type
    before = {name: array.copy() for name, array in arrays.items()}
    dtype = next(iter(arrays.values())).dtype
    result = np.full(kind.shape, np.nan if dtype.kind not in "iub" else 77).astype(dtype)
    prepared.run(arrays, {"result": result, **(named or {})}, threads)
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, before[name], err_msg=f"{name} was written to")
    return result


def close(got: np.ndarray, exact: np.ndarray, dtype: str, scale: float | None = None) -> None:
    """Checks that finite values are within the dtype's bound of the largest magnitude, and that the others are equal."""
    got, exact = got.astype(np.float64).reshape(exact.shape), exact.astype(np.float64)
    finite = np.isfinite(exact)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(exact))
    np.testing.assert_array_equal(got[~finite], exact[~finite])
    if scale is None:
        scale = float(np.abs(exact[finite]).max(initial=0.0))
    np.testing.assert_allclose(got[finite], exact[finite], rtol=0, atol=BOUND[dtype] * max(scale, 1e-30))


def taken(
    pattern: str,
    function: Callable[..., Any],
    arrays: Sequence[np.ndarray],
    dtype: str = "f32",
    threads: int = 1,
    scale: float | None = None,
) -> np.ndarray:
    """Runs a program whose result is a match of the pattern, and checks the result against f64."""
    kinds = {"b": "bool", "f": dtype, "i": "i64"}
    specs = [f"{kinds[a.dtype.kind]}[{','.join(map(str, a.shape))}]" for a in arrays]
    given = [a.astype(numpy_dtype(dtype)) if a.dtype.kind == "f" else a for a in arrays]
    tape = tp.trace(function, *specs)
    plan = tp.plan(tape, cost="always")
    assert pattern in [d.match.pattern for d in plan.taken], [(d.match.pattern, d.reason) for d in plan.data.decisions]
    (exact,) = interpret(widened(tape), [widen_array(a) for a in given])
    got = plan.run(*given, threads=threads)
    close(got, exact, dtype, scale)
    return got
