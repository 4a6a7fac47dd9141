"""Runs plans: taken matches by home's kernels, every other op as recorded.

With fidelity `exact` the result has the interpreter's bits for any number of threads. Inputs are never written to, and
results are arrays of the caller's own.
"""

from __future__ import annotations

import os
import time
from collections import namedtuple
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from topos_core.plan.plan import PlanData
from topos_core.run.interpreter import Parameters, bind_expected
from topos_core.run.program import Program, make_program
from topos_core.tape.tape import Structure, Tape

REFRESH_SECONDS: Final = 0.05
RUN_QUEUE: Final = "/proc/loadavg"
"""Its fourth word is `running/all`, threads of the whole machine."""


def run(
    plan: PlanData,
    inputs: Sequence[np.ndarray],
    parameters: Parameters | None = None,
    *,
    observed: bool = False,
    threads: int | None = None,
    program: Program | None = None,
) -> Any:
    """Runs a plan for `home`.

    Args:
        plan: Decisions and schedule.
        inputs: One array per input, in the tape's order.
        parameters: Arrays that replace the tape's own snapshots.
        observed: Gives `(results, {name: array})` with every observed value that is no result.
        threads: How many threads may be used; by default as many as the process may run on.
        program: What `make_program` made of the plan and the parameters; by default it is made anew.

    Returns:
        The function's own structure of arrays.

    Raises:
        ConfigurationError: Inputs or parameters do not fit (TP502), or a foreign op is needed (TP507).
    """
    program = program if program is not None else make_program(plan, parameters)
    tape = plan.tape
    bound = bind_expected(tape, program.expected, inputs)
    values = _executed(program, plan, bound, threads)
    if program.fresh and not observed:
        return rebuild(tape.structure, [values[value] for value in tape.results])
    wanted = [*tape.results, *(plan.observed if observed else ())]
    arrays = owned([values[value] for value in wanted], list(bound.values()), program)
    results = rebuild(tape.structure, arrays[: len(tape.results)])
    if not observed:
        return results
    return results, dict(zip(observed_names(plan), arrays[len(tape.results) :], strict=True))


def execute(
    program: Program, plan: PlanData, inputs: Sequence[np.ndarray], threads: int | None = None
) -> dict[int, np.ndarray]:
    """Gives the kept values by number; they may share memory with each other, with inputs and with parameters."""
    return _executed(program, plan, bind_expected(plan.tape, program.expected, inputs), threads)


def _executed(
    program: Program, plan: PlanData, bound: Mapping[int, np.ndarray], threads: int | None
) -> dict[int, np.ndarray]:
    count = max(1, threads if threads is not None else default_threads())
    return program.run(bound, count, 1 if plan.request.fidelity == "exact" else count)


def default_threads() -> int:
    """Counts the processors of this process that nothing else is using just now; at least 1.

    On a machine that is busy a second thread waits for its turn while the first one waits for it: a run of 37 ms on one
    thread took 89 ms on two. Bits do not depend on the number (`tests/core/run/test_threads.py`).
    """
    return _free_processors()()


def processors() -> int:
    """Counts the processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _FreeProcessors:
    """Looks at the machine's run queue, at most every `REFRESH_SECONDS`."""

    def __init__(self) -> None:
        self.until = 0.0
        self.count = 1

    def __call__(self) -> int:
        now = time.monotonic()
        if now >= self.until:
            self.count = max(1, processors() - max(0, running_elsewhere()))
            self.until = now + REFRESH_SECONDS
        return self.count


@cache
def _free_processors() -> _FreeProcessors:
    return _FreeProcessors()


def running_elsewhere() -> int:
    """Counts the threads of the machine that run or wait for a processor, beside the calling one; 0 where unknown."""
    try:
        with open(RUN_QUEUE, encoding="ascii") as file:
            return int(file.read().split()[3].partition("/")[0]) - 1
    except (OSError, IndexError, ValueError):  # a system without this file
        return 0


def owned(arrays: Sequence[np.ndarray], inputs: Sequence[np.ndarray], program: Program) -> list[np.ndarray]:
    """Copies every array that somebody else holds too: views, inputs, parameters, and what is given twice.

    An input's views may have it or its base as theirs: NumPy looks through arrays of its own class only, and no further
    than to the one whose memory is another library's.
    """
    given = {id(array) for array in (*inputs, *program.known.values())}
    bases = {id(each) for array in inputs for each in (array, array.base)}
    result: list[np.ndarray] = []
    for array in arrays:
        own = array.flags.writeable and array.flags.c_contiguous and (array.flags.owndata or _fills(array))
        base = id(array if array.base is None else array.base)
        own = own and id(array) not in given and base not in bases
        bases.add(base)
        result.append(array if own else np.array(array, order="C"))
    return result


def _fills(array: np.ndarray) -> bool:
    """Tells a value's whole buffer from a view of a part of one, or of an input."""
    base = array.base
    return isinstance(base, np.ndarray) and base.dtype == np.uint8 and base.nbytes == array.nbytes


def rebuild(structure: Structure, leaves: Sequence[np.ndarray]) -> Any:
    """Nests arrays as the function's result was nested; a record (see `_record`) stands for an object of a class."""
    if structure.kind == "leaf":
        return leaves[structure.index]
    children = [rebuild(child, leaves) for child in structure.children]
    match structure.kind:
        case "none":
            return None
        case "tuple":
            return tuple(children)
        case "list":
            return children
        case "dict":
            return dict(zip(structure.keys, children, strict=True))
        case "record":
            return _record(structure.keys)(*children)


def _record(names: Sequence[str]) -> type:
    """Makes a named tuple whose fields are read by name in brackets too, as those of transformers' results are."""
    made = namedtuple("Record", names, rename=True)  # type: ignore[misc]  # the names are those of one result
    places = {name: at for at, name in enumerate(names)}

    def read(self: Any, key: Any) -> Any:
        return tuple.__getitem__(self, places[key] if isinstance(key, str) else key)

    made.__getitem__ = read  # type: ignore[method-assign]
    return made


def observed_names(plan: PlanData) -> list[str]:
    """Names the observed values that are no results: their own name, else `%value`, each once."""
    tape: Tape = plan.tape
    names = {o.value: o.name for o in reversed(plan.observations) if o.name is not None}
    result: list[str] = []
    for value in plan.observed:
        name = names.get(value) or tape.names.get(value) or f"%{value}"
        result.append(name if name not in result else f"{name}%{value}")
    return result
