"""A contender's process: loads cases, runs one round of calls when asked, and tells times and errors.

It reads one JSON object a line and answers each with one:

    {"do": "load", "maker": "package.module:function", "folder": "...", "arguments": {}}
        -> {"first_seconds": 0.2, "error": {"absolute": 1e-6, "relative": 1e-6}}
    {"do": "round", "seconds": 0.3, "least": 3}  -> {"cpu": [...], "wall": [...]}

`{"failure": "..."}` says that the contender cannot run the case. What contenders print goes to standard error.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from topos_core.run.bench.contender import Runner, case_reference


def main() -> None:
    """Answers commands until standard input closes; the first argument is the number of threads."""
    threads = int(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    runner: Runner | None = None
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if command["do"] == "load":
                runner = None  # the last case's memory goes before the next one's comes
                runner, answer = _load(command, threads)
            else:
                assert runner is not None
                answer = _round(runner, command["seconds"], command["least"])
        except Exception as problem:  # a contender's own failure: it is told beside the others' figures
            runner, answer = None, {"failure": f"{type(problem).__name__}: {problem}".splitlines()[0][:300]}
        answers.write(json.dumps(answer) + "\n")


def _load(command: Mapping[str, Any], threads: int) -> tuple[Runner, dict[str, Any]]:
    module, _, function = command["maker"].partition(":")
    folder = Path(command["folder"])
    maker = getattr(importlib.import_module(module), function)
    started = time.perf_counter()
    runner: Runner = maker(folder, threads, **command["arguments"])
    given = runner.call()
    first = time.perf_counter() - started
    error = error_of(runner.arrays(given), case_reference(folder))
    runner.call()
    return runner, {"first_seconds": first, "error": error}


def _round(runner: Runner, seconds: float, least: int) -> dict[str, Any]:
    runner.call()  # whoever ran meanwhile has the caches
    cpu: list[float] = []
    wall: list[float] = []
    end = time.perf_counter() + seconds
    while len(wall) < least or time.perf_counter() < end:
        processor, start = time.process_time(), time.perf_counter()
        given = runner.call()
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - processor)
        del given  # a pool may have it again
    return {"cpu": cpu, "wall": wall}


def error_of(outputs: Sequence[np.ndarray], reference: Sequence[np.ndarray]) -> dict[str, float] | None:
    """Measures the largest error of all outputs against float64, and relative to the largest finite magnitude of its output.

    Integers and bools count like numbers. NaN where NaN belongs is no error; where it does not, or where a shape
    differs, the error is infinite. None where there is no reference.
    """
    if not reference:
        return None
    if len(outputs) != len(reference):
        raise ValueError(f"{len(outputs)} results, the program has {len(reference)}")
    absolute = relative = 0.0
    for got, exact in zip(outputs, reference, strict=True):
        if got.shape != exact.shape:
            raise ValueError(f"a result of shape {list(got.shape)}, the program's is {list(exact.shape)}")
        wide, wanted = np.asarray(got, np.float64), np.asarray(exact, np.float64)
        with np.errstate(all="ignore"):
            gap = np.where((wide == wanted) | (np.isnan(wide) & np.isnan(wanted)), 0.0, np.abs(wide - wanted))
        largest = float(np.where(np.isnan(gap), np.inf, gap).max(initial=0.0))
        scale = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0))
        absolute = max(absolute, largest)
        relative = max(relative, largest / scale if scale else largest)
    return {"absolute": absolute, "relative": relative}


if __name__ == "__main__":
    main()
