"""Extents that a model leaves open: by their own names, else `INPUT_AXIS`. A sum of names is worked out: `past+seq`."""

from __future__ import annotations

import ast
import operator
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from topos_core.errors import TraceError
from topos_core.recording.spec import known_extent

_LONGEST: Final = 200
_OPERATORS: Final[Mapping[type[ast.operator], Callable[[int, int], int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


@dataclass(slots=True)
class Extents:
    """The open extents of one model.

    Args:
        given: What the caller chose, by name.
        bound: What the inputs' open dimensions are.
        missing: Names without a number, and where the model leaves them open.
    """

    given: Mapping[str, int]
    bound: dict[str, int] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def of_input(self, dim: Any, name: str, axis: int) -> int:
        """Gives the extent of an input; 1 where its name has no number, which `check` refuses afterwards."""
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            return int(dim.dim_value)
        symbol = str(dim.dim_param) or f"{name}_{axis}"
        extent = self._worked_out(symbol, self._chosen)
        if extent is None:
            for each in _names(symbol) or [symbol]:
                if self.given.get(each) is None:
                    self.missing.setdefault(each, f"axis {axis} of {name}")
            return 1
        self.bound[symbol] = extent
        self.bound.update({each: int(self.given[each]) for each in _names(symbol) if each in self.given})
        return extent

    def of_result(self, dim: Any) -> int | None:
        """Gives the extent that a model notes for a result; None where no input has its name."""
        if dim.HasField("dim_value"):
            return int(dim.dim_value) if dim.dim_value >= 0 else None
        return self._worked_out(str(dim.dim_param), self.bound.get)

    def check(self) -> None:
        """Refuses extents without a number.

        Raises:
            TraceError: TP209, with all of them.
        """
        if not self.missing:
            return
        listed = ", ".join(f"{symbol} ({where})" for symbol, where in self.missing.items())
        remedy = " ".join(f"--dim {shlex.quote(f'{symbol}=4')}" for symbol in self.missing)
        raise TraceError(f"unknown extent: the model leaves {listed} open; give numbers with {remedy}", code="TP209")

    def _chosen(self, name: str) -> int | None:
        extent = self.given.get(name)
        return None if extent is None else known_extent(name, extent)

    def _worked_out(self, symbol: str, number: Callable[[str], int | None]) -> int | None:
        chosen = number(symbol) if symbol else None
        if chosen is not None:
            return chosen
        parsed = _parsed(symbol)
        extent = None if parsed is None else _value(parsed, number)
        return None if extent is None or extent < 0 else extent


def _parsed(symbol: str) -> ast.expr | None:
    """Reads a sum, difference, product or whole quotient of names; None where a name is just a name."""
    if len(symbol) > _LONGEST or symbol.isidentifier():
        return None
    try:
        body = ast.parse(symbol, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return body if isinstance(body, ast.BinOp) and all(map(_is_read, ast.walk(body))) else None


def _is_read(node: ast.AST) -> bool:
    whole = isinstance(node, ast.Constant) and type(node.value) is int
    return whole or isinstance(node, ast.BinOp | ast.Name | ast.Load) or type(node) in _OPERATORS


def _names(symbol: str) -> list[str]:
    parsed = _parsed(symbol)
    found = () if parsed is None else ast.walk(parsed)
    return sorted({node.id for node in found if isinstance(node, ast.Name)})


def _value(node: ast.expr, number: Callable[[str], int | None]) -> int | None:
    match node:
        case ast.Name():
            return number(node.id)
        case ast.Constant():
            return int(node.value)  # type: ignore[arg-type]  # `_is_read` lets whole numbers pass alone
        case ast.BinOp():
            left, right = _value(node.left, number), _value(node.right, number)
            if left is None or right is None or (isinstance(node.op, ast.FloorDiv) and not right):
                return None
            return _OPERATORS[type(node.op)](left, right)
    return None
