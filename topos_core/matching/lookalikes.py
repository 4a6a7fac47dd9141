"""Look-alikes that several patterns know, each worded once: what the pattern needs and what stands there instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from topos_core.matching.declared import Lookalike


def epsilon_outside_root(formula: Callable[..., Any]) -> Lookalike:
    """Gives the look-alike of a norm by the variance that adds epsilon to the deviation."""
    return Lookalike(
        formula,
        "eps-outside-root",
        "epsilon added to the variance, under the root",
        "epsilon added to the standard deviation",
    )


def one_pass_variance(*formulas: Callable[..., Any]) -> tuple[Lookalike, ...]:
    """Gives the look-alikes of a norm whose variance is a difference of means."""
    return tuple(
        Lookalike(
            formula,
            "one-pass-variance",
            "the mean of (x - mean)^2",
            "mean(x^2) - mean^2, which cancels where the mean is large",
        )
        for formula in formulas
    )


def epsilon_in_sum(formula: Callable[..., Any], expected: str, excluded: frozenset[str] = frozenset()) -> Lookalike:
    """Gives the look-alike of a softmax that keeps its sum of powers, shifted by the maximum, from 0."""
    return Lookalike(
        formula,
        "eps-in-sum",
        expected,
        "a constant added to the sum, which is never 0 once the maximum is subtracted",
        excluded=excluded,
        constants=("epsilon",),
    )
