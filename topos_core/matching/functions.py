"""What elementwise ops mean in the pair of fields, and which of them are only functions without a meaning.

Ring ops, exp, log, roots and rational powers have one. tanh has one while its operand's second lane is known. Any other
function is an oracle: equal operands give equal results and nothing else is known of it. Comparisons and extremes go by
a random order. Whatever is not exact is written into `assumed`: two sides that agree are equal all the same, two that
differ may still be equal.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np

from topos_core.matching.field import (
    BAD,
    Element,
    P,
    Q,
    add,
    centred,
    choose,
    drawn,
    exponential,
    inverse,
    logarithm,
    marked,
    mixed,
    multiply,
    negative,
    power_of,
    rank,
    root,
    whole,
)
from topos_core.tape.type import FLOATS

UNARY: Final = frozenset(
    ("neg", "abs", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "tanh", "erf", "sin", "cos", "floor", "ceil", "round",
     "sign", "logical_not")
)  # fmt: skip
_ODD: Final = ("tanh", "erf", "sin", "round")
_ORDER: Final = ("f16", "bf16", "f32", "f64")
_WIDER: Final = {"f16": ("f32", "f64"), "bf16": ("f32", "f64"), "f32": ("f64",), "f64": ()}


class Unprovable(Exception):
    """Something that has no meaning in the model; says what."""


class Functions:
    """The functions of one comparison; both sides must use the same.

    Args:
        seed: Chooses the order and the oracles.
        lenient: Whether roots and logs of no squares get an answer all the same.
        assumed: What was used without an exact meaning.
        infinite: Whether an infinity went in.
    """

    def __init__(self, seed: int, lenient: bool = False) -> None:
        self._seed = seed
        self._lenient = lenient
        self.assumed: set[str] = set()
        self.infinite = False

    def unary(self, name: str, a: Element, dtype: str) -> Element:
        """Applies an op of one operand."""
        match name:
            case "neg":
                return negative(a)
            case "logical_not":
                return add(whole(1), negative(a))
            case "exp":
                return exponential(a) if a.q is not None else self.oracle("exp", a)
            case "expm1":
                return add(self.unary("exp", a, dtype), whole(-1))
            case "log":
                return logarithm(a, self._lenient) if a.p is not None else self.oracle("log", a)
            case "log1p":
                return self.unary("log", add(whole(1), a), dtype)
            case "sqrt":
                return root(a, self._lenient)
            case "rsqrt":
                return inverse(root(a, self._lenient))
            case "abs" | "sign":
                self._order(dtype)
                below = self.rank(a, dtype in FLOATS) < 0
                if name == "abs":
                    return choose(below, negative(a), a)
                return choose(below, whole(-1), choose(self.rank(a, dtype in FLOATS) > 0, whole(1), whole(0)))
            case "tanh" if a.q is not None and a.state is None:
                double = exponential(add(a, a))
                return multiply(add(double, whole(-1)), inverse(add(double, whole(1))))
            case _:
                return self._odd(name, a) if name in _ODD else self.oracle(name, a)

    def binary(self, name: str, a: Element, b: Element, dtype: str) -> Element:
        """Applies an op of two operands of one dtype."""
        match name:
            case "add" if dtype != "bool":
                return add(a, b)
            case "sub":
                return add(a, negative(b))
            case "mul":
                return multiply(a, b)
            case "and" if dtype == "bool":
                return multiply(a, b)
            case "or" | "add" if dtype == "bool":
                return add(add(a, b), negative(multiply(a, b)))
            case "xor" if dtype == "bool":
                return add(add(a, b), negative(multiply(whole(2), multiply(a, b))))
            case "div" if dtype in FLOATS:
                return multiply(a, inverse(b))
            case "maximum" | "minimum":
                self._order(dtype)
                floats = dtype in FLOATS
                above = self.rank(a, floats) >= self.rank(b, floats)
                chosen = choose(above if name == "maximum" else ~above, a, b)
                bad = [each.state == BAD for each in (a, b) if each.state is not None]
                for one in bad:
                    chosen = marked(chosen, one)
                return chosen
            case "div" | "remainder" if dtype not in FLOATS:
                return self._integer_division(name, a, b)
            case _:
                return self.oracle(name, a, b)

    def power(self, a: Element, exponent: float) -> Element:
        """Raises to a number: whole, half and quarter powers have a meaning."""
        exact = Fraction(exponent).limit_denominator(1 << 20)
        if exact.denominator in (1, 2, 4) and abs(float(exact) - exponent) <= 1e-7 * abs(exponent):
            base, denominator = a, exact.denominator
            while denominator > 1:
                base, denominator = root(base, self._lenient), denominator // 2
            size = abs(exact.numerator)
            if base.state is not None and size != 1:
                base = marked(base, base.state != 0)
            p = None if base.p is None else power_of(base.p, size, P)
            q = None if base.q is None else power_of(base.q, size, Q)
            raised = base if size == 1 else Element(p, q, base.state, base.sign if size % 2 else abs(base.sign))
            return raised if exact > 0 else inverse(raised)
        return self.oracle(f"power {exponent!r}", a)

    def compare(self, kind: str, a: Element, b: Element, floats: bool) -> Element:
        """Compares; equality is the elements' own, the rest goes by the order."""
        left, right = self.rank(a, floats), self.rank(b, floats)
        if floats:
            self.assumed.add("comparison")
        answers = {"lt": left < right, "le": left <= right, "gt": left > right, "ge": left >= right}
        answer = answers.get(kind)
        if answer is None:
            answer = left == right if kind == "eq" else left != right
        result = whole(answer.astype(np.int64))
        for each in (a, b):
            if each.state is not None:
                result = marked(result, each.state == BAD)
        return result

    def cast(self, a: Element, source: str, target: str) -> Element:
        """Converts: a wider float and a float of an integer are the number itself, a narrower one is an oracle."""
        if source == target or target in _WIDER.get(source, ()):
            return a
        if target == "bool":
            assert a.p is not None
            return whole((a.p != 0).astype(np.int64))
        if source == "bool" or source not in FLOATS:
            return a
        if target in FLOATS:
            return self.oracle(f"cast from {source} to {target}", a)
        raise Unprovable(f"a cast from {source} to {target} has no meaning in the model")

    def rank(self, a: Element, floats: bool) -> np.ndarray:
        """Places elements in the order of this comparison; integers in their own."""
        if not floats and a.p is not None:
            return centred(a.p, P)
        return rank(_known(a), self._salt("order"))

    def oracle(self, name: str, *operands: Element) -> Element:
        """Applies a function of which nothing is known."""
        self.assumed.add(name)
        salt = self._salt(name)
        lane = np.zeros((), np.int64)
        for operand in operands:
            own = operand.p if operand.p is not None else _known(operand).q
            assert own is not None
            if operand.state is not None:
                own = np.where(operand.state == 0, own, P + operand.state.astype(np.int64))
            lane = mixed(lane, salt).astype(np.int64) ^ mixed(own, salt + 1).astype(np.int64)
        found = drawn(lane, salt)
        for operand in operands:
            if operand.state is not None:
                found = marked(found, operand.state == BAD)
        return found

    def _odd(self, name: str, a: Element) -> Element:
        """Applies an oracle with f(-x) = -f(x)."""
        below = rank(_known(a), 0) < 0
        found = self.oracle(name, choose(below, negative(a), a))
        return choose(below, negative(found), found)

    def _integer_division(self, name: str, a: Element, b: Element) -> Element:
        assert a.p is not None
        assert b.p is not None
        left, right = centred(a.p, P), centred(b.p, P)
        safe = np.where(right == 0, 1, right)
        if name == "remainder":
            answer = np.remainder(left, safe)
        else:
            answer = np.sign(left) * np.sign(safe) * (np.abs(left) // np.abs(safe))
        return marked(whole(answer), right == 0)

    def _order(self, dtype: str) -> None:
        if dtype in FLOATS:
            self.assumed.add("order")

    def _salt(self, name: str) -> int:
        number = 0xCBF29CE484222325 ^ self._seed
        for letter in name.encode():
            number = (number ^ letter) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
        return number


def _known(a: Element) -> Element:
    """Gives an element that either field knows something of.

    Raises:
        Unprovable: An exponential and a logarithm were added or multiplied: each is in another field.
    """
    if a.p is None and a.q is None:
        raise Unprovable("an exponential together with a logarithm has no meaning in the model")
    return a
