"""Where a run spends its time: every step of a program in place, and every op as the interpreter runs it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from topos_core.plan.plan import PlanData
from topos_core.run.interpreter import bind, bind_inputs, evaluate
from topos_core.run.program import Program


@dataclass(frozen=True, slots=True)
class Profile:
    """Median seconds by value, CPU time of the one thread: kernels and ops of the plan by their root, recorded ops by value."""

    runs: int
    steps: Mapping[int, float]
    recorded: Mapping[int, float]


def profile(plan: PlanData, program: Program, inputs: Sequence[np.ndarray], runs: int) -> Profile:
    """Runs a plan and its recorded ops some times each and takes the median of every step.

    Raises:
        ConfigurationError: Inputs do not fit (TP502), or a foreign op is needed (TP507).
    """
    given = bind_inputs(plan.tape, inputs)
    bound = bind(plan.tape, inputs)
    return Profile(
        runs,
        _medians(runs, lambda after: program.run(given, 1, 1, after)),
        _medians(runs, lambda after: evaluate(plan.tape, bound, plan.schedule.kept, after)),
    )


def _medians(runs: int, run: Callable[[Callable[[int], None]], Any]) -> dict[int, float]:
    times: dict[int, list[float]] = {}
    run(lambda value: None)
    for _ in range(runs):
        last = time.thread_time()

        def after(value: int) -> None:
            nonlocal last
            now = time.thread_time()
            times.setdefault(value, []).append(now - last)
            last = time.thread_time()

        last = time.thread_time()
        run(after)
    return {value: statistics.median(series) for value, series in times.items()}
