"""Arithmetic in a pair of prime fields, in which a formula with exp, log and roots is still exact.

A number is a pair (p mod P, q mod Q) with P = 2 Q + 1. The squares modulo P are a group of order Q, so exp maps q to
W^q and turns sums into products, as the real one does; log goes back by a table. Squares stand for the positive
numbers: P and Q are 3 modulo 4, so -1 is none, and the root of a square that is itself a square is `x^((P + 1) / 4)`, which
keeps products. After exp the second lane is unknown, after log the first. The idea is Mirage's (Wu et al. 2024,
arXiv 2405.05751, section 5); roots and logs are ours.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

import numpy as np

P: Final = 2147024879
Q: Final = 1073512439
"""The largest Q below 2^30 for which 2, 3, 5, 7, 11 and 13 are squares modulo both: roots of small integers exist."""
W: Final = 4
"""Generates the squares modulo P."""

FINITE, LOW, HIGH, BAD = 0, -1, 1, 2
_STEPS: Final = 1 << 11
_END: Final = 1 << 62
"""Beyond every place in an order."""

Lane = np.ndarray | None


class Element(NamedTuple):
    """An array of numbers; its arrays broadcast against each other.

    Args:
        p, q: Residues, int64; None where a lane is unknown.
        state: FINITE, LOW (minus infinity), HIGH or BAD (outside of the model: this sample says nothing); None where all
            are finite.
        sign: 1 or -1 where it is known of all of them (constants), else 0.
    """

    p: Lane
    q: Lane
    state: np.ndarray | None = None
    sign: int = 0


def whole(numbers: np.ndarray | int) -> Element:
    """Gives integers."""
    array = np.asarray(numbers, np.int64)
    return Element(array % P, array % Q, None, 1 if array.ndim == 0 and array > 0 else 0)


def ratio(numerator: int, denominator: int) -> Element:
    """Gives a rational number."""
    p, q = (numerator * pow(denominator, -1, m) % m for m in (P, Q))
    return Element(
        np.asarray(p, np.int64), np.asarray(q, np.int64), None, 1 if numerator > 0 else -1 if numerator else 0
    )


def infinity(sign: int) -> Element:
    """Gives an infinity."""
    zero = np.zeros((), np.int64)
    return Element(zero, zero, np.asarray(LOW if sign < 0 else HIGH, np.int8), sign)


def centred(lane: np.ndarray, modulus: int) -> np.ndarray:
    """Gives the residue nearest to zero: a small integer is itself."""
    return np.where(lane > modulus // 2, lane - modulus, lane)


def negative(a: Element) -> Element:
    """Gives -a."""
    state = None if a.state is None else np.where(a.state == BAD, a.state, -a.state)
    return Element(
        _lane(-a.p if a.p is not None else None, P), _lane(-a.q if a.q is not None else None, Q), state, -a.sign
    )


def add(a: Element, b: Element) -> Element:
    """Gives a + b; infinities of both signs are BAD."""
    p = None if a.p is None or b.p is None else (a.p + b.p) % P
    q = None if a.q is None or b.q is None else (a.q + b.q) % Q
    state = None
    if a.state is not None or b.state is not None:
        left, right = _states(a, b)
        state = np.clip(left + right, -1, 1)
        state = np.where((left == BAD) | (right == BAD) | (left * right == -1), BAD, state)
    return Element(p, q, state, a.sign if a.sign == b.sign else 0)


def multiply(a: Element, b: Element) -> Element:
    """Gives a * b; an infinity needs a factor of known sign."""
    p = None if a.p is None or b.p is None else a.p * b.p % P
    q = None if a.q is None or b.q is None else a.q * b.q % Q
    state = None
    if a.state is not None or b.state is not None:
        left, right = _states(a, b)
        left_sign = np.where(left != FINITE, left, a.sign)
        right_sign = np.where(right != FINITE, right, b.sign)
        state = np.where((left == FINITE) & (right == FINITE), FINITE, left_sign * right_sign)
        unknown = ((left != FINITE) | (right != FINITE)) & (left_sign * right_sign == 0)
        state = np.where((left == BAD) | (right == BAD) | unknown, BAD, state)
    return Element(p, q, state, a.sign * b.sign)


def inverse(a: Element) -> Element:
    """Gives 1 / a; 0 where a is infinite, BAD where it is zero."""
    p = None if a.p is None else power_of(a.p, P - 2, P)
    q = None if a.q is None else power_of(a.q, Q - 2, Q)
    zero = _zero(a)
    state = a.state
    if state is not None:
        endless = (state == LOW) | (state == HIGH)
        p, q = (None if lane is None else np.where(endless, 0, lane) for lane in (p, q))
        state = np.where(endless, FINITE, state)
    return marked(Element(p, q, state, a.sign), zero if state is None else zero & (a.state == FINITE))


def power_of(base: np.ndarray, exponent: int, modulus: int) -> np.ndarray:
    """Gives base ** exponent modulo a prime."""
    result = np.ones_like(base)
    square = base % modulus
    while exponent:
        if exponent & 1:
            result = result * square % modulus
        square = square * square % modulus
        exponent >>= 1
    return result


def exponential(a: Element) -> Element:
    """Gives exp(a) from the second lane, into the first; `a.q` must be known."""
    assert a.q is not None
    result = np.ones_like(a.q)
    step = W
    for bit in range(Q.bit_length()):
        result = np.where(a.q >> bit & 1, result * step % P, result)
        step = step * step % P
    state = a.state
    if state is not None:
        result = np.where(state == LOW, 0, result)
        state = np.where(state == LOW, FINITE, state)
    return Element(result, None, state, 1)


def logarithm(a: Element, lenient: bool = False) -> Element:
    """Gives log(a) from the first lane, into the second; -inf at 0. `a.p` must be known.

    Where a is no square the answer is BAD; if `lenient`, it is log(-a): products stay sums, but exp does not lead back.
    """
    assert a.p is not None
    own = a.p
    if lenient:
        own = np.where(power_of(own, (P - 1) // 2, P) == P - 1, P - own, own)
    values, places = np.unique(own, return_inverse=True)
    found = _discrete_log(values)[places].reshape(a.p.shape)
    state = np.zeros(a.p.shape, np.int8) if a.state is None else np.broadcast_to(a.state, a.p.shape)
    state = np.where((state == FINITE) & (a.p == 0), LOW, state)
    state = np.where((state == LOW) & (a.p != 0), BAD, state)
    state = np.where((found < 0) & (state == FINITE), BAD, state)
    return Element(None, np.where(found < 0, 0, found), state if state.any() else None)


def root(a: Element, lenient: bool = False) -> Element:
    """Gives sqrt(a): the root that is itself a square.

    Where a is no square in a known lane the answer is BAD; if `lenient`, it is sqrt(-a): products keep their roots, but
    the square of a root is not what it was.
    """
    p = None if a.p is None else power_of(a.p, (P + 1) // 4, P)
    q = None if a.q is None else power_of(a.q, (Q + 1) // 4, Q)
    if lenient:
        return Element(p, q, a.state, 1)
    wrong = np.zeros((), bool)
    for lane, own, modulus in ((p, a.p, P), (q, a.q, Q)):
        if lane is not None and own is not None:
            wrong = wrong | (lane * lane % modulus != own)
    return marked(Element(p, q, a.state, 1), wrong)


def choose(condition: np.ndarray, a: Element, b: Element) -> Element:
    """Gives a where the condition holds, else b."""
    p = None if a.p is None or b.p is None else np.where(condition, a.p, b.p)
    q = None if a.q is None or b.q is None else np.where(condition, a.q, b.q)
    state = None
    if a.state is not None or b.state is not None:
        state = np.where(condition, *_states(a, b))
    return Element(p, q, state)


def marked(a: Element, bad: np.ndarray) -> Element:
    """Marks further places as BAD."""
    if not bad.any():
        return a
    return a._replace(state=np.where(bad, BAD, FINITE if a.state is None else a.state))


def mixed(lane: np.ndarray, salt: int) -> np.ndarray:
    """Gives 64 random bits per element that depend on nothing else (splitmix64)."""
    with np.errstate(over="ignore"):
        x = lane.astype(np.uint64) + np.uint64(salt & 0xFFFFFFFFFFFFFFFF)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(x ^ (x >> np.uint64(31)))


def drawn(lane: np.ndarray, salt: int) -> Element:
    """Draws a number per element."""
    p = (mixed(lane, salt) % np.uint64(P)).astype(np.int64)
    q = (mixed(lane, salt ^ 0x5DEECE66D1234567) % np.uint64(Q)).astype(np.int64)
    return Element(p, q)


def rank(a: Element, salt: int) -> np.ndarray:
    """Places numbers in a random order in which negation turns everything round and zero stands in the middle.

    What holds in every such order holds for maxima and minima of real numbers.
    """
    lane, modulus = (a.p, P) if a.p is not None else (a.q, Q)
    assert lane is not None
    near = centred(lane, modulus)
    place = (mixed(np.abs(near), salt) >> np.uint64(3)).astype(np.int64) | 1
    place = np.sign(near) * place
    if a.state is not None:
        place = np.where(a.state == LOW, -_END, np.where(a.state == HIGH, _END, place))
    return place


def _lane(lane: Lane, modulus: int) -> Lane:
    return None if lane is None else lane % modulus


def _states(a: Element, b: Element) -> tuple[np.ndarray, np.ndarray]:
    zero = np.zeros((), np.int8)
    return (zero if a.state is None else a.state), (zero if b.state is None else b.state)


def _zero(a: Element) -> np.ndarray:
    return np.asarray((a.p if a.p is not None else a.q) == 0)


def _discrete_log(values: np.ndarray) -> np.ndarray:
    """Gives k with W^k equal to each value modulo P, -1 where there is none: giant steps in a table, baby steps by hand."""
    powers, exponents = _giant_steps()
    found = np.full(values.shape, -1, np.int64)
    back = pow(W, P - 2, P)
    at = values % P
    for step in range(_STEPS):
        place = np.minimum(np.searchsorted(powers, at), len(powers) - 1)
        found = np.where((powers[place] == at) & (found < 0), (exponents[place] + step) % Q, found)
        at = at * back % P
    return found


@cache
def _giant_steps() -> tuple[np.ndarray, np.ndarray]:
    """Lists W^(k * steps) for all k, sorted, and the exponents."""
    count = -(-Q // _STEPS)
    factor = pow(W, _STEPS, P)
    powers = np.ones(1, np.int64)
    while len(powers) < count:
        powers = np.concatenate([powers, powers * pow(factor, len(powers), P) % P])
    powers = powers[:count]
    order = np.argsort(powers)
    return powers[order], order.astype(np.int64) * _STEPS
