"""Activations by structure: an elementwise expression of one value is compared as a polynomial.

An expression is written as a sum of monomials in the value and in applied functions (`tanh` of a polynomial), so operand
order, distribution and the place of scales do not matter. Coefficients are compared within two units of f32. NaN,
infinities and zeros are kept: what cancels (`x - x / 2`) or vanishes (`0 * x`) equals no activation, -0 is no number
here, and a choice by comparison is the maximum only where a NaN and a zero come out as the maximum gives them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import numpy as np

from topos_core.tape.op import Op
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
    for name, form in _TABLE.get(_outline(polynomial), ()):
        if _equal(polynomial, form):
            return name, reader.leaf
    return None


class Leaves:
    """Which one leaf every value may be an activation of: all that it is computed from, by what activations are made of.

    Values are added in tape order. It costs a look per operand, and most values of a tape need no other.
    """

    def __init__(self, tape: Tape) -> None:
        self._ops = tape.ops
        self._seen: list[int] = []

    def above(self, value: int) -> bool:
        """Says whether a value that comes next may be an activation of one leaf."""
        return self._of(self._ops[value]) >= 0

    def add(self, value: int, is_leaf: bool) -> None:
        """Adds the next value."""
        self._seen.append(value if is_leaf else self._of(self._ops[value]))

    def _of(self, op: Op) -> int:
        if op.name == "constant":
            return _NUMBERS
        if op.name not in _THROUGH:
            return _SEVERAL
        found, seen = _NUMBERS, self._seen
        for operand in op.operands:
            leaf = seen[operand]
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
            return _VALUE if self.leaf == value else None
        op = self._ops[value]
        if op.name == "constant":
            return _read_number(np.asarray(op.attributes["value"]))
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
        if kind in ("lt", "le"):
            left, right, kind = right, left, {"lt": "gt", "le": "ge"}[kind]
        elif kind not in ("gt", "ge"):
            return None
        if (left, right) == (first, second):
            return _larger(kind, left, right)
        return _extreme("minimum", left, right) if (left, right) == (second, first) and _constant(right) else None


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
        case "exp":
            return _power_of_logarithm(parts[0]) or _apply(name, parts[0])
        case _:
            return _apply(name, parts[0])


def _power_of_logarithm(argument: Polynomial) -> Polynomial | None:
    """Reads `exp(-log(p))` and `exp(-log1p(p))` as a reciprocal, where p is made of powers of e and positive numbers alone."""
    if len(argument) != 1 or argument[0][1] != -1.0 or argument[0][0][0] != 0 or len(argument[0][0][1]) != 1:
        return None
    function, inner = argument[0][0][1][0][:2]
    if function not in ("log", "log1p") or not all(
        c > 0 and power == 0 and all(atom[0] == "exp" for atom in atoms) for (power, atoms), c in inner
    ):
        return None
    return _reciprocal(inner if function == "log" else _sum(_number(1.0), inner))


def _read_number(array: np.ndarray) -> Polynomial | None:
    """Reads a constant that is one number all over; -0 is none, since a sum of monomials has one zero."""
    if not 0 < array.size <= UNIFORM or not bool((array == array.flat[0]).all()):
        return None
    value = float(array.flat[0])
    return None if value == 0 and math.copysign(1.0, value) < 0 else _number(value)


def _number(value: float) -> Polynomial:
    return (((0, ()), value),) if value else ()


def _constant(p: Polynomial) -> float | None:
    if not p:
        return 0.0
    return p[0][1] if len(p) == 1 and p[0][0] == (0, ()) else None


def _collected(terms: Mapping[Monomial, float]) -> Polynomial:
    """Orders terms; one that has come to 0 stays, since 0 times an infinity is NaN, and only a number's may go."""
    return tuple(sorted(((m, c) for m, c in terms.items() if c or m != _ONE), key=repr))


def _added(terms: dict[Monomial, float], monomial: Monomial, coefficient: float) -> None:
    """Adds a term; two of unlike signs, which give NaN for an infinity, come to NaN, and that equals no coefficient."""
    known = terms.get(monomial)
    if known is not None and monomial != _ONE and not known * coefficient > 0:
        terms[monomial] = math.nan
    else:
        terms[monomial] = (known or 0.0) + coefficient


def _sum(a: Polynomial, b: Polynomial) -> Polynomial:
    terms = dict(a)
    for monomial, coefficient in b:
        _added(terms, monomial, coefficient)
    return _collected(terms)


def _scaled(a: Polynomial, factor: float) -> Polynomial:
    return _collected({m: c * factor for m, c in a})


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    terms: dict[Monomial, float] = {}
    for (power, atoms), x in a:
        for (other, more), y in b:
            _added(terms, (power + other, tuple(sorted((*atoms, *more), key=repr))), x * y)
    if (a and not b) or (b and not a):  # the number 0 as a factor
        return _scaled(a or b, 0.0)
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


def _larger(kind: str, a: Polynomial, b: Polynomial) -> Polynomial:
    """Writes `a if a > b else b` (`gt`), or with `>=` (`ge`): a NaN in either gives b.

    With a number for a it is the maximum, but for a zero: `0 > x` keeps -0.
    """
    number = _constant(a)
    if number is not None and (number or kind == "ge"):
        return _extreme("maximum", a, b)
    return (((0, ((kind, a, b),)), 1.0),)


def _equal(a: Any, b: Any) -> bool:
    """Compares polynomials in which numbers may differ by rounding."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_equal(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=TOLERANCE)
    return bool(a == b)


_ONE: Final[Monomial] = (0, ())
_VALUE: Final[Polynomial] = (((1, ()), 1.0),)
_ODD: Final = frozenset(("tanh", "erf"))
_HANDLED: Final = frozenset(
    ("add", "sub", "neg", "mul", "div", "pow", "maximum", "minimum", "tanh", "erf", "exp", "log", "log1p", "select")
)


_MOVES: Final = frozenset(("broadcast", "reshape", "permute"))
_THROUGH: Final = _HANDLED | _MOVES | {"compare", "logical_not"}


def _outline(polynomial: Polynomial) -> tuple[Any, ...]:
    """Gives the powers and the applied functions of a polynomial's terms: equal where the polynomials are."""
    return tuple([(power, *[atom[0] for atom in atoms]) for (power, atoms), _ in polynomial])


def _table() -> tuple[tuple[str, tuple[Polynomial, ...]], ...]:
    x, one, three, six = _VALUE, _number(1.0), _number(3.0), _number(6.0)

    def clipped(p: Polynomial) -> tuple[Polynomial, Polynomial]:
        return (
            _extreme("minimum", _extreme("maximum", p, ()), six), _extreme("maximum", _extreme("minimum", p, six), ()),
        )  # fmt: skip

    def choices(p: Polynomial) -> tuple[Polynomial, Polynomial, Polynomial]:
        return _larger("gt", p, ()), _larger("ge", p, ()), _larger("gt", (), p)

    def sigmoids(p: Polynomial) -> tuple[Polynomial, ...]:
        logistic = _reciprocal(_sum(one, _apply("exp", _scaled(p, -1.0))))
        by_tanh = _scaled(_sum(one, _apply("tanh", _scaled(p, 0.5))), 0.5)
        return logistic, by_tanh

    def of_exp(p: Polynomial) -> Polynomial:
        return _product(_apply("exp", p), _reciprocal(_sum(one, _apply("exp", p))))

    cube, steep = _product(x, _product(x, x)), _scaled(x, 1.702)
    inner = _scaled(_sum(x, _scaled(cube, 0.044715)), math.sqrt(2 / math.pi))
    gelu_tanh = _scaled(_product(x, _sum(one, _apply("tanh", inner))), 0.5)
    gelu_sigmoid_of_cubic = _product(x, _reciprocal(_sum(one, _apply("exp", _scaled(inner, -2.0)))))
    gelu_erf = _scaled(_product(x, _sum(one, _apply("erf", _scaled(x, math.sqrt(0.5))))), 0.5)
    shifted = _sum(x, three)  # a NaN in x makes the product NaN, whatever the choice gives for it
    ramps = (*clipped(shifted), *(_extreme("minimum", choice, six) for choice in choices(shifted)))
    where_positive, where_not_negative, unless_negative = choices(x)
    return (
        ("relu", (_extreme("maximum", x, ()),)),
        ("relu_where_positive", (where_positive,)),
        ("relu_where_not_negative", (where_not_negative,)),
        ("relu_unless_negative", (unless_negative,)),
        ("relu6", clipped(x)),
        ("tanh", (_apply("tanh", x),)),
        ("sigmoid", sigmoids(x)),
        ("sigmoid_of_exp", (of_exp(x),)),
        ("silu", tuple(_product(x, s) for s in sigmoids(x))),
        ("silu_of_exp", (_product(x, of_exp(x)),)),
        ("gelu_tanh", (gelu_tanh, gelu_sigmoid_of_cubic)),
        ("gelu_erf", (gelu_erf,)),
        ("gelu_sigmoid", tuple(_product(x, s) for s in sigmoids(steep))),
        ("gelu_sigmoid_of_exp", (_product(x, of_exp(steep)),)),
        ("hardswish", tuple(_scaled(_product(x, ramp), 1 / 6) for ramp in ramps)),
    )


def _by_outline(table: Iterable[tuple[str, Iterable[Polynomial]]]) -> Mapping[Any, list[tuple[str, Polynomial]]]:
    out: dict[Any, list[tuple[str, Polynomial]]] = {}
    for name, forms in table:
        for form in forms:
            out.setdefault(_outline(form), []).append((name, form))
    return out


_TABLE: Final = _by_outline(_table())
