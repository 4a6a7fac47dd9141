"""Keys of mul, div, sqrt, rsqrt and pow: n-ary sorted products with exponents; numbers stand outside."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from topos_core.matching.core import WIDEST, Key, Keys, Rule, applied, apply_to, rounded
from topos_core.matching.frame import outward
from topos_core.matching.func import Func, Kid, Map, composed, identity_map, in_order, rewritten
from topos_core.matching.symbol import Coefficient, power_of
from topos_core.matching.tuples import new_tuple
from topos_core.tape.op import Op
from topos_core.tape.type import FLOATS

Factors = tuple[Coefficient, list[Kid]]
"""A number and operands with their exponents."""


def power(exponent: float, outer: float, operands: int) -> float | None:
    """Gives the exponent of `(.. f^exponent ..)^outer`, where the domain and the sign stay; else None.

    `sqrt(x^2)` is not x and `sqrt(x)^2` is not x where x is negative; a root of a product of several does not split.
    """
    if outer == 1:
        return exponent
    if float(outer).is_integer():
        return None if not float(exponent).is_integer() and float(exponent * outer).is_integer() else exponent * outer
    return exponent * outer if operands == 1 and float(exponent).is_integer() and exponent % 2 else None


def unified(factors: Sequence[Kid]) -> list[Kid]:
    """Adds up exponents of equal operands where signs agree and the domain stays, and sorts.

    `x / x` is NaN at zero, and `sqrt(x) * sqrt(x)` is where x is negative.
    """
    total: dict[tuple[Func, Map, bool], Kid] = {}
    roots: list[Kid] = []
    for kid in factors:
        func, map_, weight = kid
        key = (func, map_, weight > 0)
        known = total.get(key)
        if known is None:
            total[key] = kid
            continue
        exponent = known.weight + weight
        if float(exponent).is_integer() and not float(weight).is_integer():
            roots.append(kid)
        else:
            total[key] = Kid(func, map_, exponent)
    merged = (*total.values(), *roots)
    for kid in merged:
        if kid.func.name == "abs" and _is_even_power_of_size(kid):
            return unified([_unsigned(one) for one in merged])
    return in_order(merged, lambda kid: (kid.func.number, -kid.weight, str(kid.map)))


def _is_even_power_of_size(kid: Kid) -> bool:
    """Says whether it is `|x|` to an even power, which is x to that power, bit for bit."""
    func = kid.func
    return kid.weight % 2 == 0 and func.kind == "apply" and func.name == "abs" and func.kids[0].weight == 1


def _unsigned(kid: Kid) -> Kid:
    if not _is_even_power_of_size(kid):
        return kid
    inner = kid.func.kids[0]
    return Kid(inner.func, composed(inner.map, kid.map), kid.weight)


def _mul(keys: Keys, value: int, op: Op) -> Key | None:
    return _multiplied(keys, op, 1.0)


def _div(keys: Keys, value: int, op: Op) -> Key | None:
    return _multiplied(keys, op, -1.0)


def _sqrt(keys: Keys, value: int, op: Op) -> Key | None:
    return _raised(keys, op.operands[0], 0.5)


def _rsqrt(keys: Keys, value: int, op: Op) -> Key | None:
    return _raised(keys, op.operands[0], -0.5)


def _pow(keys: Keys, value: int, op: Op) -> Key | None:
    exponent = keys.coefficients[op.operands[1]]
    if op.type.dtype in FLOATS and keys.is_one(op.operands[1]) and isinstance(exponent, float) and exponent != 0:
        return _raised(keys, op.operands[0], exponent)
    return apply_to(keys, "pow", op.operands)


def _multiplied(keys: Keys, op: Op, exponent: float) -> Key | None:
    """`a * b ** exponent`, the exponent 1 or -1."""
    if op.type.dtype not in FLOATS:
        return apply_to(keys, op.name, op.operands, op.name == "mul")
    a, b = op.operands
    first, second = keys.coefficients[a], keys.coefficients[b]
    if keys.is_one(b):
        scale = power_of(second, exponent)
        if _holds(scale, second):
            return first * scale, keys.views[a]
    if keys.is_one(a):
        if exponent == 1:
            return first * second, keys.views[b]
        inverse = _raised(keys, b, -1.0)
        return None if inverse is None else (inverse[0] * first, inverse[1])
    shared = keys.frame((a, b))
    if shared is None:
        return None
    frame, (f, g) = shared
    if f is g and exponent == 1 and frame.maps[0] == frame.maps[1] and _is_root(f) and keys.uses.count[a] <= 2:
        squared = f.kids[0]
        return first * second, keys.mapped(
            Kid(squared.func, composed(squared.map, frame.maps[0]), 1.0), frame.axes, frame
        )
    left = _factors(keys, a, f, frame.maps[0], 1.0)
    right = _factors(keys, b, g, frame.maps[1], exponent)
    if left is None or right is None:
        return None
    kids = unified([*left[1], *right[1]])
    coefficient = left[0] * right[0]
    if len(kids) == 1 and kids[0].weight == 1:
        return coefficient, keys.mapped(kids[0], frame.axes, frame)
    made = keys.table.make("product", "", kids, frame.extents)
    if not made.func.written and len(left[1]) + len(right[1]) > 2:
        own = (Kid(f, frame.maps[0], 1.0), Kid(g, frame.maps[1], exponent))
        made.func.written = rewritten(own, made.places)
    return coefficient, keys.placed(made, frame.axes, frame)


def _is_root(func: Func) -> bool:
    """Says whether a function is the square root of what is never negative: times itself it is that."""
    return (
        func.kind == "product"
        and len(func.kids) == 1
        and func.kids[0].weight == 0.5
        and is_never_negative(func.kids[0].func)
    )


def _raised(keys: Keys, value: int, exponent: float) -> Key | None:
    """A power needs no frame: the digits are those of its operand."""
    view = keys.clean(value)
    func = keys.func_of(view)
    factors = _factors(keys, value, func, identity_map(func), exponent)
    if factors is None:
        return apply_to(keys, f"power:{exponent:g}", (value,))
    coefficient, kids = factors
    if not kids:
        return coefficient, view
    kids = unified(kids)
    if len(kids) == 1 and kids[0].weight == 1:
        return coefficient, keys.recast(view, kids[0].func, kids[0].map)
    made = keys.table.make("product", "", kids, func.shape)
    return coefficient, keys.recast(view, made.func, outward(made.places, len(made.func.shape)))


def _factors(keys: Keys, value: int, func: Func, map_: Map, exponent: float) -> Factors | None:
    """Gives the operands that a value to a power contributes; None where its number has no such power."""
    coefficient = keys.coefficients[value]
    if exponent != 1:
        raised = power_of(coefficient, exponent)
        if not _holds(raised, coefficient):
            return None
        if coefficient == 0 and not float(exponent).is_integer() and func is not keys.table.one:
            return None  # (0 * x) ** 1.5 is a number where x ** 1.5 is none
        coefficient = raised
    if func is keys.table.one:
        return coefficient, []
    if func.kind == "product" and keys.uses.count[value] <= 1 and len(func.kids) < WIDEST:
        exponents = [_power_of(kid, exponent, len(func.kids)) for kid in func.kids]
        if None not in exponents:
            return coefficient, [
                new_tuple(Kid, (kid.func, composed(kid.map, map_), e))
                for kid, e in zip(func.kids, exponents, strict=True)
            ]
    return coefficient, [new_tuple(Kid, (func, map_, exponent))]


def _power_of(kid: Kid, outer: float, operands: int) -> float | None:
    """Gives the exponent of an operand of a product to a power: of what is never negative, the square of a root is that."""
    exponent = power(kid.weight, outer, operands)
    if exponent is None and float(outer).is_integer() and is_never_negative(kid.func):
        return float(kid.weight * outer)
    return exponent


def power_of_logarithm(keys: Keys, value: int, op: Op) -> Key | None:
    """`exp(c * log(y))` is `y^c` where y is never negative, and `exp(c * log1p(y))` is `(1 + y)^c`; else a function applied."""
    operand = op.operands[0]
    func, exponent = keys.funcs[operand], keys.coefficients[operand]
    if func.kind != "apply" or func.name not in ("log", "log1p") or not isinstance(exponent, float) or not exponent:
        return applied(keys, value, op)
    view = keys.clean(operand)
    kid = func.kids[0]
    inner, scale = kid.func, kid.weight
    if not isinstance(scale, float) or not scale > 0 or not is_never_negative(inner):
        return applied(keys, value, op)
    if func.name == "log1p":
        made = keys.table.make("sum", "", [Kid(inner, identity_map(inner), 1.0)], inner.shape, rounded(1.0 / scale))
        inner, kid = made.func, kid._replace(map=composed(tuple(outward(made.places, len(made.func.shape))), kid.map))
    factor = power_of(scale, exponent)
    if not isinstance(factor, float) or not math.isfinite(factor):
        return applied(keys, value, op)
    if exponent == 1:
        return factor, keys.recast(view, inner, kid.map)
    made = keys.table.make("product", "", [Kid(inner, kid.map, exponent)], func.shape)
    return factor, keys.recast(view, made.func, outward(made.places, len(made.func.shape)))


def magnitude(keys: Keys, value: int, op: Op) -> Key | None:
    """`|c * y|` is itself where c is positive and y never negative; else a function applied."""
    (operand,) = op.operands
    coefficient = keys.coefficients[operand]
    if isinstance(coefficient, float) and coefficient > 0 and is_never_negative(keys.funcs[operand]):
        return coefficient, keys.views[operand]
    return applied(keys, value, op)


def is_never_negative(func: Func) -> bool:
    """Says whether a function is 0, positive or NaN everywhere, by its last steps: squares, powers of e, magnitudes and their sums."""
    match func.kind:
        case "apply":
            return func.name in ("exp", "abs")
        case "sum":
            return (func.constant is None or func.constant > 0) and all(
                kid.weight > 0 and kid.func.kind != "sum" and is_never_negative(kid.func) for kid in func.kids
            )
        case "product":
            return all(float(kid.weight / 2).is_integer() for kid in func.kids)
        case "reduce":
            powers = (float(kid.weight / 2).is_integer() or is_never_negative(kid.func) for kid in func.kids)
            return func.name == "sum" and all(powers)
    return False


def _holds(power: Coefficient, number: Coefficient) -> bool:
    """Tells whether a power of a number is a number: no root of a negative one, no reciprocal of zero, no overflow."""
    return not (isinstance(power, float) and math.isnan(power)) or (isinstance(number, float) and math.isnan(number))


RULES: Final[Mapping[str, Rule]] = {
    "abs": magnitude,
    "exp": power_of_logarithm,
    "mul": _mul,
    "div": _div,
    "sqrt": _sqrt,
    "rsqrt": _rsqrt,
    "pow": _pow,
}
