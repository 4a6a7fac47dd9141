"""One call of an ATen op, as the formulas of `aten/` see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from topos_core.importers.torch_export.dtypes import name_of
from topos_core.recording import constant, elementwise
from topos_core.recording.recorder import Recorder
from topos_core.recording.value import Value
from topos_core.tape.type import TensorType

Handler: TypeAlias = Callable[..., Any]
Table: TypeAlias = Mapping[str, Handler]


class NoFormula(Exception):
    """A call that has no formula with these arguments; it becomes an opaque op, and the message its note."""


@dataclass(slots=True)
class Call:
    """A call: its results' types, and what it writes into besides them.

    Args:
        recorder: Where ops are recorded.
        name: `aten.add`, without the overload.
        results: The types of its results; None for one that is no tensor, or whose type topos lacks.
        writes: New values for arguments by position: running statistics, in-place operands.
    """

    recorder: Recorder
    name: str
    results: Sequence[TensorType | None]
    writes: dict[int, Value] = field(default_factory=dict)

    @property
    def type(self) -> TensorType:
        """Gives the first result's type."""
        first = self.results[0]
        if first is None:
            raise NoFormula("its result has no type in topos")
        return first

    @property
    def dtype(self) -> str:
        """Gives the first result's dtype."""
        return self.type.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Gives the first result's extents."""
        return self.type.shape

    def cast(self, x: Any, dtype: str | None = None) -> Any:
        """Casts a value to a dtype, the result's where none is named; numbers stay weak."""
        return elementwise.cast(x, dtype or self.dtype) if isinstance(x, Value) else x

    def value(self, x: Any, dtype: str | None = None, shape: tuple[int, ...] = ()) -> Value:
        """Gives a value of a number, in the result's dtype where none is named."""
        if isinstance(x, Value):
            return elementwise.cast(x, dtype or self.dtype)
        return constant.splat(self.recorder, x, dtype or self.dtype, shape)

    def named(self, dtype: Any) -> str:
        """Gives topos's name of a torch dtype that an argument holds."""
        name = name_of(dtype)
        if name is None:
            raise NoFormula(f"topos has no {dtype}")
        return name
