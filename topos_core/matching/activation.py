"""Activations by structure: an elementwise expression of one value is compared as a polynomial.

NaN, infinities and zeros are kept: what cancels (`x - x / 2`) or vanishes (`0 * x`) equals no activation, and a choice by
comparison is the maximum only where a NaN and a zero come out as the maximum gives them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import numpy as np

from topos_core.matching.branch import power_of_logarithm, same_by_sign, same_where_equal
from topos_core.matching.polynomial import (
    VALUE,
    Polynomial,
    applied,
    constant_of,
    equal,
    extreme,
    larger,
    number,
    outline,
    product,
    read_number,
    reciprocal,
    scaled,
    summed,
)
from topos_core.tape.op import Op
from topos_core.tape.tape import Tape

DEPTH: Final = 12
"""Ops below the root that are looked at; gelu by tanh, the deepest, needs 8."""


ROOTS: Final = frozenset(("maximum", "minimum", "mul", "div", "tanh", "select", "add", "exp"))
"""Ops that an activation may end with."""


def read_activation(tape: Tape, root: int, is_leaf: Callable[[int], bool]) -> tuple[str, int] | None:
    """Names the activation that makes `root` out of one leaf: (name, leaf); None where it is none of the known."""
    reader = _Reader(tape, root, is_leaf)
    polynomial = reader.read(root, 0)
    if polynomial is None or reader.leaf is None:
        return None
    for name, form in _TABLE.get(outline(polynomial), ()):
        if equal(polynomial, form):
            return name, reader.leaf
    return None


class Leaves:
    """Which one leaf every value may be an activation of: all that it is computed from, by what activations are made of.

    Values are added in tape order, those alone that are leaves or `THROUGH` makes. It costs a look per operand, and most
    values of a tape need no other.
    """

    def __init__(self, tape: Tape) -> None:
        self._ops = tape.ops
        self._seen: dict[int, int] = {}  # no number stands for several, or for something else

    def above(self, value: int) -> bool:
        """Says whether a value that comes next may be an activation of one leaf."""
        return self._of(self._ops[value]) >= 0

    def add(self, value: int, is_leaf: bool) -> None:
        """Adds the next value."""
        leaf = value if is_leaf else self._of(self._ops[value])
        if leaf != _SEVERAL:
            self._seen[value] = leaf

    def _of(self, op: Op) -> int:
        name, operands, *_ = op
        if name not in THROUGH:
            return _SEVERAL
        found, seen = _NUMBERS, self._seen
        for operand in operands:
            leaf = seen.get(operand, _SEVERAL)
            if leaf != _NUMBERS and leaf != found:
                if found != _NUMBERS or leaf == _SEVERAL:
                    return _SEVERAL
                found = leaf
        return found


_NUMBERS, _SEVERAL = -1, -2  # of no leaf, and of several or of something else


class _Reader:
    def __init__(self, tape: Tape, root: int, is_leaf: Callable[[int], bool]) -> None:
        self._ops = tape.ops
        self._root = root
        self._is_leaf = is_leaf
        self._known: dict[int, Polynomial | None] = {}
        self.leaf: int | None = None

    def read(self, value: int, depth: int) -> Polynomial | None:
        if value not in self._known:
            self._known[value] = self._read(value, depth)
        return self._known[value]

    def _read(self, value: int, depth: int) -> Polynomial | None:
        if value != self._root and self._is_leaf(value):
            if self.leaf is None:
                self.leaf = value
            return VALUE if self.leaf == value else None
        op = self._ops[value]
        if op.name == "constant":
            return read_number(np.asarray(op.attributes["value"]))
        if depth >= DEPTH or op.name not in _HANDLED:
            return None
        if op.name == "select":
            return self._select(op.operands, depth)
        parts: list[Polynomial] = []
        for operand in op.operands:
            part = self.read(self._unmoved(operand), depth + 1)
            if part is None:
                return None
            parts.append(part)
        return _combined(op.name, parts)

    def _unmoved(self, value: int) -> int:
        """Sees through reshapes, or permutations, that give back what they began with, and through a number's broadcast."""
        if self._ops[value].name not in _MOVES:
            return value
        spread = value
        for _ in range(DEPTH):
            if self._ops[spread].name not in ("broadcast", "reshape") or self._is_leaf(spread):
                break
            spread = self._ops[spread].operands[0]
        if spread != value and self._ops[spread].name == "constant":
            return spread
        for kind in ("reshape", "permute"):
            below, order = value, list(range(len(self._ops[value].type.shape)))
            for _ in range(DEPTH):
                op = self._ops[below]
                if op.name != kind or self._is_leaf(below):
                    break
                below = op.operands[0]
                order = [op.attributes["order"][axis] for axis in order] if kind == "permute" else order
            if below != value and self._ops[below].type == self._ops[value].type and order == sorted(order):
                return below
        return value

    def _select(self, operands: tuple[int, ...], depth: int) -> Polynomial | None:
        """Reads a choice of the larger or the smaller of two values by their comparison."""
        condition, yes, no = operands
        test = self._ops[condition]
        if test.name == "logical_not":
            test, yes, no = self._ops[test.operands[0]], no, yes
        if test.name != "compare":
            return None
        parts = [self.read(self._unmoved(v), depth + 1) for v in (*test.operands, yes, no)]
        if any(part is None for part in parts):
            return None
        left, right, first, second = (part for part in parts if part is not None)
        kind = test.attributes["kind"]
        if kind == "eq":
            return same_where_equal(left, right, first, second)
        if kind in ("lt", "le"):
            left, right, kind = right, left, {"lt": "gt", "le": "ge"}[kind]
        elif kind not in ("gt", "ge"):
            return None
        alike = same_by_sign(left, right, first, second)
        if alike is not None:
            return alike
        if (left, right) == (first, second):
            return larger(kind, left, right)
        return extreme("minimum", left, right) if (left, right) == (second, first) and constant_of(right) else None


def _combined(name: str, parts: list[Polynomial]) -> Polynomial | None:
    match name:
        case "add":
            return summed(parts[0], parts[1])
        case "sub":
            return summed(parts[0], scaled(parts[1], -1.0))
        case "neg":
            return scaled(parts[0], -1.0)
        case "mul":
            return product(parts[0], parts[1])
        case "div":
            return product(parts[0], reciprocal(parts[1]))
        case "pow":
            exponent = constant_of(parts[1])
            if exponent not in (2.0, 3.0):
                return None
            square = product(parts[0], parts[0])
            return square if exponent == 2.0 else product(square, parts[0])
        case "maximum" | "minimum":
            return extreme(name, parts[0], parts[1])
        case "exp":
            return power_of_logarithm(parts[0]) or applied(name, parts[0])
        case _:
            return applied(name, parts[0])


_HANDLED: Final = frozenset(
    (
        "add",
        "sub",
        "neg",
        "mul",
        "div",
        "pow",
        "maximum",
        "minimum",
        "abs",
        "tanh",
        "erf",
        "exp",
        "log",
        "log1p",
        "select",
    )
)


_MOVES: Final = frozenset(("broadcast", "reshape", "permute"))
THROUGH: Final = _HANDLED | _MOVES | {"compare", "logical_not", "constant"}
"""Ops that an activation may be made of."""


def _table() -> tuple[tuple[str, tuple[Polynomial, ...]], ...]:
    x, one, three, six = VALUE, number(1.0), number(3.0), number(6.0)

    def clipped(p: Polynomial) -> tuple[Polynomial, Polynomial]:
        return (
            extreme("minimum", extreme("maximum", p, ()), six), extreme("maximum", extreme("minimum", p, six), ()),
        )  # fmt: skip

    def choices(p: Polynomial) -> tuple[Polynomial, Polynomial, Polynomial]:
        return larger("gt", p, ()), larger("ge", p, ()), larger("gt", (), p)

    def sigmoids(p: Polynomial) -> tuple[Polynomial, ...]:
        logistic = reciprocal(summed(one, applied("exp", scaled(p, -1.0))))
        by_tanh = scaled(summed(one, applied("tanh", scaled(p, 0.5))), 0.5)
        return logistic, by_tanh

    def of_exp(p: Polynomial) -> Polynomial:
        return product(applied("exp", p), reciprocal(summed(one, applied("exp", p))))

    cube, steep = product(x, product(x, x)), scaled(x, 1.702)
    inner = scaled(summed(x, scaled(cube, 0.044715)), math.sqrt(2 / math.pi))
    gelu_tanh = scaled(product(x, summed(one, applied("tanh", inner))), 0.5)
    gelu_sigmoid_of_cubic = product(x, reciprocal(summed(one, applied("exp", scaled(inner, -2.0)))))
    gelu_erf = scaled(product(x, summed(one, applied("erf", scaled(x, math.sqrt(0.5))))), 0.5)
    shifted = summed(x, three)  # a NaN in x makes the product NaN, whatever the choice gives for it
    ramps = (*clipped(shifted), *(extreme("minimum", choice, six) for choice in choices(shifted)))
    where_positive, where_not_negative, unless_negative = choices(x)
    return (
        ("relu", (extreme("maximum", x, ()),)),
        ("relu_where_positive", (where_positive,)),
        ("relu_where_not_negative", (where_not_negative,)),
        ("relu_unless_negative", (unless_negative,)),
        ("relu6", clipped(x)),
        ("tanh", (applied("tanh", x),)),
        ("sigmoid", sigmoids(x)),
        ("sigmoid_of_exp", (of_exp(x),)),
        ("silu", tuple(product(x, s) for s in sigmoids(x))),
        ("silu_of_exp", (product(x, of_exp(x)),)),
        ("gelu_tanh", (gelu_tanh, gelu_sigmoid_of_cubic)),
        ("gelu_erf", (gelu_erf,)),
        ("gelu_sigmoid", tuple(product(x, s) for s in sigmoids(steep))),
        ("gelu_sigmoid_of_exp", (product(x, of_exp(steep)),)),
        ("hardswish", tuple(scaled(product(x, ramp), 1 / 6) for ramp in ramps)),
    )


def _by_outline(table: Iterable[tuple[str, Iterable[Polynomial]]]) -> Mapping[Any, list[tuple[str, Polynomial]]]:
    out: dict[Any, list[tuple[str, Polynomial]]] = {}
    for name, forms in table:
        for form in forms:
            out.setdefault(outline(form), []).append((name, form))
    return out


_TABLE: Final = _by_outline(_table())
