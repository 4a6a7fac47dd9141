"""A residual sum and the norm that follows it.

Recognises
    A `layer_norm` or `rms_norm` of `x + residual`, both of one shape. The sum is a named result: the next block may read it,
    as every block with the norm in front does.

Why it pays
    One kernel reads both operands once and writes the sum and its norm; apart, the sum is written and read again.

Declines when
    Nothing of its own: it stands on the norm and declines with it.

Differs from the recorded ops
    Where scale is infinite and the recorded ops fold it (`x * k + (shift - mean * k)`): the kernel centres first and gives an
    infinity for a recorded NaN. Where a row's mean is large beside its spread, what rounding took from each sum counts: a row of
    1e20 + y gives the norm of y, and 0 as recorded, in f64 as in f32. The sum itself is rounded as recorded.

Not recognised
    A sum with a broadcast operand (a bias), a sum of three, a sum or mean over a stack of the two, a scaled residual, a
    difference.

Source
    Vaswani et al., Attention Is All You Need (arXiv 1706.03762), section 3.1; Xiong et al. (arXiv 2002.04745).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching.answers import ROOTS, places
from topos_core.matching.facts import CoreFacts
from topos_core.matching.joining import joined, match_at
from topos_core.matching.match import Match
from topos_core.matching.pattern import Example, Pattern
from topos_core.patterns import layer_norm, rms_norm
from topos_core.tape.tape import Tape

if TYPE_CHECKING:
    from topos_core.matching.context import Context

IDENTIFIER = "add_norm"
NORMS: Mapping[str, Any] = {"layer_norm": layer_norm, "rms_norm": rms_norm}


def find(context: Context, root: int, /) -> Match | None:
    """Gives the norm at `root` together with the sum that it normalises."""
    for identifier in NORMS:
        norm = match_at(context, identifier, root)
        if norm is None:
            continue
        total = norm.bindings["x"]
        op = context.op(total)
        if op.name != "add" or any(_repeats(context, operand) for operand in op.operands):
            continue
        x, residual = op.operands
        bindings = {**norm.bindings, "x": x, "residual": residual}
        layouts = {**norm.facts.layouts, "residual": norm.facts.layouts["x"]}
        facts = replace(norm.facts, layouts=layouts, options={"norm": identifier})
        return joined(context, IDENTIFIER, root, [norm], bindings, facts, named={**norm.named, "sum": (total,)})
    return None


def evaluate(facts: CoreFacts, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Computes the match's own formula: `root`, and `sum` as it was recorded."""
    total = arrays["x"] + arrays["residual"]
    inner = {name: array for name, array in arrays.items() if name != "residual"} | {"x": total}
    return {**NORMS[facts.options["norm"]].evaluate(facts, inner), "sum": total}


def work(tape: Tape, match: Match) -> Work:
    """Counts the norm, one sum per element and the sum that is written."""
    total = tape.type_of(match.named["sum"][0])
    norm: Work = NORMS[match.facts.options["norm"]].work(tape, match)
    return norm + Work(total.size, 0, tape.type_of(match.bindings["residual"]).bytes, total.bytes)


def _repeats(context: Context, value: int) -> bool:
    """Says whether a value is a constant or repeats elements of a smaller one."""
    view = context.view(value)
    return context.op(view.base).name == "constant" or any(not any(digit.coefficients) for digit in view.digits)


def _post_norm(x: Any, y: Any, scale: Any, shift: Any) -> Any:
    total = x + y
    centred = total - total.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * scale + shift


def _pre_norm(x: Any, y: Any, scale: Any) -> Any:
    total = x + y
    return total / np.sqrt((total * total).mean(-1, keepdims=True) + 1e-6) * scale


def _bias(x: Any, scale: Any) -> Any:
    total = x + scale
    return total / np.sqrt((total * total).mean(-1, keepdims=True) + 1e-6) * scale


_BOTH = {"x": "f32[4,5,6]", "y": "f32[4,5,6]", "scale": "f32[6]", "shift": "f32[6]"}

PATTERN = Pattern(
    identifier=IDENTIFIER,
    documentation=__doc__ or "",
    roots=ROOTS,
    find=find,
    where=places(*NORMS),
    work=work,
    evaluate=evaluate,
    named=("sum",),
    examples=(
        Example("layer norm of a sum", _post_norm, _BOTH),
        Example("rms norm of a sum", _pre_norm, {name: _BOTH[name] for name in ("x", "y", "scale")}),
    ),
    counterexamples=(Example("a bias is no residual", _bias, {"x": "f32[4,5,6]", "scale": "f32[6]"}),),
)
