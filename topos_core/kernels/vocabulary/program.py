"""What an expression's kernel is compiled from: steps, how operands lie along the loops, and nothing about extents.

The loops are rows (axes that a reduction keeps, or all but the last), blocks (reduced axes but the last) and the inner one,
which is dense or repeats. Its text is the kernel's variant.
"""

from __future__ import annotations

import json
from typing import Final, Literal, NamedTuple

from topos_core.matching.expression import REDUCTIONS

Form = Literal["map", "rows", "columns"]
"""No reduction; one along the inner loop; one along the blocks, for inner positions side by side."""

HALVES: Final = ("f16", "bf16")
"""Float dtypes that are f32 in registers."""


class Operand(NamedTuple):
    """A binding: its dtype, and whether it varies along the inner loop."""

    dtype: str
    inner: bool


class Constant(NamedTuple):
    """A number: its dtype, and whether it is a plain limit of floats.

    `limits` lists `maximum` where it is neither NaN nor -0, `minimum` where it is neither NaN nor +0.
    """

    dtype: str
    limits: tuple[str, ...]


class ProgramStep(NamedTuple):
    """One op: operands are `x0` (bindings), `c0` (constants), `s0` (earlier steps); `kept` as in `Step`."""

    op: str
    operands: tuple[str, ...]
    dtype: str
    detail: str
    kept: bool


class Program(NamedTuple):
    """An expression without extents.

    Args:
        form: How the loops stand to the reduction.
        exact: Whether every op rounds as recorded; else products and sums may contract.
        partial: Whether accumulators are stored per item, for a caller that combines them.
        operands, constants: By number.
        steps: In an order in which they can run.
        results: Numbers of steps that are stored.
    """

    form: Form
    exact: bool
    partial: bool
    operands: tuple[Operand, ...]
    constants: tuple[Constant, ...]
    steps: tuple[ProgramStep, ...]
    results: tuple[int, ...]

    @property
    def reduction(self) -> int | None:
        """Gives the number of the step that reduces."""
        return next((k for k, step in enumerate(self.steps) if step.op in REDUCTIONS), None)

    def text(self) -> str:
        """Writes it on one line."""
        return json.dumps(self, separators=(",", ":"))

    def dtype_of(self, name: str) -> str:
        """Gives the dtype of an operand, a constant or a step."""
        number = int(name[1:])
        match name[0]:
            case "x":
                return self.operands[number].dtype
            case "c":
                return self.constants[number].dtype
        return self.steps[number].dtype


def parse(text: str) -> Program:
    """Reads what `Program.text` wrote."""
    form, exact, partial, operands, constants, steps, results = json.loads(text)
    return Program(
        form, exact, partial, tuple(Operand(*operand) for operand in operands),
        tuple(Constant(dtype, tuple(limits)) for dtype, limits in constants),
        tuple(ProgramStep(op, tuple(read), dtype, detail, kept) for op, read, dtype, detail, kept in steps),
        tuple(results),
    )  # fmt: skip
