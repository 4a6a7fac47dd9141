"""Keys of movement: the same function by another map; values side by side are one function of one digit more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from topos_core.matching.core import MOVEMENT, WIDEST, Key, Keys, Rule, rounded
from topos_core.matching.frame import Frame
from topos_core.matching.func import Kid
from topos_core.matching.movement import moved
from topos_core.matching.symbol import Coefficient
from topos_core.matching.uses import ONE_OPERAND_MOVEMENT
from topos_core.matching.view import View
from topos_core.tape.op import Op


def _moved(keys: Keys, value: int, op: Op) -> Key | None:
    name, operands, *_ = op
    first = operands[0]
    coefficient = keys.coefficients[first]
    if name in ONE_OPERAND_MOVEMENT and name != "pad" and not keys.is_one(first):
        view = moved(keys.tape, op, keys.views.__getitem__)
        return None if view is None else _picked(keys, coefficient, view)
    if keys.is_one(first) and all(keys.is_one(o) for o in operands) and name not in ("pad", "gather"):
        same = all(keys.coefficients[o] == coefficient for o in op.operands)
        return keys.splat(coefficient, op.type.shape) if same else None
    if op.name == "pad":
        if keys.is_one(first) or (coefficient != 1.0 and op.attributes["fill"] != 0):
            return None
    elif op.name == "concat":
        others = [keys.coefficients[o] for o in op.operands if not keys.is_one(o)]
        fills = [keys.coefficients[o] for o in op.operands if keys.is_one(o)]
        coefficient = others[0]
        if any(other != coefficient for other in others) or (coefficient != 1.0 and any(fill != 0 for fill in fills)):
            return _stacked(keys, op)
    elif op.name == "gather" and (keys.is_one(first) or not keys.uses.constant[op.operands[1]]):
        return None

    def view_of(operand: int) -> View:
        constant = op.name == "gather" and operand == op.operands[1]
        return keys.layer().of(operand) if constant or keys.is_one(operand) else keys.views[operand]

    view = moved(keys.tape, op, view_of if len(op.operands) > 1 else keys.views.__getitem__)
    if view is None:
        return _stacked(keys, op) if name == "concat" else None
    return _picked(keys, coefficient, view)


def _picked(keys: Keys, coefficient: Coefficient, view: View) -> Key:
    """One of several values side by side is that value."""
    func = keys.table.one if view[0] >= 0 else keys.func_of(view)
    while func.name == "stack" and func.kind == "apply" and not view.bounds and view.divisors[-1] == 1:
        if any(digit.coefficients[-1] for digit in view.digits):
            break
        kid = func.kids[view.offsets[-1]]
        coefficient = coefficient * kid.weight
        view = keys.recast(view, kid.func, kid.map)
        func = kid.func
    return coefficient, view


def _stacked(keys: Keys, op: Op) -> Key | None:
    """Different values of one shape side by side: a function with one more digit, which says which of them is meant."""
    ops, axis = keys.tape.ops, op.attributes["axis"]
    shapes = {ops[operand].type.shape for operand in op.operands}
    if len(shapes) > 1 or len(op.operands) > WIDEST:
        return None
    shared = keys.frame(op.operands)
    if shared is None:
        return None
    frame, funcs = shared
    selector = len(frame.extents)
    wide = Frame(frame.axes, [*frame.extents, len(op.operands)], frame.maps)
    kids = [
        Kid(func, map_, rounded(keys.coefficients[operand]))
        for func, map_, operand in zip(funcs, frame.maps, op.operands, strict=True)
    ]
    made = keys.table.make("apply", "stack", kids, wide.extents, selector=selector)
    axes = [[selector, *digits] if k == axis else digits for k, digits in enumerate(frame.axes)]
    return 1.0, keys.placed(made, axes, wide)


RULES: Final[Mapping[str, Rule]] = dict.fromkeys(MOVEMENT, _moved)
