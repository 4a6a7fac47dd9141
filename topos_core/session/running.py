"""Runs and verifies a traced target: which inputs it gets, what comes out, and how far backends are apart.

Figures only: arrays never leave the process that runs user code.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from topos_core.errors import ConfigurationError
from topos_core.recording.model import entry_of
from topos_core.session.inputs import check_inputs, read_inputs, seeded_inputs
from topos_core.tape.tape import Structure
from topos_core.tape.type import TensorType, dtype_name

if TYPE_CHECKING:
    from topos_core.api import Plan
    from topos_core.session.traced import Traced

BACKENDS: Final = ("home", "interpreter", "xla")

_REPEATS: Final = 3
_ENOUGH: Final = 5.0  # seconds

Report = Callable[[str, int, int], None]
Run = Callable[[], Sequence[np.ndarray]]


def run_target(traced: Traced, request: Mapping[str, Any], progress: Report) -> dict[str, Any]:
    """Runs a target: once for its first time, then for its median time; compares with the interpreter where asked for.

    `request` may hold `backend inputs compare fidelity threads seed cost machine`.

    Raises:
        ConfigurationError: TP502, TP505, the inputs do not fit; TP504, an option; TP506, a backend's package is missing;
            TP507, an opaque op.
        BaseException: Whatever `example=` and `metric=` raise.
    """
    backend = str(request.get("backend") or "home")
    if backend not in BACKENDS:
        raise ConfigurationError(f"no backend is called {backend!r}; there are {', '.join(BACKENDS)}", code="TP504")
    options = {key: request[key] for key in ("fidelity", "cost", "machine") if request.get(key) is not None}
    target = {"consumer": "stablehlo", "dialect": "xla"} if backend == "xla" else {"consumer": "home"}
    plan = traced.plan({"machine": "host", **options, **target})
    inputs, origin = chosen_inputs(traced, request.get("inputs"), int(request.get("seed") or 0))
    run = _runner(traced, plan, backend, inputs, request.get("threads"))
    seconds, outputs = _clocked(run, backend, progress)
    result: dict[str, Any] = {
        "target": traced.target,
        "backend": backend,
        "fidelity": plan.data.request.fidelity,
        "inputs": origin,
        "taken": len(plan.taken),
        "seconds": seconds,
        "outputs": [_summary(name, array) for name, array in zip(_names(traced), outputs, strict=True)],
        "metric": _metric(traced, outputs),
        "compare": None,
    }
    if request.get("compare"):
        result["compare"] = _compare(traced, plan, backend, inputs, outputs, progress)
    return result


def verify_text(traced: Traced, plan: Plan, text: str, progress: Report) -> dict[str, Any]:
    """Parses an emitted module, runs it on XLA and the reference interpreter, and compares with topos's own.

    IREE runs it too where the dialect is IREE's.

    Raises:
        ConfigurationError: TP506, jax is missing; TP507, an opaque op.
    """
    from topos_core.emission.backend import BACKENDS as COMPILERS
    from topos_core.emission.backend import NotOffered, run_iree
    from topos_core.emission.module import emitted_results
    from topos_core.emission.verify import verify
    from topos_core.run.interpreter import bind, evaluate

    progress("interpreter", 0, 3)
    inputs, origin = chosen_inputs(traced, None, 0)
    results = emitted_results(traced.tape, plan.data.observed)
    values = evaluate(traced.tape, bind(traced.tape, inputs), results)
    expected = [values[value] for value in results]

    def iree(text: str, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        try:
            return run_iree(text, arrays)
        except ConfigurationError as missing:
            raise NotOffered(missing.message) from missing

    compilers = {**COMPILERS, "iree": iree} if plan.data.request.dialect == "iree" else COMPILERS
    progress(" and ".join(compilers), 1, 3)
    found = verify(text, traced.tape, inputs, expected, backends=compilers)
    return {
        "parsed": found.parsed,
        "verified": found.verified,
        "error": found.error,
        "inputs": origin,
        "ran": found.ran,
        "backends": [
            {
                "backend": row.backend,
                "ran": row.ran,
                "reason": row.reason,
                "offered": row.offered,
                "absolute": _finite(row.largest.absolute),
                "relative": _finite(row.largest.relative),
            }
            for row in found.comparisons
        ],
    }


def _runner(traced: Traced, plan: Plan, backend: str, inputs: list[np.ndarray], threads: int | None) -> Run:
    """Gives what runs once per call; its first call makes ready what later ones use again."""
    match backend:
        case "home":
            return _home(plan, inputs, threads)
        case "interpreter":
            from topos_core.run.interpreter import interpret

            return lambda: interpret(traced.tape, inputs)
    return _xla(plan, inputs)


def _home(plan: Plan, inputs: list[np.ndarray], threads: int | None) -> Run:
    from topos_core.run.executor import execute, owned
    from topos_core.run.program import Program, make_program

    program: list[Program] = []

    def run() -> list[np.ndarray]:
        if not program:
            program.append(make_program(plan.data))
        values = execute(program[0], plan.data, inputs, threads)
        return owned([values[value] for value in plan.tape.results], inputs, program[0])

    return run


def _xla(plan: Plan, inputs: list[np.ndarray]) -> Run:
    from topos_core.emission.backend import BackendFailure, compile_xla

    text = plan.emit_stablehlo()
    arguments = [*inputs, *(plan.tape.defaults[value] for value in plan.tape.parameters)]
    program = cache(compile_xla)

    def run() -> list[np.ndarray]:
        try:
            return program(text)(arguments)[: len(plan.tape.results)]
        except BackendFailure as failure:
            raise ConfigurationError(f"XLA does not run the module: {failure}", code="TP507") from failure

    return run


def chosen_inputs(traced: Traced, file: str | None, seed: int) -> tuple[list[np.ndarray], str]:
    """Gives the inputs of a run and where they come from: a file, the entry's `example=`, or the seed."""
    tape = traced.tape
    names = [tape.names.get(value, f"input{at}") for at, value in enumerate(tape.inputs)]
    types = [tape.type_of(value) for value in tape.inputs]
    if file is not None:
        path = os.path.normpath(os.path.join(traced.root, file))
        return read_inputs(path, names, types), file
    entry = entry_of(traced.function)
    if entry is not None and entry.example is not None:
        given = entry.example(seed)
        if isinstance(given, Mapping):
            missing = [name for name in names if name not in given]
            if missing:
                raise ConfigurationError(
                    f"example gives no {', '.join(missing)}; it gives {', '.join(given)}", code="TP502"
                )
            given = [given[name] for name in names]
        elif isinstance(given, np.ndarray):
            given = [given]
        return check_inputs(given, names, types, "example"), "example"
    return seeded_inputs(types, [tape.ranges.get(value) for value in tape.inputs], seed), f"seed {seed}"


def _compare(
    traced: Traced,
    plan: Plan,
    backend: str,
    inputs: list[np.ndarray],
    outputs: Sequence[np.ndarray],
    progress: Report,
) -> dict[str, Any]:
    from topos_core.run.compare import Backend, judge
    from topos_core.run.interpreter import interpret

    seconds, expected = _clocked(lambda: interpret(traced.tape, inputs), "interpreter", progress)
    found = judge(plan.data, outputs, expected, inputs, backend=cast("Backend", backend))
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "absolute": _finite(each.absolute),
            "relative": _finite(each.relative),
            "ulps": _finite(each.ulps),
            "bound": _finite(each.allowed),
            "rule": each.rule,
            "error": None if each.home_error is None else _finite(each.home_error),
            "interpreter_error": None if each.interpreter_error is None else _finite(each.interpreter_error),
            "inside": each.judgement != "outside",
            "sentence": each.sentence,
        }
        for name, each in zip(_names(traced), found.outputs, strict=True)
    ]
    return {
        "against": "interpreter",
        "seconds": seconds,
        "inside": found.inside,
        "metric": _metric(traced, expected),
        "outputs": rows,
    }


def _metric(traced: Traced, outputs: Sequence[np.ndarray]) -> float | None:
    entry = entry_of(traced.function)
    if entry is None or entry.metric is None:
        return None
    from topos_core.run.executor import rebuild

    figure = entry.metric(rebuild(traced.tape.structure, outputs))
    try:
        return _finite(float(figure))
    except (TypeError, ValueError):
        raise ConfigurationError(f"metric gives {type(figure).__name__}, not a number", code="TP502") from None


def _names(traced: Traced) -> list[str]:
    """Names the results as a reader of the function would: `result`, `result[0]`, `result['logits']`."""
    names = [""] * len(traced.tape.results)

    def walk(structure: Structure, path: str) -> None:
        if structure.kind == "leaf":
            names[structure.index] = path
        keys: Sequence[Any] = structure.keys or range(len(structure.children))
        for key, child in zip(keys, structure.children, strict=True):
            walk(child, f"{path}[{key!r}]")

    walk(traced.tape.structure, "result")
    return names


def _summary(name: str, array: np.ndarray) -> dict[str, Any]:
    wide = array.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    return {
        "name": name,
        "type": str(TensorType(dtype_name(array.dtype) or str(array.dtype), array.shape)),
        "minimum": float(finite.min()) if finite.size else None,
        "maximum": float(finite.max()) if finite.size else None,
        "mean": float(finite.mean()) if finite.size else None,
        "not_finite": int(wide.size - finite.size),
    }


def _clocked(run: Run, name: str, progress: Report) -> tuple[dict[str, Any], Sequence[np.ndarray]]:
    """Gives the time of the first run, which also makes ready, and the median of later ones: every backend's alike.

    There are up to three later ones, and no further one once they took `_ENOUGH`.
    """
    from topos_core.kernels.compiling import reporting

    progress(f"{name}: first run", 0, 1 + _REPEATS)
    with reporting(progress):
        first, outputs = _timed(run)
    times: list[float] = []
    while len(times) < _REPEATS and sum(times) < _ENOUGH:
        progress(f"{name}: run {len(times) + 2}", 1 + len(times), 1 + _REPEATS)
        times.append(_timed(run)[0])
    return {"first": _seconds(first), "median": _seconds(statistics.median(times))}, outputs


def _timed(run: Run) -> tuple[float, Sequence[np.ndarray]]:
    started = time.perf_counter()
    outputs = run()
    return time.perf_counter() - started, outputs


def _seconds(value: float) -> dict[str, Any]:
    return {"value": value, "unit": "second", "basis": "measured"}


def _finite(value: float) -> float | None:
    """Gives a figure that JSON can hold; None stands for one that is not finite."""
    return value if math.isfinite(value) else None
