"""Keys of add, sub and neg: n-ary sorted sums whose common factor stands outside."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from topos_core.matching.core import WIDEST, Key, Keys, Rule, apply_to, rounded
from topos_core.matching.frame import outward
from topos_core.matching.func import Func, Kid, Made, Map, composed, identity_map, in_order, rewritten
from topos_core.matching.symbol import Coefficient
from topos_core.matching.tuples import new_tuple
from topos_core.tape.op import Op
from topos_core.tape.type import FLOATS

Terms = tuple[list[Kid], Coefficient | None]
"""Operands with their coefficients, and what is added beside them."""


def _add(keys: Keys, value: int, op: Op) -> Key | None:
    return _added(keys, op, 1.0)


def _sub(keys: Keys, value: int, op: Op) -> Key | None:
    return _added(keys, op, -1.0)


def _neg(keys: Keys, value: int, op: Op) -> Key | None:
    if op.type.dtype not in FLOATS:
        return apply_to(keys, op.name, op.operands)
    return -keys.coefficients[op.operands[0]], keys.views[op.operands[0]]


def _added(keys: Keys, op: Op, sign: float) -> Key | None:
    """`a + sign * b`."""
    if op.type.dtype not in FLOATS:
        return apply_to(keys, op.name, op.operands, op.name == "add")
    a, b = op.operands
    if keys.is_one(a) or keys.is_one(b):
        return _shifted(keys, a, b, sign)
    shared = keys.frame((a, b))
    if shared is None:
        return None
    frame, (f, g) = shared
    left, first = _terms(keys, a, f, frame.maps[0], 1.0)
    right, second = _terms(keys, b, g, frame.maps[1], sign, len(left) < WIDEST)
    constant = first if second is None else second if first is None else first + second
    kids, factor = merged_terms([*left, *right])
    if len(kids) == 1 and constant is None:
        return kids[0].weight, keys.mapped(kids[0], frame.axes, frame)
    made = _made(keys, kids, factor, constant, frame.extents)
    if not made.func.written and (_is_apart(left, f) or _is_apart(right, g)):
        own = (Kid(f, frame.maps[0], keys.coefficients[a]), Kid(g, frame.maps[1], sign * keys.coefficients[b]))
        made.func.written = rewritten([kid._replace(weight=rounded(kid.weight / factor)) for kid in own], made.places)
    return factor, keys.placed(made, frame.axes, frame)


def _is_apart(terms: Sequence[Kid], func: Func) -> bool:
    return len(terms) != 1 or terms[0].func is not func


def _shifted(keys: Keys, a: int, b: int, sign: float) -> Key:
    """A sum with a number: no frame is needed, the digits are those of the other operand."""
    x, number = (b, keys.coefficients[a]) if keys.is_one(a) else (a, sign * keys.coefficients[b])
    view = keys.clean(x)
    func = keys.func_of(view)
    own = sign if x == b else 1.0
    if func is keys.table.one:
        return number + own * keys.coefficients[x], view
    terms, constant = _terms(keys, x, func, identity_map(func), own)
    kids, factor = merged_terms(terms)
    made = _made(keys, kids, factor, number if constant is None else constant + number, func.shape)
    return factor, keys.recast(view, made.func, outward(made.places, len(made.func.shape)))


def _terms(keys: Keys, value: int, func: Func, map_: Map, sign: float, room: bool = True) -> Terms:
    """Gives the operands that a value contributes to a sum: its own where it is a sum that only this one reads."""
    coefficient = sign * keys.coefficients[value]
    if room and func.kind == "sum" and keys.uses.count[value] <= 1 and len(func.kids) < WIDEST:
        kids = [new_tuple(Kid, (kid.func, composed(kid.map, map_), coefficient * kid.weight)) for kid in func.kids]
        return kids, None if func.constant is None else coefficient * func.constant
    return [new_tuple(Kid, (func, map_, coefficient))], None


def merged_terms(terms: Sequence[Kid]) -> tuple[list[Kid], Coefficient]:
    """Adds up equal operands whose signs agree (`2x - x` is NaN at infinity), sorts, and gives the factor in front."""
    total: dict[tuple[Func, Map, bool], Kid] = {}
    for kid in terms:
        func, map_, weight = kid
        key = (func, map_, weight > 0)
        known = total.get(key)
        total[key] = kid if known is None else Kid(func, map_, known.weight + weight)
    kids = in_order(total.values(), lambda kid: (kid.func.number, str(kid.map), not kid.weight > 0))
    factor = next((kid.weight for kid in kids if kid.weight != 0), 1.0)
    return kids, 1.0 if isinstance(factor, float) and math.isinf(factor) else factor


def _made(
    keys: Keys, kids: Sequence[Kid], factor: Coefficient, constant: Coefficient | None, extents: Sequence[int]
) -> Made:
    if type(factor) is not float or factor != 1.0:
        kids = [new_tuple(Kid, (func, map_, rounded(weight / factor))) for func, map_, weight in kids]
    else:
        kids = [
            kid if kid.weight == 1.0 else new_tuple(Kid, (kid.func, kid.map, rounded(kid.weight / 1.0))) for kid in kids
        ]
    return keys.table.make("sum", "", kids, extents, None if constant is None else rounded(constant / factor))


RULES: Final[Mapping[str, Rule]] = {"add": _add, "sub": _sub, "neg": _neg}
