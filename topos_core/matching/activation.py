"""Activations by structure: an elementwise expression of one value is compared as a polynomial.

An expression is written as a sum of monomials in the value and in applied functions (`tanh` of a polynomial), so operand
order, distribution and the place of scales do not matter. Coefficients are compared within two units of f32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from topos_core.tape.tape import Tape

DEPTH: Final = 12
"""Ops below the root that are looked at; gelu by tanh, the deepest, needs 8."""

TOLERANCE: Final = 2.5e-7
"""Two units of f32: constants are written with few digits and rounded at their dtype."""

UNIFORM: Final = 64
"""Elements up to which an array is looked at, whether it is one number."""

Atom = tuple[Any, ...]  # (function, polynomial, ...)
Monomial = tuple[int, tuple[Atom, ...]]  # power of the value, applied functions
Polynomial = tuple[tuple[Monomial, float], ...]


def read_activation(tape: Tape, root: int, is_leaf: Callable[[int], bool]) -> tuple[str, int] | None:
    """Names the activation that makes `root` out of one leaf: (name, leaf); None where it is none of the known."""
    reader = _Reader(tape, root, is_leaf)
    polynomial = reader.read(root, 0)
    if polynomial is None or reader.leaf is None:
        return None
    for name, forms in _TABLE:
        if any(_equal(polynomial, form) for form in forms):
            return name, reader.leaf
    return None


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
            return _VALUE if self.leaf == value else None
        op = self._ops[value]
        if op.name == "constant":
            number = op.attributes["value"]
            if isinstance(number, np.ndarray) and number.ndim:
                first = number.flat[0] if 0 < number.size <= UNIFORM else None
                return _number(float(first)) if first is not None and bool((number == first).all()) else None
            return _number(float(number))
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
        """Reads `select(a > b, a, b)` as their maximum."""
        condition, yes, no = operands
        test = self._ops[condition]
        if test.name != "compare":
            return None
        parts = [self.read(self._unmoved(v), depth + 1) for v in (*test.operands, yes, no)]
        if any(part is None for part in parts):
            return None
        left, right, first, second = (part for part in parts if part is not None)
        kind = test.attributes["kind"]
        if kind in ("lt", "le"):
            left, right = right, left
        elif kind not in ("gt", "ge"):
            return None
        return _extreme("maximum", left, right) if (left, right) == (first, second) else None


def _combined(name: str, parts: list[Polynomial]) -> Polynomial | None:
    match name:
        case "add":
            return _sum(parts[0], parts[1])
        case "sub":
            return _sum(parts[0], _scaled(parts[1], -1.0))
        case "neg":
            return _scaled(parts[0], -1.0)
        case "mul":
            return _product(parts[0], parts[1])
        case "div":
            return _product(parts[0], _reciprocal(parts[1]))
        case "pow":
            exponent = _constant(parts[1])
            if exponent not in (2.0, 3.0):
                return None
            square = _product(parts[0], parts[0])
            return square if exponent == 2.0 else _product(square, parts[0])
        case "maximum" | "minimum":
            return _extreme(name, parts[0], parts[1])
        case _:
            return _apply(name, parts[0])


def _number(value: float) -> Polynomial:
    return (((0, ()), value),) if value else ()


def _constant(p: Polynomial) -> float | None:
    if not p:
        return 0.0
    return p[0][1] if len(p) == 1 and p[0][0] == (0, ()) else None


def _collected(terms: Mapping[Monomial, float]) -> Polynomial:
    return tuple(sorted(((m, c) for m, c in terms.items() if c), key=repr))


def _sum(a: Polynomial, b: Polynomial) -> Polynomial:
    terms = dict(a)
    for monomial, coefficient in b:
        terms[monomial] = terms.get(monomial, 0.0) + coefficient
    return _collected(terms)


def _scaled(a: Polynomial, factor: float) -> Polynomial:
    return _collected({m: c * factor for m, c in a})


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    terms: dict[Monomial, float] = {}
    for (power, atoms), x in a:
        for (other, more), y in b:
            monomial = (power + other, tuple(sorted((*atoms, *more), key=repr)))
            terms[monomial] = terms.get(monomial, 0.0) + x * y
    return _collected(terms)


def _reciprocal(a: Polynomial) -> Polynomial:
    number = _constant(a)
    return _number(1 / number) if number else _apply("reciprocal", a)


def _apply(function: str, argument: Polynomial) -> Polynomial:
    """Writes an applied function; what is odd is applied to the argument whose first coefficient is positive."""
    if function in _ODD and argument and argument[0][1] < 0:
        return _scaled(_apply(function, _scaled(argument, -1.0)), -1.0)
    return (((0, ((function, argument),)), 1.0),)


def _extreme(name: str, a: Polynomial, b: Polynomial) -> Polynomial:
    return (((0, ((name, *sorted((a, b), key=repr)),)), 1.0),)


def _equal(a: Any, b: Any) -> bool:
    """Compares polynomials in which numbers may differ by rounding."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_equal(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=TOLERANCE)
    return bool(a == b)


_VALUE: Final[Polynomial] = (((1, ()), 1.0),)
_ODD: Final = frozenset(("tanh", "erf"))
_HANDLED: Final = frozenset(
    ("add", "sub", "neg", "mul", "div", "pow", "maximum", "minimum", "tanh", "erf", "exp", "select")
)


def _table() -> tuple[tuple[str, tuple[Polynomial, ...]], ...]:
    x, one = _VALUE, _number(1.0)

    def clipped(p: Polynomial, low: float, high: float) -> tuple[Polynomial, Polynomial]:
        return (
            _extreme("minimum", _extreme("maximum", p, _number(low)), _number(high)),
            _extreme("maximum", _extreme("minimum", p, _number(high)), _number(low)),
        )

    def sigmoids(p: Polynomial) -> tuple[Polynomial, ...]:
        logistic = _reciprocal(_sum(one, _apply("exp", _scaled(p, -1.0))))
        by_tanh = _scaled(_sum(one, _apply("tanh", _scaled(p, 0.5))), 0.5)
        growing = _product(_apply("exp", p), _reciprocal(_sum(one, _apply("exp", p))))
        return logistic, by_tanh, growing

    cube = _product(x, _product(x, x))
    inner = _scaled(_sum(x, _scaled(cube, 0.044715)), math.sqrt(2 / math.pi))
    gelu_tanh = _scaled(_product(x, _sum(one, _apply("tanh", inner))), 0.5)
    gelu_erf = _scaled(_product(x, _sum(one, _apply("erf", _scaled(x, math.sqrt(0.5))))), 0.5)
    shifted = clipped(_sum(x, _number(3.0)), 0.0, 6.0)
    return (
        ("relu", (_extreme("maximum", x, ()),)),
        ("relu6", clipped(x, 0.0, 6.0)),
        ("tanh", (_apply("tanh", x),)),
        ("sigmoid", sigmoids(x)),
        ("silu", tuple(_product(x, s) for s in sigmoids(x))),
        ("gelu_tanh", (gelu_tanh,)),
        ("gelu_erf", (gelu_erf,)),
        ("gelu_sigmoid", tuple(_product(x, s) for s in sigmoids(_scaled(x, 1.702)))),
        ("hardswish", tuple(_scaled(_product(x, c), 1 / 6) for c in shifted)),
    )


_TABLE: Final = _table()
