"""One node as an operator's formula sees it: operands as recorded values, shapes and axes as numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from topos_core.recording.recorder import Recorder
from topos_core.recording.value import Value

BEFORE_7: Final = "it trains (is_test=0), as before opset 7; convert the model with onnx.version_converter"


class Unsupported(Exception):
    """The node stays opaque; the message says why, and what it would take."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """A value whose type topos cannot state: a sequence, a string, an extent that only a run knows.

    `value` is an opaque op's, with a stand-in for a type; whatever reads it is opaque too.
    """

    value: Value
    why: str


Held: TypeAlias = "Value | np.ndarray | Foreign | None"


@dataclass(frozen=True, slots=True)
class Node:
    """One node.

    Args:
        recorder: What its formula records with.
        op_type, domain, opset: Which operator it is.
        attributes: By name, as Python numbers, texts, lists and arrays; graphs stay protobuf.
        held: What its operands are; None where one is left out.
        outputs: The names of its results, empty where nobody wants one.
        lift: Records a known array as a constant or parameter.
    """

    recorder: Recorder
    op_type: str
    domain: str
    opset: int
    attributes: Mapping[str, Any]
    held: tuple[Held, ...]
    outputs: tuple[str, ...]
    lift: Callable[[int], Value]

    def __len__(self) -> int:
        return len(self.held)

    def has(self, at: int) -> bool:
        """Tells whether operand `at` is given."""
        return at < len(self.held) and self.held[at] is not None

    def x(self, at: int = 0) -> Value:
        """Gives operand `at` as a recorded value."""
        if not self.has(at):
            raise Unsupported(f"operand {at} is left out")
        held = self.held[at]
        if isinstance(held, Foreign):
            raise Unsupported(held.why)
        return held if isinstance(held, Value) else self.lift(at)

    def optional(self, at: int) -> Value | None:
        """Gives operand `at`, or None where it is left out."""
        return self.x(at) if self.has(at) else None

    def known(self, at: int, what: str) -> np.ndarray:
        """Gives the elements of operand `at`, which the formula needs as numbers."""
        held = self.held[at] if at < len(self.held) else None
        if isinstance(held, np.ndarray):
            return held
        raise Unsupported(f"its {what} is computed at run time; topos needs it as a number")

    def numbers(self, name: str, at: int | None = None) -> list[int] | None:
        """Gives integers from attribute `name` (older opsets), else from operand `at` (newer ones), else None."""
        if name in self.attributes:
            given = self.attributes[name]
            return [int(each) for each in given] if isinstance(given, (list, tuple)) else [int(given)]
        if at is not None and self.has(at):
            return [int(each) for each in self.known(at, name).reshape(-1)]
        return None

    def attribute(self, name: str, default: Any = None) -> Any:
        """Gives an attribute."""
        return self.attributes.get(name, default)

    def wants(self, at: int) -> bool:
        """Tells whether somebody wants result `at`."""
        return at < len(self.outputs) and bool(self.outputs[at])

    @property
    def trained_before_7(self) -> bool:
        """Tells whether it is one of a set below 7 in training mode, which `is_test` had to switch off there."""
        return self.opset < 7 and not self.attribute("is_test", 0)

    def axis(self, given: int, rank: int) -> int:
        """Counts an axis from the front."""
        if not -rank <= given < rank:
            raise Unsupported(f"axis {given} of {rank} axes")
        return given % rank


Translate: TypeAlias = Callable[
    [Node], Any
]  # a value, known numbers, or a sequence of these with None for what nobody wants
