"""Foreign ops: an opaque op is known by name and types only; pick gives one of its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from topos_core.cost.work import Work
from topos_core.ops.definition import OpDefinition, TypeMismatch
from topos_core.tape.type import TensorType


class OpaqueOp(Exception):
    """A foreign op cannot be computed; the run adds its name and place."""


def _infer_opaque(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    results: tuple[TensorType, ...] = attributes["types"]
    if not results:
        raise TypeMismatch(f"opaque: {attributes['foreign']} has no result; leave it out")
    return results[0]


def _infer_pick(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    """Gives the declared type; only the tape's verifier sees the opaque op and compares the two."""
    declared: TensorType = attributes["type"]
    return declared


def _refuse(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
    raise OpaqueOp("a foreign op cannot be computed")


def _traffic(types: Sequence[TensorType], attributes: Mapping[str, Any], result: TensorType) -> Work:
    """Counts operands and every result once; what it computes is not known."""
    written = sum(t.bytes for t in attributes["types"])
    return Work(bytes_read=sum(t.bytes for t in types), bytes_written=written)


def _nothing(types: Sequence[TensorType], attributes: Mapping[str, Any], result: TensorType) -> Work:
    return Work()


DEFINITIONS: Final = (
    OpDefinition("opaque", "opaque", None, _infer_opaque, _refuse, _traffic, ("foreign", "types", "note")),
    OpDefinition("pick", "opaque", 1, _infer_pick, _refuse, _nothing, ("index", "type")),
)
