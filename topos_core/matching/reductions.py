"""Keys of sum, max, min and matmul: a contraction is a reduction of a product of two, whoever wrote it how."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from topos_core.matching.affine import Digits
from topos_core.matching.core import Key, Keys, Rule, rounded
from topos_core.matching.frame import Frame, framed, outward
from topos_core.matching.func import Form, Func, Kid, Map, composed, form, identity_map, used
from topos_core.matching.products import power, unified
from topos_core.matching.sums import merged_terms
from topos_core.matching.symbol import Coefficient, Symbol
from topos_core.matching.tuples import new_tuple
from topos_core.tape.op import Op
from topos_core.tape.type import FLOATS


def _sum(keys: Keys, value: int, op: Op) -> Key | None:
    return _reduced(keys, op, "sum")


def _max(keys: Keys, value: int, op: Op) -> Key | None:
    return _reduced(keys, op, "max")


def _min(keys: Keys, value: int, op: Op) -> Key | None:
    return _reduced(keys, op, "min")


def _reduced(keys: Keys, op: Op, name: str) -> Key | None:
    if op.type.dtype not in FLOATS:
        return None
    x = op.operands[0]
    coefficient = keys.coefficients[x]
    view = keys.clean(x)
    frame = framed((view,))
    if frame is None:
        return None
    axes = op.attributes["axes"]
    gone = [digit for axis in axes for digit in frame.axes[axis]]
    kept = [digits for axis, digits in enumerate(frame.axes) if axis not in axes]
    func = keys.func_of(view)
    if func is keys.table.one:
        count = math.prod(frame.extents[digit] for digit in gone)
        return keys.splat(coefficient * count if name == "sum" else coefficient, op.type.shape)
    kids = [Kid(func, frame.maps[0], 1.0)]
    if name == "sum":
        written = _written(keys, x) if func is keys.funcs[x] else None  # a padded product is a value of its own
        if written is not None:
            kids = used(written, frame.maps[0])
    elif not coefficient > 0:
        if not coefficient < 0:
            return None  # the greatest of 0 * x
        name = {"max": "min", "min": "max"}[name]
    key = _made(keys, x, name, coefficient, kids, frame, gone, kept)
    _pulled(keys, keys.func_of(key[1]), coefficient)
    return key


def _matmul(keys: Keys, value: int, op: Op) -> Key | None:
    if op.type.dtype not in FLOATS:
        return None
    a, b = op.operands
    left, right = keys.clean(a), keys.clean(b)
    rows: list[Sequence[Digits]] = [
        (*left.axes[:-2], left.axes[-2], (), left.axes[-1]),
        (*right.axes[:-2], (), right.axes[-1], right.axes[-2]),
    ]
    frame = framed((left, right), rows)
    if frame is None:
        return None
    kids = [
        new_tuple(Kid, (func, map_, 1.0))
        for func, map_ in zip((keys.func_of(left), keys.func_of(right)), frame.maps, strict=True)
        if func is not keys.table.one
    ]
    coefficient = keys.coefficients[a] * keys.coefficients[b]
    if not kids:
        return keys.splat(coefficient * keys.tape.ops[a].type.shape[-1], op.type.shape)
    return _made(keys, None, "sum", coefficient, kids, frame, frame.axes[-1], frame.axes[:-1])


def _logsumexp(keys: Keys, value: int, op: Op) -> Key | None:
    """`log(sum(exp(x - m))) + m` with m the maximum: what the op means, and what people write."""
    x = op.operands[0]
    coefficient = keys.coefficients[x]
    view = keys.clean(x)
    frame = framed((view,))
    func = keys.func_of(view)
    if frame is None or not coefficient > 0 or func is keys.table.one:
        return None
    axes = op.attributes["axes"]
    gone = [digit for axis in axes for digit in frame.axes[axis]]
    kept = [digits for axis, digits in enumerate(frame.axes) if axis not in axes]
    own = Kid(func, frame.maps[0], 1.0)
    if not gone:
        return coefficient, keys.mapped(own, kept, frame)
    most, places = keys.table.make("reduce", "max", [own], frame.extents, None, gone)
    _pulled(keys, most, coefficient)
    top = Kid(most, tuple(outward(places, len(most.shape))), -1.0)
    kids, factor = merged_terms([own, top])
    shifted, places = keys.table.make("sum", "", [k._replace(weight=k.weight / factor) for k in kids], frame.extents)
    over = tuple(outward(places, len(shifted.shape)))
    inside = Kid(shifted, identity_map(shifted), rounded(coefficient * factor))
    powers = keys.table.make("apply", "exp", [inside], shifted.shape).func
    total, places = keys.table.make("reduce", "sum", [Kid(powers, over, 1.0)], frame.extents, None, gone)
    logs = keys.table.make("apply", "log", [Kid(total, identity_map(total), 1.0)], total.shape).func
    ends = [Kid(logs, tuple(outward(places, len(total.shape))), 1.0), Kid(most, top.map, coefficient)]
    kids, factor = merged_terms(ends)
    scaled = [kid._replace(weight=rounded(kid.weight / factor)) for kid in kids]
    return factor, keys.placed(keys.table.make("sum", "", scaled, frame.extents), kept, frame)


def _pulled(keys: Keys, func: Func, coefficient: Coefficient) -> None:
    """Keeps which symbols stand in front of a template's extreme: they were taken out as if they were positive."""
    if isinstance(coefficient, Symbol) and func.kind == "reduce" and func.name in ("max", "min"):
        keys.pulled[func.number] = (*keys.pulled.get(func.number, ()), coefficient)


def _made(
    keys: Keys,
    operand: int | None,
    name: str,
    coefficient: Coefficient,
    kids: list[Kid],
    frame: Frame,
    gone: Sequence[int],
    kept: Sequence[Sequence[int]],
) -> Key:
    if not gone and len(kids) == 1 and kids[0].weight == 1:
        return coefficient, keys.mapped(kids[0], kept, frame)
    alone = operand is not None and keys.uses.count[operand] <= 1
    if alone and len(kids) == 1 and kids[0].func.kind == "product" and len(kids[0].func.kids) == 1:
        inner = kids[0].func.kids[0]
        exponent = power(inner.weight, kids[0].weight, 1)
        if exponent is not None:
            kids = [Kid(inner.func, composed(inner.map, kids[0].map), exponent)]
    extents = frame.extents
    if alone and len(kids) == 1 and kids[0].weight == 1:
        inner_func = kids[0].func
        if inner_func.kind == "reduce" and inner_func.name == name:  # a sum of a sum is one sum
            more = range(len(extents), len(extents) + len(inner_func.reduced))
            outer = (*kids[0].map, *more)
            kids = used(inner_func.kids, outer)
            extents = [*extents, *inner_func.reduced]
            gone = [*gone, *more]
    made = keys.table.make("reduce", name, unified(kids), extents, None, gone)
    return coefficient, keys.placed(made, kept, new_tuple(Frame, (frame.axes, extents, frame.maps)))


def _written(keys: Keys, value: int) -> list[Kid] | None:
    """Gives the two operands of a product as its author wrote them, over the digits of the product's function.

    One level only and only where nothing else reads the product: whatever the operands are made of, they are the
    operands of a contraction.
    """
    source = keys.uses.source[value]
    func = keys.funcs[value]
    if keys.uses.count[source] > 1 or keys.funcs[source] is not func:
        return None
    op = keys.tape.ops[source]
    operands = op.operands
    exponents: tuple[float, ...] = (1.0, -1.0 if op.name == "div" else 1.0)
    if op.name == "pow":
        exponent = keys.coefficients[operands[1]]
        if not (keys.is_one(operands[1]) and isinstance(exponent, float) and exponent.is_integer()):
            return None
        operands, exponents = operands[:1], (exponent,)
    elif op.name not in ("mul", "div") or any(keys.is_one(operand) for operand in operands):
        return None
    if any(keys.coefficients[o] == 0 and e < 0 for o, e in zip(operands, exponents, strict=False)):
        return None
    views = [keys.clean(operand) for operand in operands]
    frame = framed((*views, keys.views[source]))
    if frame is None:
        return None
    inward = _inverse(frame.maps[-1], frame.maps[:-1])
    if inward is None:
        return None
    return [
        Kid(keys.func_of(view), _through(map_, inward), exponent)
        for view, map_, exponent in zip(views, frame.maps[:-1], exponents, strict=True)
    ]


def _inverse(own: Map, others: Iterable[Map]) -> dict[int, int] | None:
    """Gives the digit of a function for each frame digit that is its innermost part; None where a map reads others."""
    inward: dict[int, int] = {}
    joined: dict[int, tuple[int, int]] = {}  # an outer part: (the innermost part, how many of it)
    for k, one in enumerate(own):
        if isinstance(one, int):
            inward[one] = k
            continue
        offset, terms = one
        innermost = min(terms, key=lambda term: term[1], default=None)
        if offset or innermost is None or innermost[1] != 1:
            return None
        inward[innermost[0]] = k
        for digit, coefficient in terms:
            if digit != innermost[0]:
                joined[digit] = (innermost[0], coefficient)
    for map_ in others:
        for one in map_:
            read = {one: 1} if isinstance(one, int) else dict(one[1])
            for digit, coefficient in read.items():
                if digit in joined:
                    inner, count = joined[digit]
                    if coefficient != count * read.get(inner, 0):
                        return None
                elif digit not in inward:
                    return None
    return inward


def _through(map_: Map, inward: Mapping[int, int]) -> Map:
    out: list[Form] = []
    for one in map_:
        if isinstance(one, int):
            out.append(inward[one])
        else:
            out.append(form(one[0], ((inward[digit], c) for digit, c in one[1] if digit in inward)))
    return tuple(out)


RULES: Final[Mapping[str, Rule]] = {
    "sum": _sum,
    "max": _max,
    "min": _min,
    "logsumexp": _logsumexp,
    "matmul": _matmul,
}
