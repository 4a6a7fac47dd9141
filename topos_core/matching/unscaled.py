"""Forms that look through divisions by a count: a sum of averages is a sum, and its factor is kept beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from topos_core.matching.context import Context
from topos_core.matching.contraction import Forms
from topos_core.matching.form import Form, OffGrid
from topos_core.tape.type import FLOATS


class Unscaled(Forms):
    """The forms of a tape on which a sum that is divided by a number, and read once, is that sum."""

    def __init__(self, context: Context) -> None:
        super().__init__(context.tape, context.readers, context.views)
        self._context = context
        self._watched = context.observed.union(context.tape.results)

    def average(self, root: int) -> tuple[Form | None, float]:
        """Gives the sum that a value multiplies or divides, through averages inside it, and the factor of all of them.

        None where the value is no sum by a number, or where it holds no average.
        """
        total, scale = self._scaled(root)
        if total is None:
            return None, 1.0
        value = self._source(total)
        depth = 0
        while value is not None:
            inner, factor = self._scaled(value)
            if inner is None or not self._is_inside(value, inner):
                break
            scale *= factor
            value = self._source(inner)
            depth += 1
        form = self.of(total) if depth else None
        return (form if isinstance(form, Form) and form.operation == "sum" and not form.is_product else None), scale

    def _form(self, value: int) -> Form | OffGrid:
        total, _ = self._scaled(value)
        if total is not None and self._is_inside(value, total):
            return self.of(total)
        return super()._form(value)

    def _is_structured(self, value: int) -> bool:
        return super()._is_structured(value) or self._scaled(value)[0] is not None

    def _scaled(self, value: int) -> tuple[int | None, float]:
        """Reads a value as a sum by a number."""
        op = self.tape.ops[value]
        if op.name not in ("mul", "div"):
            return None, 1.0
        sides = [op.operands] if op.name == "div" else [op.operands, op.operands[::-1]]
        for total, number in sides:
            factor = splat(self._context, number) if self.tape.ops[total].name == "sum" else None
            if factor:
                return total, float(1 / factor if op.name == "div" else factor)
        return None, 1.0

    def _source(self, total: int) -> int | None:
        """Gives the value that a sum reads, below movement."""
        base = self._context.view(self.tape.ops[total].operands[0]).base
        return base if base >= 0 else None

    def _is_inside(self, value: int, total: int) -> bool:
        """Says whether nobody else reads a sum and its average, and whether f32 or more holds the average."""
        context = self._context
        return (
            self.tape.ops[value].type.dtype in ("f32", "f64")
            and context.readers[total] == [value]
            and len(context.readers[value]) == 1
            and self._watched.isdisjoint((value, total))
        )


def splat(context: Context, value: int) -> Any:
    """Gives the float that a value is at every position; None where it is none."""
    view = context.view(value)
    if view.base < 0:
        return None
    op = context.op(view.base)
    if op.name != "constant" or view.bounds or isinstance(op.attributes["value"], np.ndarray):
        return None
    return op.attributes["value"] if op.type.dtype in FLOATS else None


def unscaled_forms(context: Context) -> Unscaled:
    """Makes such forms of a tape; `Context.once` keeps them."""
    return Unscaled(context)
