"""In which order a kernel lays out its root: the one that makes what is read in the end row-major.

A root often goes through permutes and reshapes before anybody computes with it (`einsum` multiplies matrices and moves the
axes afterwards). A kernel that can write any order then writes that one, and the movement stays a view of dense memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from topos_core.plan.schedule import Step
from topos_core.tape.tape import Tape
from topos_core.tape.type import TensorType, numpy_dtype


class Order(NamedTuple):
    """How a root lies in memory: it is the row-major array `type` looked at with `strides` in bytes."""

    type: TensorType
    strides: tuple[int, ...]


def reading_order(tape: Tape, root: int, readers: Mapping[int, Sequence[Step]], kept: frozenset[int]) -> Order | None:
    """Gives the order for a root, or None where row-major is as good.

    Args:
        tape: The spec.
        root: A taken match's root.
        readers: Steps by the values that they read.
        kept: Values that the caller reads.
    """
    chain = [root]
    while chain[-1] not in kept:
        after = readers.get(chain[-1], ())
        if len(after) != 1 or after[0].match is not None or tape.ops[after[0].value].name not in ("reshape", "permute"):
            break
        chain.append(after[0].value)
    while len(chain) > 1 and tape.ops[chain[-1]].name == "reshape":
        chain.pop()  # a reshape of row-major memory is a view anyway
    if len(chain) == 1:
        return None
    end = tape.ops[chain[-1]].type
    dense = np.empty(end.shape, numpy_dtype(end.dtype))
    array = dense
    for value in reversed(chain[1:]):
        op = tape.ops[value]
        if op.name == "permute":
            array = array.transpose(np.argsort(op.attributes["order"]))
        else:
            array = array.reshape(tape.ops[op.operands[0]].type.shape)
    same = array.__array_interface__["data"][0] == dense.__array_interface__["data"][0]
    if not dense.size or not same or array.flags.c_contiguous:
        return None
    return Order(end, array.strides)
