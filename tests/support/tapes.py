"""Tapes built by hand, with the catalogue's own inference and one source line per op."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from topos_core.ops.catalog import definition
from topos_core.tape.op import Op
from topos_core.tape.span import Frame, Location, Span
from topos_core.tape.tape import Observation, ObservationKind, Structure, Tape
from topos_core.tape.type import TensorType, dtype_name, numpy_dtype


def tensor_type(text: str) -> TensorType:
    """Reads `f32[2,3]`."""
    parts = re.fullmatch(r"(\w+)\[([\d,]*)\]", text)
    assert parts is not None, text
    return TensorType(parts[1], tuple(int(e) for e in parts[2].split(",") if e))


class TapeBuilder:
    """Appends ops; every op stands on a line of its own of `model.py`, unless `line` says otherwise."""

    def __init__(self, source: str | None = None) -> None:
        self.ops: list[Op] = []
        self.locations: list[Location] = []
        self.inputs: list[int] = []
        self.parameters: list[int] = []
        self.names: dict[int, str] = {}
        self.readers: list[Observation] = []
        self.source = source
        self.scope: tuple[str, ...] = ()

    def input(self, name: str, kind: str) -> int:
        """Appends an input."""
        value = self._append("input", (), {"type": tensor_type(kind)}, tensor_type(kind))
        self.inputs.append(value)
        self.names[value] = name
        return value

    def parameter(self, name: str, kind: str) -> int:
        """Appends a parameter."""
        value = self._append("parameter", (), {"type": tensor_type(kind)}, tensor_type(kind))
        self.parameters.append(value)
        self.names[value] = name
        return value

    def constant(self, number: float, kind: str) -> int:
        """Appends a splat."""
        type = tensor_type(kind)
        return self._append("constant", (), {"value": numpy_dtype(type.dtype).type(number), "type": type}, type)

    def table(self, elements: np.ndarray) -> int:
        """Appends a table, read-only from then on."""
        elements.flags.writeable = False
        type = TensorType(dtype_name(elements.dtype) or "", elements.shape)
        return self._append("constant", (), {"value": elements, "type": type}, type)

    def op(self, name: str, *operands: int, line: int | None = None, **attributes: Any) -> int:
        """Appends an op with the catalogue's inference."""
        types = [self.ops[o].type for o in operands]
        return self._append(name, operands, attributes, definition(name).infer(types, attributes), line)

    def observe(
        self, value: int, name: str | None = None, kind: ObservationKind = "observe", line: int | None = None
    ) -> int:
        """Appends a reader; gives its row, which counts from the first result on."""
        self.readers.append(Observation(value, kind, name, self._location(line)))
        if name is not None:
            self.names.setdefault(value, name)
        return len(self.readers) - 1

    def tape(self, *results: int, **changes: Any) -> Tape:
        """Ends the tape; results are observed first, so reader rows shift by the number of results."""
        leaves = tuple(Structure("leaf", index=k) for k in range(len(results)))
        structure = leaves[0] if len(leaves) == 1 else Structure("tuple", leaves)
        outputs = [Observation(value, "output", None, self._location(None)) for value in results]
        fields: dict[str, Any] = {
            "ops": tuple(self.ops),
            "inputs": tuple(self.inputs),
            "parameters": tuple(self.parameters),
            "results": results,
            "structure": structure,
            "names": dict(self.names),
            "observations": (*outputs, *self.readers),
            "locations": tuple(self.locations),
            "sources": {"model.py": self.source if self.source is not None else self._text()},
        }
        return Tape(**{**fields, **changes})

    def _append(
        self,
        name: str,
        operands: Sequence[int],
        attributes: Mapping[str, Any],
        type: TensorType,
        line: int | None = None,
    ) -> int:
        self.ops.append(Op(name, tuple(operands), attributes, type, self._location(line)))
        return len(self.ops) - 1

    def _location(self, line: int | None) -> int:
        row = len(self.locations)
        at = line if line is not None else row + 1
        span = Span("model.py", at, 4, at, 12)
        self.locations.append(Location((Frame(span, "main", "user"),), self.scope))
        return row

    def _text(self) -> str:
        return "".join(f"    line{k + 1:04d}\n" for k in range(len(self.locations)))


def zeros(kind: str) -> np.ndarray:
    """Gives an array of a type."""
    type = tensor_type(kind)
    return np.zeros(type.shape, numpy_dtype(type.dtype))
