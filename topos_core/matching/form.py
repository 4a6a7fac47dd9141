"""Forms: values as a reduction of one view, or of a product of two."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

import numpy as np

from topos_core.matching.affine import Digits
from topos_core.matching.tuples import new_tuple
from topos_core.matching.view import View
from topos_core.tape.type import INTEGERS, numpy_dtype

Operation = Literal["sum", "max", "min"]

FOLDS: Final[dict[str, Operation]] = {"add": "sum", "maximum": "max", "minimum": "min"}
REDUCTIONS: Final[dict[str, Operation]] = {"sum": "sum", "max": "max", "min": "min"}
JOINT: Final = -1  # the base of a joint view, which is no value


class Form(NamedTuple):
    """`operation` over `reduced` of the product of the operands.

    Args:
        joint: One view over both operands' bases: their index forms, then their bounds, operand by operand. Its axes
            are the value's.
        reduced: Digits of the reduction, with coefficients in the same forms.
        operation: None where nothing is reduced (a plain view or product).
        bases: The operands' base values: one (a fold) or two (a contraction), the smaller value first.
        ranks: How many index forms each operand has.
        guards: How many bounds each operand has.
    """

    joint: View
    reduced: Digits
    operation: Operation | None
    bases: tuple[int, ...]
    ranks: tuple[int, ...]
    guards: tuple[int, ...]

    @property
    def is_product(self) -> bool:
        """Says whether two operands are multiplied."""
        return len(self.bases) == 2


class OffGrid(NamedTuple):
    """A fold whose terms are alike but whose offsets lie on no grid.

    Args:
        terms: The terms, in the order of their views.
        views: Their views, or joint views where each is a product.
        ranks: As in `Form`.
    """

    terms: tuple[int, ...]
    views: tuple[View, ...]
    ranks: tuple[int, ...]

    @property
    def is_product(self) -> bool:
        """Says whether the terms are products."""
        return len(self.ranks) == 2


def neutral(operation: Operation, dtype: str) -> float | int:
    """Gives the number that a reduction may read without changing its result."""
    if operation == "sum":
        return 0.0
    if dtype in INTEGERS:
        limits = np.iinfo(numpy_dtype(dtype))
        return int(limits.min if operation == "max" else limits.max)
    return -np.inf if operation == "max" else np.inf


def leaf(view: View) -> Form:
    """Gives the form of a plain view."""
    return new_tuple(Form, (view, (), None, (view.base,), (len(view.base_shape),), (len(view.bounds),)))
