"""Judges a run of a plan against the interpreter's: the largest difference of each output, and whether it may be.

On home with fidelity `exact`, and on the interpreter itself, every output must have the interpreter's bits. With `fast`
an output may differ by what the taken regions before it may be off, taken as one error relative to the output's largest
magnitude:

    allowed = max |output| * sum over regions of 2 * relative + sum over regions of absolute

(twice, because the interpreter rounds as much as a kernel does). XLA rounds in other places everywhere, so each float op
before the output is allowed as much as a recorded product is: PRODUCT_ULPS ulps times sqrt(terms of a sum). Where that is not
enough, errors grow where the program limits what it computes (`growth.py`), by values of the program in float64.

A program that amplifies rounding can exceed that honestly. What lies above is therefore judged by float64: the run must
not be further from it than WORSE times the interpreter is, or than WORSE times as far as the rounding of what goes in takes it: of
one sum that cancels, the interpreter may be near by luck. An f64 output has nothing wider to be judged by: there the
interpreter's error is estimated as that of the same program in f32, scaled by the ratio of the two epsilons.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

import numpy as np

from topos_core.kernels.rounding import HALF_ULP, TRIALS, moved
from topos_core.ops.catalog import definition
from topos_core.plan.plan import PlanData
from topos_core.run.executor import execute
from topos_core.run.growth import growths, largest
from topos_core.run.interpreter import Parameters, interpret
from topos_core.run.measurement import Comparison, Difference, Judgement
from topos_core.run.program import Program, make_program
from topos_core.run.widened import NARROW, narrow_array, narrowed, widen_array, widened
from topos_core.tape.tape import Tape
from topos_core.tape.type import FLOATS, dtype_name, numpy_dtype

Backend = Literal["home", "interpreter", "xla"]

WORSE: Final = 4.0
PRODUCT_ULPS: Final = 4.0
"""A recorded product on several BLAS threads adds in another order; it is allowed so many ulps times sqrt(terms)."""
NEAR_ZERO: Final = 2.0**-10
"""Values below this share of an output's largest are not counted in ulps: beside 0 any difference is millions of them."""
NARROWER: Final = 2.0**-29
"""f64's epsilon over f32's."""
MOVED: Final = {**HALF_ULP, "f64": 2.0**-52}
"""How far what goes in moves: f64 by a unit, since half of one would be rounded away."""


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
    return judge(plan, home, interpret(tape, inputs, parameters), inputs, parameters)


def judge(
    plan: PlanData,
    outputs: Sequence[np.ndarray],
    recorded: Sequence[np.ndarray],
    inputs: Sequence[np.ndarray],
    parameters: Parameters | None = None,
    *,
    backend: Backend = "home",
) -> Comparison:
    """Judges what a backend gave for a plan by what the interpreter gave (`recorded`) for the same inputs.

    Raises:
        ConfigurationError: Inputs or parameters do not fit (TP502), or a foreign op is needed (TP507).
    """
    tape = plan.tape
    loose = backend == "xla" or (backend == "home" and plan.request.fidelity == "fast")
    allowances = _allowances(plan, everywhere=backend == "xla") if loose else {}
    differences = []
    for output, value in enumerate(tape.results):
        relative, absolute = allowances.get(value, (0.0, 0.0))
        kind = str(tape.ops[value].type)
        found = difference(output, kind, outputs[output], recorded[output], relative, absolute)
        differences.append(found if loose else replace(found, rule="bits"))
    if loose and any(found.judgement == "outside" for found in differences):
        values = _reference(tape, inputs, parameters)
        wide = [_known(values[value]) for value in tape.results]
        short = movement = None
        for at, found in enumerate(differences):
            if found.judgement != "outside":
                continue
            value = tape.results[at]
            grown = _allowances(plan, everywhere=backend == "xla", growth=growths(tape, values, value))
            relative, absolute = grown.get(value, (0.0, 0.0))
            found = difference(at, found.type, outputs[at], recorded[at], relative, absolute)
            differences[at] = found
            if found.judgement != "outside":
                continue
            if recorded[at].dtype == np.float64 and short is None:
                short = _estimates(tape, inputs, parameters, recorded)
            least = short[at] if short is not None and recorded[at].dtype == np.float64 else 0.0
            differences[at] = judged = _judged(found, outputs[at], recorded[at], wide[at], least)
            if judged.judgement == "outside" and dtype_name(recorded[at].dtype) in FLOATS:
                if movement is None:
                    movement = _movements(tape, inputs, parameters, wide)
                differences[at] = _by_rounding(judged, movement[at])
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
        return Difference(output, kind, count, count, at, 0.0, None, None, judgement, _relative(count, home.size))
    wide, exact = home.astype(np.float64), recorded.astype(np.float64)
    both = np.isnan(wide) & np.isnan(exact)
    with np.errstate(all="ignore"):
        gap = np.where(both | (wide == exact), 0.0, np.abs(wide - exact))
        gap = np.where(np.isnan(gap), np.inf, gap)
        spacing = np.spacing(np.abs(recorded)).astype(np.float64) if recorded.dtype.kind == "f" else None
        unit = spacing if spacing is not None else np.abs(exact) * 2.0**-7 + 1e-40
        finite = np.abs(exact[np.isfinite(exact)])
        scale = float(finite.max(initial=0.0))
        counted = (gap > 0.0) & ~(np.abs(exact) < NEAR_ZERO * scale)
        ulps = np.where(counted, gap / np.where(np.isfinite(unit) & (unit > 0), unit, 1.0), 0.0)
    largest = float(gap.max(initial=0.0))
    allowed = relative * scale + absolute
    bits = _same_bits(home, recorded)
    judgement = "equal" if bits else ("inside" if largest <= allowed else "outside")
    at = tuple(int(k) for k in np.unravel_index(int(gap.argmax()), gap.shape)) if largest else ()
    worst = float(ulps.max(initial=0.0))
    return Difference(output, kind, largest, worst, at, allowed, None, None, judgement, _relative(largest, scale))


def _relative(largest: float, scale: float) -> float:
    return largest / scale if scale else (float("inf") if largest else 0.0)


def _same_bits(home: np.ndarray, recorded: np.ndarray) -> bool:
    number = ~np.isnan(recorded)
    same = bool(np.array_equal(home[number], recorded[number])) and bool(np.isnan(home[~number]).all())
    return same and bool(np.array_equal(np.signbit(home[number]), np.signbit(recorded[number])))


def _first(differs: np.ndarray) -> tuple[int, ...]:
    return tuple(int(k) for k in np.unravel_index(int(differs.argmax()), differs.shape))


def _allowances(
    plan: PlanData, *, everywhere: bool, growth: dict[int, float] | None = None
) -> dict[int, tuple[float, float]]:
    """Gives, by result, the relative and absolute errors of everything inexact that it depends on.

    Args:
        plan: Its regions.
        everywhere: Recorded float ops are inexact too, not products alone.
        growth: By how much an error of each value grows on its way to the result that is asked for.
    """
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
        elif everywhere and op.type.dtype in FLOATS:
            values = step.match.computing | {step.value} if step.match is not None else {step.value}
            errors[step.value] = (sum(_rounding(tape, value) for value in values), 0.0)
        elif step.match is None and op.name == "matmul" and fast and op.type.dtype in FLOATS:
            errors[step.value] = (_rounding(tape, step.value), 0.0)
        if growth is not None and step.value in errors:
            values = step.match.computing | {step.value} if step.match is not None else {step.value}
            relative, absolute = errors[step.value]
            errors[step.value] = (relative * largest(growth, values), absolute)
        if step.value in errors:
            before = before | {step.value}
        for value in step.produces:
            sources[value] = before
    result = {}
    for value in tape.results:
        parts = [errors[step] for step in sources[value]]
        result[value] = (sum(relative for relative, _ in parts), sum(absolute for _, absolute in parts))
    return result


def _rounding(tape: Tape, value: int) -> float:
    """Gives how far another order of summation may take one float op's result, relative to its largest magnitude."""
    op = tape.ops[value]
    family = definition(op.name).kind
    if op.type.dtype not in FLOATS or family not in ("elementwise", "reduction", "contraction"):
        return 0.0
    terms: float = 1
    if family == "contraction":
        terms = tape.ops[op.operands[0]].type.shape[-1]
    elif family == "reduction":
        terms = tape.ops[op.operands[0]].type.size / max(op.type.size, 1)
    eps = float(np.finfo(numpy_dtype("f32" if op.type.dtype in NARROW else "f64")).eps)
    return PRODUCT_ULPS * eps * math.sqrt(max(terms, 1))


def _reference(
    tape: Tape, inputs: Sequence[np.ndarray], parameters: Parameters | None
) -> tuple[np.ndarray | None, ...]:
    """Gives every value of the program in float64."""
    given = {name: widen_array(array) for name, array in (parameters or {}).items()}
    return interpret(widened(tape), [widen_array(array) for array in inputs], given, keep=True)


def _known(value: np.ndarray | None) -> np.ndarray:
    assert value is not None  # the interpreter has run the same program
    return value


def _estimates(
    tape: Tape, inputs: Sequence[np.ndarray], parameters: Parameters | None, recorded: Sequence[np.ndarray]
) -> list[float]:
    """Estimates the interpreter's own error of each f64 output: the f32 program's, scaled to f64's epsilon.

    0 where the f32 program leaves its range, which judges by the envelope alone.
    """
    given = {name: narrow_array(array) for name, array in (parameters or {}).items()}
    with np.errstate(all="ignore"):
        short = interpret(narrowed(tape), [narrow_array(array) for array in inputs], given)
    found = [_error(a, b) * NARROWER for a, b in zip(short, recorded, strict=True)]
    return [error if np.isfinite(error) else 0.0 for error in found]


def _judged(
    found: Difference, home: np.ndarray, recorded: np.ndarray, reference: np.ndarray, least: float
) -> Difference:
    """Judges by float64: integers must agree wherever the interpreter has float64's answer.

    `least` is what the interpreter's error is taken to be at least.
    """
    if home.dtype.kind in "iub":
        firm = recorded == reference
        wrong = int(np.count_nonzero(firm & (home != recorded)))
        errors = (float(np.count_nonzero(home != reference)), float(np.count_nonzero(~firm)))
        judgement: Judgement = "outside" if wrong else "inside"
    else:
        errors = (_error(home, reference), max(_error(recorded, reference), least))
        judgement = "inside" if errors[0] <= WORSE * errors[1] else "outside"
    return replace(
        found,
        home_error=errors[0],
        interpreter_error=errors[1],
        judgement=judgement,
        rule="float32" if least and errors[1] == least else "float64",
    )


def _by_rounding(found: Difference, moved: float) -> Difference:
    """Judges by how far the rounding of what goes in takes a result."""
    assert found.home_error is not None
    inside = found.home_error <= WORSE * moved
    return replace(found, judgement="inside", rule="rounding", moved=moved) if inside else replace(found, moved=moved)


def _movements(
    tape: Tape, inputs: Sequence[np.ndarray], parameters: Parameters | None, exact: Sequence[np.ndarray]
) -> list[float]:
    """Gives how far each output of the program in float64 moves where all that goes in moves by half a unit in its last place, or f64's one."""
    random = np.random.default_rng(0)
    wide, largest = widened(tape), [0.0] * len(exact)

    def other(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
        return moved(widen_array(array), MOVED.get(str(dtype_name(dtype)), 0.0), random)

    for _ in range(TRIALS):
        defaults = {value: other(array, array.dtype) for value, array in tape.defaults.items()}
        given = {name: other(array, array.dtype) for name, array in (parameters or {}).items()}
        with np.errstate(all="ignore"):
            found = interpret(replace(wide, defaults=defaults), [other(array, array.dtype) for array in inputs], given)
            for at, (one, whole) in enumerate(zip(found, exact, strict=True)):
                if one.dtype.kind in "iub":
                    continue
                fine = np.isfinite(one) & np.isfinite(whole)
                largest[at] = max(largest[at], float(np.abs(one[fine] - whole[fine]).max(initial=0.0)))
    return largest


def _error(got: np.ndarray, exact: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        wide = got.astype(np.float64)
        gap = np.where((wide == exact) | (np.isnan(wide) & np.isnan(exact)), 0.0, np.abs(wide - exact))
    return float(np.where(np.isnan(gap), np.inf, gap).max(initial=0.0))
