"""Measures what a run of a program adds to the memory of its process: `python -m tests.conformance.resident NAME DTYPE THREADS`.

Prints JSON: what the plan tells, and the growth of resident memory up to its peak, in bytes, over what the process held
when kernels were loaded, weights were packed, and free memory had gone back to the system.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import topos_core as tp
from benchmarks.workloads import topos_form
from benchmarks.workloads.catalog import arrays, workloads
from topos_core.plan.plan import PlanData
from topos_core.run.executor import execute, make_program

DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
EXAMPLES = {"residual_block": "block", "transformer_block": "block", "digits_cnn": "classify"}
"""Of the folder `examples`, and the function of each."""


class Case(NamedTuple):
    """A program, and what it is called with."""

    function: Callable[..., Any]
    inputs: list[np.ndarray]


def case(name: str, dtype: str) -> Case:
    """Gives an example, or a workload in a dtype, its weights too."""
    if name in EXAMPLES:
        sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))  # they import each other by name
        module = importlib.import_module(name)
        given = module.example(0)
        return Case(getattr(module, EXAMPLES[name]), list(given) if isinstance(given, tuple) else [given])
    workload = workloads()[name]
    inputs, weights = arrays(workload)
    named = {key: weight.astype(DTYPES[dtype]) for key, weight in weights.items()}
    program = getattr(topos_form, workload.kind)
    return Case(
        lambda *given: program(workload.options, named, *given), [each.astype(DTYPES[dtype]) for each in inputs]
    )


def measured(of: Case, threads: int) -> dict[str, int]:
    """Runs a program twice with kernels that are there, and once more while the peak is watched."""
    names = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
    tape = tp.trace(of.function, *(getattr(tp, names[each.dtype])[each.shape] for each in of.inputs))
    plan = tp.plan(tape, parameters=dict(tape.defaults)).data
    program = make_program(plan)
    for _ in range(2):
        execute(program, plan, of.inputs, threads)
    program.pool.free.clear()
    before = settled()
    result = execute(program, plan, of.inputs, threads)
    peak = memory()["VmHWM"] - before
    del result
    return {"told": told(plan), "resident": peak, "arena": plan.arena.bytes}


def told(plan: PlanData) -> int:
    """Gives the bytes that a plan tells of a run: its arena stays whole while results are made beside it."""
    return max(plan.liveness.peak_bytes, plan.arena.bytes + plan.arena.outside)


def settled() -> int:
    """Gives free memory back to the system, forgets the peak and gives what is resident."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return memory()["VmRSS"]


def memory() -> dict[str, int]:
    """Reads the process' resident memory and its peak."""
    words = (line.split() for line in Path("/proc/self/status").read_text().splitlines())
    return {name.rstrip(":"): int(rest[0]) << 10 for name, *rest in words if name in ("VmRSS:", "VmHWM:")}


if __name__ == "__main__":
    name, dtype, threads = sys.argv[1:]
    print(json.dumps(measured(case(name, dtype), int(threads))))
