"""The pair of fields obeys the laws of the real functions that it stands for."""

from __future__ import annotations

import numpy as np
import pytest

from topos_core.matching.field import (
    BAD,
    LOW,
    Element,
    P,
    Q,
    add,
    drawn,
    exponential,
    infinity,
    inverse,
    logarithm,
    multiply,
    negative,
    power_of,
    rank,
    root,
    whole,
)

A, B = drawn(np.arange(64), 1), drawn(np.arange(64), 2)


def same(a: Element, b: Element, only: np.ndarray | None = None) -> bool:
    at = slice(None) if only is None else only
    shared = [(x, y, m) for x, y, m in ((a.p, b.p, P), (a.q, b.q, Q)) if x is not None and y is not None]
    assert shared
    return all(bool(((np.broadcast_to(x - y, (64,)) % m)[at] == 0).all()) for x, y, m in shared)


def firm(*elements: Element) -> np.ndarray:
    return np.all([np.broadcast_to(np.asarray(e.state if e.state is not None else 0), 64) != BAD for e in elements], 0)


def test_small_primes_are_squares_in_both_fields():
    for prime in (2, 3, 5, 7, 11, 13):
        assert pow(prime, (P - 1) // 2, P) == pow(prime, (Q - 1) // 2, Q) == 1
    assert P == 2 * Q + 1
    assert P % 4 == Q % 4 == 3


def test_exp_turns_sums_into_products_and_log_turns_back():
    assert same(exponential(add(A, B)), multiply(exponential(A), exponential(B)))
    assert same(exponential(negative(A)), inverse(exponential(A)))
    assert same(logarithm(exponential(A)), A)


def test_log_of_a_number_that_no_exponential_gives_says_nothing():
    found = logarithm(A)
    squares = power_of(A.p, (P - 1) // 2, P) == 1
    assert 10 < squares.sum() < 54
    assert ((found.state == BAD) == ~squares).all()
    assert same(exponential(found), A, squares)


def test_roots_keep_products_and_square_back_where_they_exist():
    roots = root(A), root(B)
    both = firm(*roots)
    assert both.sum() > 0
    assert same(multiply(*roots), root(multiply(A, B)), both)
    assert same(multiply(roots[0], roots[0]), A, firm(roots[0]))


def test_the_root_of_a_square_is_not_the_number_itself():
    squared = root(multiply(A, A))
    assert not same(squared, A)


def test_infinities_follow_the_rules_and_contradictions_say_nothing():
    low = infinity(-1)
    assert add(whole(3), low).state == LOW
    assert add(infinity(1), low).state == BAD
    assert multiply(low, whole(2)).state == LOW
    assert multiply(low, A).state is not None
    assert (multiply(low, A).state == BAD).all()
    assert exponential(low).p == 0
    assert inverse(whole(0)).state == BAD
    assert (inverse(Element(np.zeros(64, np.int64), np.zeros(64, np.int64), np.full(64, LOW))).state == 0).all()


@pytest.mark.parametrize("salt", range(3))
def test_the_order_turns_round_under_negation_and_zero_stands_in_the_middle(salt):
    assert (rank(negative(A), salt) == -rank(A, salt)).all()
    assert rank(whole(0), salt) == 0
    assert rank(whole(6), salt) > 0 > rank(whole(-6), salt)
    assert (rank(infinity(1), salt) > rank(A, salt)).all()


def test_orders_differ_so_that_no_constant_is_always_in_reach():
    six = [bool((rank(A, salt) < rank(whole(6), salt)).all()) for salt in range(8)]
    assert not any(six)
