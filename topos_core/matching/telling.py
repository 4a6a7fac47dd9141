"""Failures in words: what the pattern needs, what the program has, in the program's own axes and numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from topos_core.matching.attempt import COEFFICIENT, Attempt, Failure
from topos_core.matching.core import Keys
from topos_core.matching.declared import DIFFERENCE
from topos_core.matching.func import Func, Kid, digits_of
from topos_core.matching.labelling import AxisFault
from topos_core.matching.match import NearMiss
from topos_core.matching.solving import NumberFault, close, misplaced
from topos_core.matching.term import Missed

_NEAR: Final = 32
"""Values looked at for the op that reads a number."""
_SAME: Final = 1e-9
_LEAST_SQUARE: Final = 1e-300  # smaller ones have no reciprocal


class Words(NamedTuple):
    """A failure as people read it."""

    code: str
    expected: str
    found: str
    numbers: Mapping[str, float] = {}


def near_miss(keys: Keys, missed: Missed) -> NearMiss | None:
    """Tells a failure; None where there is nothing that a person could act on."""
    failure = _blamed(keys, missed)
    words = told(keys, missed, failure)
    if words is None:
        return None
    at = _place(keys, missed, failure)
    shown = missed.identifier.replace("_", " ")
    held = (
        missed.template.size - 1 if missed.template.lookalike else min(missed.failure.steps, missed.template.size - 1)
    )
    if not held and words.code != "cast":  # a cast stands before all that would hold
        return None  # nothing of it stands there but what other formulas have too
    return NearMiss(
        missed.identifier,
        missed.root,
        at if 0 <= at <= missed.root else missed.root,
        words.code,
        f"{shown} needs {words.expected}; found {words.found}",
        words.expected,
        words.found,
        held,
        missed.template.size,
        words.numbers,
    )


def _blamed(keys: Keys, missed: Missed) -> Failure:
    """Gives the failure; of an equation that does not hold that of the one value whose factor is to blame, if there is one."""
    failure = missed.failure
    fault = failure.expected
    attempt = missed.attempt
    if (
        not isinstance(fault, NumberFault)
        or fault.divisor is not None
        or _is_turned(fault)
        or fault.hole
        or not isinstance(attempt, Attempt)
    ):
        return failure
    blamed = misplaced(attempt, keys, missed.root)
    return failure if blamed is None else failure._replace(expected=blamed, func=attempt.bound[blamed.hole][0])


def _is_turned(fault: NumberFault) -> bool:
    """Says whether two terms of a sum differ in sign alone: a sum stands for a difference, or the other way round."""
    return fault.what == COEFFICIENT and fault.found == -fault.expected


def _place(keys: Keys, missed: Missed, failure: Failure) -> int:
    """Gives the value at which the first difference stands: of a look-alike what it marks, of a divisor what it divides, of
    another number the op that reads it, of one in front of a value that value.
    """
    marked = missed.template.named.get(DIFFERENCE)
    if missed.template.lookalike is not None and marked is not None:
        return next((held.func.maker for held in missed.attempt.held if held.template is marked[0]), -1)
    fault = failure.expected
    if isinstance(fault, NumberFault) and fault.divisor is not None:
        return max((func.maker for _, _, func in missed.attempt.reductions), default=-1)
    at = failure.func.maker
    if isinstance(fault, NumberFault) and not fault.hole:
        return _reading(keys, at if 0 <= at <= missed.root else missed.root, failure.func, fault.found)
    return at


def _reading(keys: Keys, at: int, func: Func, number: float) -> int:
    """Gives the op between a function and its operands that reads a number as it was found; the function's own where none does.

    Numbers live outside of functions: what a function's operand is multiplied by is the operand's function too.
    """
    ends = {kid.func for kid in func.kids}
    todo, seen = [at], {at}
    while todo and len(seen) < _NEAR:
        value = todo.pop(0)
        for operand in keys.tape.ops[value].operands:
            own = keys.coefficients[operand]
            if keys.is_one(operand):
                if isinstance(own, float) and close(abs(own), abs(number), _SAME):
                    return value
            elif operand not in seen and not (keys.funcs[operand] in ends and own == 1.0):
                seen.add(operand)
                todo.append(operand)
    return at


def told(keys: Keys, missed: Missed, failure: Failure) -> Words | None:
    """Puts a failure into words."""
    if missed.template.lookalike is not None:
        return Words(failure.code, missed.template.lookalike.expected, missed.template.lookalike.found)
    expected, found = failure.expected, failure.found
    match failure.code:
        case "constant":
            return _number(keys, missed, expected)
        case "added":
            return Words("constant", _added(expected), _said(keys, found) if isinstance(found, Func) else _added(found))
        case "axis":
            return _axis(keys, missed, expected)
        case "axis-mixed":
            return _mixed(keys, expected, found)
        case "identity":
            hole, first = expected
            if found is first:
                return Words(
                    "other-value", f"the same part of {_said(keys, first)} wherever it is read", "another part"
                )
            return Words("other-value", f"the same {hole} everywhere ({_said(keys, first)})", _said(keys, found))
        case "cast":
            want = expected.func if isinstance(expected, Kid) else expected
            inside = found.func if isinstance(found, Kid) else found
            return Words("cast", f"no cast inside ({_wanted(want)})", f"a {_said(keys, inside)}")
        case "exponent":
            return Words("exponent", f"the power {expected.weight:g}", f"the power {found.weight:g}")
        case "sign":
            if found > 0:  # then the factor has the sign that the extreme asks for, and the extreme is the other one
                other = "min" if failure.func.name == "max" else "max"
                whose = expected[0] if len(expected) == 1 else "what is compared"
                return Words("sign", f"the {other} of {whose}", f"the {failure.func.name} of it")
            return Words("sign", f"a positive factor of {' and '.join(expected) or 'what is compared'}", _nice(found))
        case "extra" | "missing":
            return Words("structure", f"{len(expected.kids)} operands of {_wanted(expected)}", f"{len(found)} operands")
        case "kind" | "arity" | "shape":
            want = expected.func if isinstance(expected, Kid) else expected
            needed, there = _wanted(want), _said(keys, found.func if isinstance(found, Kid) else found)
            return None if needed == there else Words("structure", needed, there)  # what differs lies further down
        case _:
            return None


def _number(keys: Keys, missed: Missed, fault: Any) -> Words:
    assert isinstance(fault, NumberFault)
    if fault.divisor is not None:
        n = fault.divisor
        return Words(
            "divisor", f"a mean over all {n} elements, divided by {n}", f"a divisor of {n - 1} = n - 1",
            {"count": n, "divisor": n - 1},
        )  # fmt: skip
    if math.isnan(fault.expected):  # no number fits
        other = "other than 0" if fault.found == 0 else "of another sign"
        if missed.failure.func.name == "select":
            return Words("constant", f"select to fill in a number {other}", _nice(fault.found), {"found": fault.found})
        return Words("constant", f"{fault.what} {other}", _nice(fault.found), {"found": fault.found})
    numbers = {"expected": fault.expected, "found": fault.found}
    if _is_turned(fault):
        needed, there = ("a difference", "a sum") if fault.expected < 0 else ("a sum", "a difference")
        return Words("sign", needed, there, numbers)
    if fault.hole:
        value = _called(keys, fault.hole, missed.attempt.bound[fault.hole][0])
        return Words("constant", f"{value} with no number in front", f"{_nice(fault.found)} in front of it", numbers)
    expected, found = _nice(fault.expected), _nice(fault.found)
    if expected == found:  # the difference is in the digits that are usually left out
        expected, found = str(fault.expected), str(fault.found)
    return Words("constant", f"{fault.what} {expected}", found, numbers)


def _called(keys: Keys, hole: str, func: Func) -> str:
    """Names a hole, and what the program has there."""
    said = _said(keys, func)
    return hole if said == hole else f"{hole} ({said})"


def _added(number: Any) -> str:
    if number is None:
        return "nothing added"
    return f"{_nice(number)} added" if isinstance(number, float) else "a constant added"


def _axis(keys: Keys, missed: Missed, fault: Any) -> Words | None:
    assert isinstance(fault, AxisFault)
    numbers = {"extent": float(fault.extent)}
    hole = next(iter(fault.missing or fault.extra), None)
    if hole is not None:
        others = [user for user in missed.template.holes if user in fault.users and user != hole]
        whose = _with_axis(keys, missed, others[0], fault.digit) if others else "an axis of the result"
        if fault.missing:
            found = f"{hole} does not vary along {whose} (extent {fault.extent})"
        else:
            found = f"{hole} varies along {whose} too (extent {fault.extent})"
            if not others:
                found = f"{hole} has an axis of its own (extent {fault.extent})"
        return Words("axis", f"{hole} along {_meant(missed, hole)} alone", found, numbers)
    if fault.users:
        whose = " and ".join(_with_axis(keys, missed, user, fault.digit) for user in fault.users)
        return Words("axis", "every axis to play a role in it", f"{whose} (extent {fault.extent}) plays none", numbers)
    return None


def _meant(missed: Missed, hole: str) -> str:
    """Says along which axes a hole is meant to vary: by what is reduced, else by the holes that have them too."""
    owned = missed.template.owned
    reduced = {label for labels, _, _ in missed.attempt.reductions for label in labels}
    parts = []
    for label in owned[hole].split():
        if label in reduced:
            parts.append("the reduced axes")
            continue
        others = [name for name in missed.template.holes if name != hole and label in owned[name].split()]
        parts.append(f"the other axes of {others[0]}" if others else "its own axes")
    return " and ".join(dict.fromkeys(parts)) or "no axis"


def _with_axis(keys: Keys, missed: Missed, hole: str, digit: int) -> str:
    """Names the axis of a bound value at which a digit lies: `axis 1 of x`."""
    attempt = missed.attempt
    func, map_ = attempt.bound[hole]
    for k, one in enumerate(map_):
        if any(attempt.root_of(other) == digit for other in digits_of((one,))):
            name = keys.tape.names.get(func.maker)
            shown = hole if name is None or name == hole else f"{hole} ({name})"
            return f"axis {_axis_of(keys, func, k)} of {shown}"
    return hole


def _mixed(keys: Keys, expected: Any, found: Any) -> Words:
    if isinstance(found[0], Func) and isinstance(found[1], list):
        _, extents = expected
        op = keys.tape.ops[found[0].maker] if found[0].maker >= 0 else None
        over = f" over axes {list(op.attributes['axes'])}" if op is not None and "axes" in op.attributes else ""
        return Words(
            "axis-mixed", f"every reduction over the same axes (extents {extents})",
            f"a {found[0].name}{over} that reduces other ones (extents {found[1]})",
        )  # fmt: skip
    hole, (func, _) = expected
    _, mixed, cut = found
    axes = mixed or cut
    shown = ", ".join(str(_axis_of(keys, func, k)) for k in axes)
    extents = ", ".join(str(func.shape[k]) for k in axes)
    several = len(axes) > 1
    where = f"{'axes' if several else 'axis'} {shown} of {_said(keys, func)} ({'extents' if several else 'extent'} {extents})"
    if not mixed:
        return Words("axis-mixed", f"the same part of {hole} wherever it is read", f"another part of {where}")
    other = "other axes" if several else "another axis"
    return Words("axis-mixed", f"{hole} along the same axes wherever it is read", f"{other} in place of {where}")


def _axis_of(keys: Keys, func: Func, digit: int) -> int:
    """Gives the axis of the value that first computed a function at which one of its digits lies."""
    if func.maker >= 0:
        for axis, row in enumerate(keys.views[func.maker].axes):
            if any(len(d.coefficients) > digit and d.coefficients[digit] for d in row):
                return axis
    return digit


def _wanted(func: Func) -> str:
    """Describes a function of a template."""
    match func.kind:
        case "hole":
            return func.name
        case "one":
            return "a number"
        case "apply":
            return func.name.partition(":")[0]
        case "reduce":
            return f"a {func.name} over {'its' if not func.kids else 'an'} axis"
        case "product":
            return "a product"
        case "sum":
            return "a sum"
        case _:
            return "a value"


def _said(keys: Keys, func: Any) -> str:
    """Describes a function of the program, by its name where it has one."""
    if not isinstance(func, Func):
        return "something else"
    name = keys.tape.names.get(func.maker)
    if name is not None:
        return name
    match func.kind:
        case "one":
            return "a number"
        case "apply":
            kind, _, detail = func.name.partition(":")
            return f"{kind} to {detail}" if kind == "cast" else kind
        case "reduce":
            return f"a {func.name}"
        case "product" | "sum":
            return f"a {func.kind}"
        case "window":
            return "a padded value"
        case _:
            return keys.tape.ops[func.maker].name if func.maker >= 0 else "another value"


def _nice(number: float) -> str:
    """Writes a number as a person would: in two digits, or as the root of a whole number where it is one."""
    if (
        not isinstance(number, float)
        or not math.isfinite(number)
        or number == int(number)
        or number == float(f"{number:.2g}")
    ):
        return f"{number:.9g}" if isinstance(number, (int, float)) else str(number)
    square = number * number
    inverse = 1 / square if square > _LEAST_SQUARE else 0.0
    for text, one in (("sqrt({})", square), ("1/sqrt({})", inverse)):
        whole = round(one)
        if 2 <= whole <= 1 << 20 and abs(one - whole) < 1e-9 * whole:
            root = math.isqrt(whole)
            if root * root == whole:
                return f"{'-' if number < 0 else ''}1/{root}"  # a whole number is written as one
            return ("-" if number < 0 else "") + text.format(whole)
    return f"{number:.9g}"
