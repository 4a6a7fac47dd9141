"""What an op is: one row with its kind, arity, inference, NumPy evaluation and work.

Attributes by op (every attribute is always present; integers are Python ints, tuples are tuples):

| ops | attributes |
|---|---|
| input, parameter | `type: TensorType` |
| constant | `value`: a NumPy scalar (a splat of any shape) or a read-only C-contiguous ndarray (a table); `type` |
| iota | `type`, `axis`: counts 0, 1, ... along `axis` |
| neg abs exp expm1 log log1p sqrt rsqrt tanh erf sin cos floor ceil round sign logical_not | none |
| add sub mul div pow maximum minimum remainder and or xor | none; operand types are equal |
| compare | `kind`: lt le gt ge eq ne |
| select (condition, a, b) | none |
| cast | `dtype` |
| reshape, broadcast | `shape`; broadcast aligns trailing axes, NumPy's rule |
| permute | `order`: result axis k is operand axis order[k] |
| pad | `fill`: NumPy scalar of the operand's dtype; `low`, `high` (may be negative), `interior`: one per axis |
| slice | `start`, `stop`, `step` > 0: one per axis, 0 <= start <= stop <= extent |
| reverse | `axes` |
| concat | `axis` |
| unfold | `axis`, `size`, `step`, `dilation`: positions replace `axis`, the window axis comes last |
| strided | `shape`, `strides` (in elements, may be negative or 0), `offset`, over the C-contiguous operand |
| sum, prod | `axes` (sorted, no keepdims), `accumulate`: dtype of the running value; the result has the operand's dtype |
| max, min | `axes` |
| logsumexp | `axes` |
| argmax | `axis`; the result is i64, the axis is dropped |
| cumsum | `axis`, `accumulate` |
| matmul | `accumulate`; [..., m, k] @ [..., k, n], equal batch extents |
| gather (x, indices) | `axis`: x.shape[:axis] + indices.shape + x.shape[axis+1:]; indices i32 or i64 in range |
| scatter_add (x, indices, updates) | `axis`: x with updates added at indices, duplicates accumulate |
| within | `low`, `high`: the integers as they are, each in [low, high); one outside is an error of the run |
| opaque | `foreign`: the foreign op's name, `types`: result types, `note`; the op's own type is types[0] |
| pick (opaque) | `index`, `type`: equal to the opaque op's `types[index]` |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from topos_core.cost.work import Work
from topos_core.tape.type import TensorType

OpKind = Literal["source", "elementwise", "movement", "reduction", "contraction", "lookup", "opaque"]

Infer = Callable[[Sequence[TensorType], Mapping[str, Any]], TensorType]
Evaluate = Callable[[Sequence[np.ndarray], Mapping[str, Any], TensorType], np.ndarray]
Into = Callable[[Sequence[np.ndarray], Mapping[str, Any], TensorType, np.ndarray], None]
CountWork = Callable[[Sequence[TensorType], Mapping[str, Any], TensorType], Work]
CountScratch = Callable[[Sequence[TensorType], Mapping[str, Any], TensorType, int], int]


@dataclass(frozen=True, slots=True)
class OpDefinition:
    """One op.

    Args:
        arity: Number of operands, or None for any number (concat needs at least one).
        infer: Gives the result type. Raises `TypeMismatch` with what, both values and remedy.
        evaluate: Computes the result with NumPy from the operands' arrays; never writes to them and may return a
            view of one.
        work: Counts flops, transcendentals and bytes.
        attributes: The names of its attributes; each is always present.
        into: Computes the same bits into an array of the result's type, in any strides, that is no operand's memory; None
            where only `evaluate` can.
        in_place: Whether `into` may also write over an operand of the result's type and strides.
        scratch: Counts the bytes that live only while it runs, given those of operands that it makes contiguous; None where there
            are no others, but for pieces.
    """

    name: str
    kind: OpKind
    arity: int | None
    infer: Infer
    evaluate: Evaluate
    work: CountWork
    attributes: tuple[str, ...] = ()
    into: Into | None = None
    in_place: bool = False
    scratch: CountScratch | None = None


class TypeMismatch(Exception):
    """Operands or attributes that do not fit an op; the recorder adds the place and raises a `RecordingError`."""
