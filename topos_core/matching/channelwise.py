"""Batch norms over a value's channels, read as `A * y + B` with one number per channel.

An expression of one value and of per-channel vectors is multiplied out into monomials whose exponents are halves (floats
hold them exactly), so it does not matter whether scale and shift were folded, in which order they stand, or where the root
was taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import mul as _times
from typing import Any, Final, NamedTuple

import numpy as np

from topos_core.matching.affine import Digit, Digits
from topos_core.matching.context import Context
from topos_core.matching.cut import Cut
from topos_core.matching.joint import shared_digits
from topos_core.matching.tuples import new_tuple
from topos_core.matching.view import View, is_whole

Frame = tuple[Digits, ...]
"""The axes of a value; every digit has one coefficient, what a step of it adds to the channel's number."""

Atom = Any  # `VALUE`, the number of a vector's value, or a polynomial (under a root)
Monomial = tuple[tuple[Atom, float], ...]
Polynomial = dict[Monomial, float]
_Key = frozenset[tuple[Monomial, float]]

VALUE: Final = "y"
DEPTH: Final = 16
HALF: Final = 0.5
_ARITHMETIC: Final = frozenset(("add", "sub", "mul", "div", "pow", "sqrt", "rsqrt", "neg"))
TERMS: Final = 16
"""Monomials kept; a batch norm multiplied out has three."""


class Norm(NamedTuple):
    """A batch norm with given statistics: vectors by name, and epsilon."""

    leaf: int
    mean: int
    variance: int
    scale: int | None
    shift: int | None
    epsilon: float


class Norms:
    """Reads the batch norms of one tape; what an operand multiplies out to is worked out once.

    Args:
        context: The tape.
        is_leaf: Says whether a value can be what is normalised.
        frame_of: Gives the frame and the number of channels of every value that is computed from a leaf element by
            element, or moved.
    """

    def __init__(
        self,
        context: Context,
        is_leaf: Callable[[int], bool],
        frame_of: Callable[[int], tuple[Frame, int] | None],
    ) -> None:
        self._context = context
        self._is_leaf = is_leaf
        self._frame_of = frame_of
        self._known: dict[int, _Read | None] = {}
        self._leaves: set[int] = set()  # vectors that are read as they are
        self._made: dict[_Key, int] = {}  # those that are made of others, by what of

    def read(self, root: int) -> Norm | None:
        """Reads a value as `(y - mean) / sqrt(variance + epsilon) * scale + shift` of one leaf `y`.

        Values are read in tape order: whether an operand is a leaf is known by then.
        """
        read = self._known[root] = self._above(root)
        if read is None:
            return None
        norm = _norm(read.leaf, read.polynomial, self._made)
        if norm is None:
            under = self._known.get(read.leaf)
            if under is not None and _has_root(read.polynomial):  # the mean may have been taken for a bias
                whole = _inserted(read.polynomial, under.polynomial)
                norm = None if whole is None else _norm(under.leaf, whole, self._made)
        return norm if norm is not None and self._is_closed(root, norm) else None

    def _is_closed(self, root: int, norm: Norm) -> bool:
        """Says whether all vectors below a norm's root are what it binds: another one may have been cancelled."""
        known = set(norm[:5])
        todo = [root]
        while todo:
            for operand in self._context.op(todo.pop()).operands:
                if operand in self._leaves:
                    if operand not in known:
                        return False
                elif operand not in known:
                    known.add(operand)
                    todo.append(operand)
        return True

    def _below(self, value: int) -> _Read | None:
        """Reads an operand that leads to the leaf."""
        if self._is_leaf(value):
            return _Read(value, {((VALUE, 1.0),): 1.0}, 0)
        if value not in self._known:
            self._known[value] = self._above(value)
        return self._known[value]

    def _above(self, value: int) -> _Read | None:
        """Reads an op above the leaf: one operand leads to the leaf, the other varies by channel alone."""
        op = self._context.op(value)
        laid = self._frame_of(value)
        if laid is None:
            return None
        if op.name in ("reshape", "permute"):
            below = self._below(op.operands[0])
            return None if below is None or below.depth >= DEPTH else below._replace(depth=below.depth + 1)
        if op.name not in ("add", "sub", "mul", "div"):
            return None
        leaf, depth = None, 0
        parts: list[Polynomial] = []
        for operand in op.operands:
            if self._frame_of(operand) is None:
                part = self._vector(operand, *laid, 0)
                if part is None:
                    return None
                parts.append(part)
                continue
            below = self._below(operand)
            if below is None or below.depth >= DEPTH or (leaf is not None and leaf != below.leaf):
                return None
            leaf, depth = below.leaf, max(depth, below.depth + 1)
            parts.append(below.polynomial)
        polynomial = None if leaf is None else _combined(op.name, parts[0], parts[1])
        return None if polynomial is None or leaf is None else _Read(leaf, polynomial, depth)

    def _vector(self, value: int, frame: Frame, channels: int, depth: int) -> Polynomial | None:
        """Reads a value that varies by channel alone, or a number."""
        number = _number(self._context, value)
        if number is not None:
            return {(): number} if number else {}
        found = channel_vector(self._context, frame, channels, value)
        if found is None:
            return None
        op = self._context.op(found)
        if op.name in _ARITHMETIC and depth < DEPTH:
            inner = flat_frame(op.type.shape)
            parts = [self._vector(operand, inner, channels, depth + 1) for operand in op.operands]
            read = [part for part in parts if part is not None]
            if len(read) == len(parts):
                combined = _applied(op.name, read[0]) if len(read) == 1 else _combined(op.name, read[0], read[1])
                if combined is not None:
                    self._made[frozenset(combined.items())] = found
                    return combined
        self._leaves.add(found)
        return {((found, 1.0),): 1.0}


class _Read(NamedTuple):
    """What a value is: a polynomial of one leaf, so many ops above it."""

    leaf: int
    polynomial: Polynomial
    depth: int


def channel_vector(context: Context, frame: Frame, channels: int, value: int) -> int | None:
    """Finds the value behind `value`, the deepest, with one element per channel; None where it varies otherwise."""
    for candidate in _chain(context, value):
        op = context.op(candidate)
        if op.type.size != channels or (channels == 1 and op.name == "constant"):
            continue  # a number is no vector of one
        view = context.view(value)
        if view.base != candidate:
            view = Cut(context.tape, context.views, frozenset((candidate,))).of(value)
        if view.base == candidate and _follows(view, frame):
            return candidate
    return None


def flat_frame(shape: Sequence[int]) -> Frame:
    """Gives the frame of a vector of channels, whatever its shape: its row-major index is the channel."""
    weights = [1] * len(shape)
    for k in reversed(range(len(shape) - 1)):
        weights[k] = weights[k + 1] * shape[k + 1]
    return tuple((new_tuple(Digit, (e, (w,))),) if e != 1 else () for e, w in zip(shape, weights, strict=True))


def _norm(leaf: int, polynomial: Polynomial, made: Mapping[_Key, int]) -> Norm | None:
    """Reads `A * y + B`; `made` gives the vectors that are made of others, by what they are made of."""
    slope: Polynomial = {}
    shift: Polynomial = {}
    for monomial, coefficient in polynomial.items():
        power = dict(monomial).get(VALUE, 0.0)
        if power == 1:
            slope[tuple([a for a in monomial if a[0] != VALUE])] = coefficient
        elif power == 0:
            shift[monomial] = coefficient
        else:
            return None
    roots = {atom for monomial in slope for atom, power in monomial if isinstance(atom, tuple) and power == -HALF}
    if len(roots) != 1:
        return None
    (root,) = roots
    scale, centre = _taken(slope, root), _taken(shift, root)
    inside = dict(root)
    epsilon = inside.pop((), None)
    if slope or epsilon is None or epsilon <= 0:
        return None
    variance = _vector(inside, made)
    factor = None if scale == {(): 1.0} else _vector(scale, made)
    centred = _quotient({monomial: -coefficient for monomial, coefficient in centre.items()}, scale)
    mean = None if centred is None else _vector(centred, made)
    summand = _vector(shift, made) if shift else None
    if variance is None or mean is None or (factor is None and scale != {(): 1.0}) or (shift and summand is None):
        return None
    return Norm(leaf, mean, variance, factor, summand, epsilon)


def _has_root(polynomial: Polynomial) -> bool:
    return any(isinstance(atom, tuple) and power == -HALF for monomial in polynomial for atom, power in monomial)


def _inserted(polynomial: Polynomial, value: Polynomial) -> Polynomial | None:
    """Gives what a polynomial is where its value is one itself."""
    out: Polynomial | None = {}
    for monomial, coefficient in polynomial.items():
        power = dict(monomial).get(VALUE, 0.0)
        if power not in (0, 1) or out is None:
            return None
        part: Polynomial | None = {tuple([a for a in monomial if a[0] != VALUE]): coefficient}
        if power:
            part = _product(part, value) if part is not None else None
        out = None if part is None else _combined("add", out, part)
    return out


def _taken(polynomial: Polynomial, root: Atom) -> Polynomial:
    """Takes what is divided by the root out of a polynomial, and gives what is divided."""
    divided = [monomial for monomial in polynomial if (root, -HALF) in monomial]
    return {tuple([a for a in monomial if a[0] != root]): polynomial.pop(monomial) for monomial in divided}


def _vector(polynomial: Polynomial, made: Mapping[_Key, int]) -> int | None:
    """Gives the one vector that a polynomial is."""
    if len(polynomial) == 1:
        ((monomial, coefficient),) = polynomial.items()
        if coefficient == 1.0 and len(monomial) == 1 and isinstance(monomial[0][0], int) and monomial[0][1] == 1:
            return monomial[0][0]
    return made.get(frozenset(polynomial.items()))


def _quotient(product: Polynomial, divisor: Polynomial) -> Polynomial | None:
    """Divides by a polynomial without a rest: greatest terms by greatest ones, in one order of all monomials."""
    atoms = sorted({atom for one in (product, divisor) for monomial in one for atom, _ in monomial}, key=repr)

    def place(monomial: Monomial) -> tuple[float, ...]:
        powers = dict(monomial)
        return tuple([powers.get(atom, 0.0) for atom in atoms])

    first = max(divisor, key=place)
    inverse: Polynomial = {tuple([(atom, -power) for atom, power in first]): 1 / divisor[first]}
    left = dict(product)
    quotient: Polynomial = {}
    while left and len(quotient) < TERMS:
        greatest = max(left, key=place)
        part = _product({greatest: left[greatest]}, inverse)
        times = None if part is None else _product(part, divisor)
        rest = None if times is None else _combined("sub", left, times)
        if part is None or rest is None or greatest in rest:
            return None  # rounding: what is left is no zero
        quotient |= part
        left = rest
    return None if left else quotient


def _combined(name: str, a: Polynomial, b: Polynomial) -> Polynomial | None:
    if name in ("add", "sub"):
        sign = 1.0 if name == "add" else -1.0
        out = dict(a)
        for monomial, coefficient in b.items():
            out[monomial] = out.get(monomial, 0.0) + sign * coefficient
        return _kept(out)
    if name == "mul":
        return _product(a, b)
    if name == "div":
        inverse = _power(b, -1.0)
        return None if inverse is None else _product(a, inverse)
    exponent = b.get((), 0.0) if set(b) <= {()} else 0.0
    return _power(a, exponent) if abs(exponent) in (0.5, 1.0) else None


def _applied(name: str, a: Polynomial) -> Polynomial | None:
    if name == "neg":
        return {monomial: -coefficient for monomial, coefficient in a.items()}
    return _power(a, HALF if name == "sqrt" else -HALF)


def _product(a: Polynomial, b: Polynomial) -> Polynomial | None:
    out: Polynomial = {}
    for first, x in a.items():
        for second, y in b.items():
            if not first or not second:
                monomial = first or second
            else:
                powers = dict(first)
                for atom, power in second:
                    powers[atom] = powers.get(atom, 0.0) + power
                left = [(k, p) for k, p in powers.items() if p]
                monomial = tuple(sorted(left, key=repr) if len(left) > 1 else left)
            out[monomial] = out.get(monomial, 0.0) + x * y
    return _kept(out)


def _power(a: Polynomial, exponent: float) -> Polynomial | None:
    """Raises to a power; a sum under a root becomes an atom of its own."""
    if not a:
        return None
    if len(a) == 1:
        ((monomial, coefficient),) = a.items()
        if coefficient > 0 and (exponent.is_integer() or not monomial or isinstance(monomial[0][0], tuple)):
            raised = tuple((atom, power * exponent) for atom, power in monomial)
            return {raised: float(coefficient**exponent)}
        if coefficient < 0 and exponent == -1:
            return {tuple((atom, -power) for atom, power in monomial): 1 / coefficient}
    atom = tuple(sorted(a.items(), key=repr))
    return {((atom, exponent),): 1.0}


def _kept(terms: Polynomial) -> Polynomial | None:
    kept = {monomial: coefficient for monomial, coefficient in terms.items() if coefficient}
    return kept if len(kept) <= TERMS else None


def _number(context: Context, value: int) -> float | None:
    view = context.view(value)
    op = context.op(view.base)
    if op.name != "constant" or view.bounds or isinstance(op.attributes["value"], np.ndarray):
        return None
    return float(op.attributes["value"])


def _chain(context: Context, value: int) -> list[int]:
    """Lists a value and what it moves, the deepest first."""
    chain = [value]
    base = context.view(value).base
    while chain[-1] != base and context.op(chain[-1]).operands:
        chain.append(context.op(chain[-1]).operands[0])
    return chain[::-1]


def _follows(view: View, frame: Frame) -> bool:
    """Says whether a view reads its base, row-major, at the channel that the frame gives."""
    if any(view.offsets) or not is_whole(view):
        return False
    return _runs_along(view.base_shape, view.axes, frame)


@lru_cache(64)
def _runs_along(shape: tuple[int, ...], axes: tuple[Digits, ...], frame: Frame) -> bool:
    """Says so of axes over a base of this shape; the vectors of one norm lie alike."""
    weights, weight = [], 1
    for extent in reversed(shape):
        weights.append(weight)
        weight *= extent
    weights.reverse()
    for mine, theirs in zip(frame, axes, strict=True):
        flat = tuple(
            [new_tuple(Digit, (extent, (sum(map(_times, weights, coefficients)),))) for extent, coefficients in theirs]
        )
        if mine == flat:
            continue
        pairs = shared_digits(mine, flat)
        if pairs is None or any(left != right for _, left, right in pairs):
            return False
    return True
