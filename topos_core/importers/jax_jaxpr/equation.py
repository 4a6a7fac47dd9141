"""One equation as a primitive's translation sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from topos_core.recording.recorder import Recorder
from topos_core.recording.value import Value
from topos_core.tape.type import TensorType


class Unsupported(Exception):
    """The equation stays opaque; the message says why."""


@dataclass(frozen=True, slots=True)
class Equation:
    """One equation.

    Args:
        recorder: What it is recorded with.
        name: The primitive's.
        params: Its settings.
        operands: Its operands; literals are constants, scalars where JAX has them so.
        literals: The number of each operand that is a literal, else None.
        types: The types of its results.
    """

    recorder: Recorder
    name: str
    params: Mapping[str, Any]
    operands: tuple[Value, ...]
    literals: tuple[Any, ...]
    types: tuple[TensorType, ...]

    @property
    def x(self) -> Value:
        """Gives the first operand."""
        return self.operands[0]

    @property
    def result(self) -> TensorType:
        """Gives the type of the first result."""
        return self.types[0]


def number_of(value: Value) -> np.ndarray | None:
    """Gives the number that a value without axes is known to be."""
    op = value.recorder.ops[value.index]
    return np.asarray(op.attributes["value"]) if op.name == "constant" and not op.type.shape else None


Translate: TypeAlias = Callable[[Equation], Any]  # a value, or a sequence of values
