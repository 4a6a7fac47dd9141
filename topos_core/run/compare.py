"""Compares home's run of a plan with the interpreter's: the largest difference of each output, and whether it may be.

With fidelity `exact` every output must have the interpreter's bits. With `fast` an output may differ by what the taken
regions before it may be off, taken as one error relative to the output's largest magnitude:

    allowed = max |output| * sum over regions of 2 * relative + sum over regions of absolute

(twice, because the interpreter rounds as much as a kernel does). A program that amplifies rounding can exceed that
honestly. What lies above is therefore judged by float64: home must not be further from it than WORSE times the
interpreter is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from topos_core.plan.plan import PlanData
from topos_core.run.executor import execute
from topos_core.run.interpreter import Parameters, interpret
from topos_core.run.measurement import Comparison, Difference, Judgement
from topos_core.run.program import Program, make_program
from topos_core.run.widened import NARROW, widen_array, widened
from topos_core.tape.type import FLOATS, numpy_dtype

WORSE: Final = 4.0
PRODUCT_ULPS: Final = 4.0
"""A recorded product on several BLAS threads adds in another order; it is allowed so many ulps times sqrt(terms)."""


def compare(
    plan: PlanData,
    inputs: Sequence[np.ndarray],
    parameters: Parameters | None = None,
    *,
    threads: int | None = None,
    program: Program | None = None,
) -> Comparison:
    """Runs a plan both ways and compares.

    Raises:
        ConfigurationError: Inputs or parameters do not fit (TP502), or a foreign op is needed (TP507).
    """
    tape = plan.tape
    program = program if program is not None else make_program(plan, parameters)
    values = execute(program, plan, inputs, threads)
    home = [values[value] for value in tape.results]
    recorded = interpret(tape, inputs, parameters)
    allowances = _allowances(plan)
    differences = []
    for output, value in enumerate(tape.results):
        relative, absolute = allowances[value]
        found = difference(output, str(tape.ops[value].type), home[output], recorded[output], relative, absolute)
        differences.append(found)
    if any(found.judgement == "outside" for found in differences) and plan.request.fidelity == "fast":
        reference = _reference(plan, inputs, parameters)
        differences = [
            found if found.judgement != "outside" else _judged(found, home[k], recorded[k], reference[k])
            for k, found in enumerate(differences)
        ]
    return Comparison(plan.request.fidelity, tuple(differences))


def difference(
    output: int, kind: str, home: np.ndarray, recorded: np.ndarray, relative: float, absolute: float
) -> Difference:
    """Measures one output; NaN equals NaN, and an infinity equals itself alone."""
    if home.dtype.kind in "iub":
        differs = home != recorded
        count = int(np.count_nonzero(differs))
        judgement: Judgement = "outside" if count else "equal"
        at = _first(differs) if count else ()
        return Difference(output, kind, count, count, at, 0.0, None, None, judgement)
    wide, exact = home.astype(np.float64), recorded.astype(np.float64)
    both = np.isnan(wide) & np.isnan(exact)
    with np.errstate(all="ignore"):
        gap = np.where(both | (wide == exact), 0.0, np.abs(wide - exact))
        gap = np.where(np.isnan(gap), np.inf, gap)
        spacing = np.spacing(np.abs(recorded)).astype(np.float64) if recorded.dtype.kind == "f" else None
        unit = spacing if spacing is not None else np.abs(exact) * 2.0**-7 + 1e-40
        ulps = np.where(gap == 0.0, 0.0, gap / np.where(np.isfinite(unit) & (unit > 0), unit, 1.0))
    largest = float(gap.max(initial=0.0))
    finite = np.abs(exact[np.isfinite(exact)])
    allowed = relative * float(finite.max(initial=0.0)) + absolute
    bits = _same_bits(home, recorded)
    judgement = "equal" if bits else ("inside" if largest <= allowed else "outside")
    at = tuple(int(k) for k in np.unravel_index(int(gap.argmax()), gap.shape)) if largest else ()
    return Difference(output, kind, largest, float(ulps.max(initial=0.0)), at, allowed, None, None, judgement)


def _same_bits(home: np.ndarray, recorded: np.ndarray) -> bool:
    number = ~np.isnan(recorded)
    same = bool(np.array_equal(home[number], recorded[number])) and bool(np.isnan(home[~number]).all())
    return same and bool(np.array_equal(np.signbit(home[number]), np.signbit(recorded[number])))


def _first(differs: np.ndarray) -> tuple[int, ...]:
    return tuple(int(k) for k in np.unravel_index(int(differs.argmax()), differs.shape))


def _allowances(plan: PlanData) -> dict[int, tuple[float, float]]:
    """Gives, by result, the relative and absolute errors of everything inexact that it depends on."""
    tape = plan.tape
    sources: dict[int, frozenset[int]] = {value: frozenset() for value in plan.schedule.sources}
    errors: dict[int, tuple[float, float]] = {}
    envelopes = {d.match.root: d.offer.envelope for d in plan.taken if d.offer is not None}
    fast = plan.request.fidelity == "fast"
    for step in plan.schedule.steps:
        before = frozenset().union(*(sources[value] for value in step.reads))
        envelope = envelopes.get(step.value) if step.match is not None else None
        op = tape.ops[step.value]
        if envelope is not None:
            errors[step.value] = (2 * envelope.relative, envelope.absolute)
        elif step.match is None and op.name == "matmul" and fast and op.type.dtype in FLOATS:
            narrow = "f32" if op.type.dtype in NARROW else "f64"
            terms = tape.ops[op.operands[0]].type.shape[-1]
            errors[step.value] = (PRODUCT_ULPS * float(np.finfo(numpy_dtype(narrow)).eps) * terms**0.5, 0.0)
        if step.value in errors:
            before = before | {step.value}
        for value in step.produces:
            sources[value] = before
    result = {}
    for value in tape.results:
        parts = [errors[step] for step in sources[value]]
        result[value] = (sum(relative for relative, _ in parts), sum(absolute for _, absolute in parts))
    return result


def _reference(plan: PlanData, inputs: Sequence[np.ndarray], parameters: Parameters | None) -> tuple[np.ndarray, ...]:
    given = {name: widen_array(array) for name, array in (parameters or {}).items()}
    return interpret(widened(plan.tape), [widen_array(array) for array in inputs], given)


def _judged(found: Difference, home: np.ndarray, recorded: np.ndarray, reference: np.ndarray) -> Difference:
    """Judges by float64: integers must agree wherever the interpreter has float64's answer."""
    if home.dtype.kind in "iub":
        firm = recorded == reference
        wrong = int(np.count_nonzero(firm & (home != recorded)))
        errors = (float(np.count_nonzero(home != reference)), float(np.count_nonzero(~firm)))
        judgement: Judgement = "outside" if wrong else "inside"
    else:
        errors = (_error(home, reference), _error(recorded, reference))
        judgement = "inside" if errors[0] <= WORSE * errors[1] else "outside"
    return Difference(
        found.output, found.type, found.absolute, found.ulps, found.at, found.allowed, *errors, judgement
    )  # fmt: skip


def _error(got: np.ndarray, exact: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        wide = got.astype(np.float64)
        gap = np.where((wide == exact) | (np.isnan(wide) & np.isnan(exact)), 0.0, np.abs(wide - exact))
    return float(np.where(np.isnan(gap), np.inf, gap).max(initial=0.0))
