"""Turns an expression's facts into a program for its kernel, and says which ops have none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from topos_core.kernels.vocabulary.program import HALVES, Constant, Form, Operand, Program, ProgramStep
from topos_core.matching.expression import REDUCTIONS, ExpressionFacts, Step
from topos_core.tape.type import FLOATS

FUNCTIONS: Final = ("exp", "tanh", "erf", "expm1", "log", "log1p", "sin", "cos", "pow")
"""Functions whose last bit may differ from the recorded one."""
INEXACT: Final = frozenset((*FUNCTIONS, "sum", "prod"))
POWERS: Final = (-1.0, 2.0, 3.0)
"""Constant exponents that are products or quotients."""
STEPS: Final = ("compare", "floor", "ceil", "round", "sign", "remainder")
"""Ops whose result jumps: a last bit before them decides."""


def program_of(facts: ExpressionFacts, form: Form, along: Sequence[bool], *, partial: bool) -> Program:
    """Gives the program of an expression whose bindings vary along the inner loop as said."""
    inexact = set(rounded(facts))
    steps = tuple(_step(facts, step) for step in facts.steps)
    return Program(
        form=form,
        exact=not inexact or any(jumps(facts, step) for step in facts.steps),
        partial=partial,
        operands=tuple(Operand(facts.dtypes[name], inner) for name, inner in zip(facts.layouts, along, strict=True)),
        constants=tuple(Constant(facts.dtypes[name], _limits(facts, name)) for name in facts.constants),
        steps=steps,
        results=tuple(int(name[1:]) for name in facts.results.values()),
    )


def rounded(facts: ExpressionFacts) -> Iterator[int]:
    """Lists the steps whose bits may differ from the recorded ones by themselves: approximations, and sums of floats."""
    for number, step in enumerate(facts.steps):
        if step.op in INEXACT and step.dtype in FLOATS:
            yield number


def standing_on(facts: ExpressionFacts, roots: Sequence[int]) -> set[str]:
    """Lists, by name, the steps that depend on some of them, those included."""
    found = {f"s{number}" for number in roots}
    for number, step in enumerate(facts.steps):
        if not found.isdisjoint(step.operands):
            found.add(f"s{number}")
    return found


def jumps(facts: ExpressionFacts, step: Step) -> bool:
    """Tells whether a step's result jumps where its operand changes by a last bit."""
    if step.op == "cast":
        return step.dtype not in FLOATS and facts.dtype_of(step.operands[0]) in FLOATS
    return step.op in STEPS and facts.dtype_of(step.operands[-1]) in FLOATS


def missing(facts: ExpressionFacts) -> str | None:
    """Names what no kernel computes; None where there is nothing."""
    for step in facts.steps:
        if step.op == "cast" and step.dtype in HALVES:
            read = facts.dtype_of(step.operands[0])
            if read not in (*HALVES, "f32", "bool", "i8"):
                return f"a cast of {read} to {step.dtype}, which would round twice"
        if step.op == "pow" and step.dtype not in FLOATS:
            return f"a power of {step.dtype}"
    return None


def exponent(facts: ExpressionFacts, step: Step) -> int | None:
    """Gives a power's exponent where it is a float's constant one that products or quotients make."""
    value = facts.constants.get(step.operands[1])
    if step.dtype not in FLOATS or value is None or float(value) not in POWERS:
        return None
    return int(value)


def _limits(facts: ExpressionFacts, name: str) -> tuple[str, ...]:
    """Lists the extremes that a constant decides as a plain limit; see `Constant`."""
    value = facts.constants[name]
    if facts.dtypes[name] not in FLOATS or value != value:
        return ()
    negative = math.copysign(1.0, value) < 0
    return tuple(op for op, wrong in (("maximum", negative), ("minimum", not negative)) if value or not wrong)


def _step(facts: ExpressionFacts, step: Step) -> ProgramStep:
    power = exponent(facts, step) if step.op == "pow" else None
    kept = step.kept
    if power is not None:
        return ProgramStep("power", step.operands[:1], step.dtype, str(power), kept)
    assert step.op not in REDUCTIONS or kept
    return ProgramStep(step.op, step.operands, step.dtype, step.detail, kept)
