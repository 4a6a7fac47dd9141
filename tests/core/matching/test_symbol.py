import math

import pytest

from topos_core.matching.symbol import Symbol, power_of, quotient, real_power

F = Symbol.named("f")


@pytest.mark.parametrize("value", [3.0, -3.0, 0.5, -0.5])
@pytest.mark.parametrize(
    ("monomial", "computed"),
    [
        (F * F**-1, lambda f: 1.0),
        (F * (F**2) ** -0.5, lambda f: f / math.sqrt(f * f)),
        ((F**2) ** 0.5, lambda f: abs(f)),
        (F**3, lambda f: f**3),
        (F * F, lambda f: f * f),
        (-F, lambda f: -f),
        (2.0 * F / (F**2) ** 1.5, lambda f: 2 * f / abs(f) ** 3),
    ],
)
def test_a_monomial_is_what_it_stands_for_whatever_the_sign(monomial, computed, value):
    number, left = monomial.reduced({"f": value})
    assert left == []
    assert number == pytest.approx(computed(value))


def test_what_is_open_says_whether_its_sign_counts():
    assert (F * (F**2) ** -0.5).reduced({}) == (1.0, [("f", 0.0, True)])
    assert ((F**2) ** 0.5).reduced({}) == (1.0, [("f", 1.0, False)])
    assert (3.0 * F).reduced({}) == (3.0, [("f", 1.0, True)])


def test_monomials_of_other_signs_differ():
    assert F != (F**2) ** 0.5
    assert F == F**2 * F**-1
    assert [repr(F), repr((F**2) ** 0.5), repr(F * (F**2) ** -0.5)] == ["f", "|f|", "sign(f)"]


def test_powers_and_quotients_that_are_no_numbers_are_nan():
    assert math.isnan(quotient(1.0, 0.0))
    assert math.isnan(quotient(F, 0.0))
    assert math.isnan(power_of(0.0, -1.0))
    assert math.isnan(power_of(1e-320, -1.0))
    assert math.isnan(real_power(-2.0, 0.5))
