"""In which order a kernel lays out its root: the one that makes what is read in the end row-major.

A root often goes through permutes and reshapes before anybody computes with it (`einsum` multiplies matrices and moves the
axes afterwards). A kernel that can write any order then writes that one, and the movement stays a view of dense memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from topos_core.cost.memory import contiguous_strides, is_contiguous, reshaped_strides
from topos_core.plan.schedule import Step
from topos_core.tape.tape import Tape


def reading_order(
    tape: Tape, root: int, readers: Mapping[int, Sequence[Step]], kept: frozenset[int]
) -> tuple[int, ...] | None:
    """Gives the root's strides in elements, of dense memory; None where row-major is as good.

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
    kind = tape.ops[root].type
    if len(chain) == 1 or not kind.size:
        return None
    shape = tape.ops[chain[-1]].type.shape
    strides = contiguous_strides(shape)
    for value in reversed(chain[1:]):
        op = tape.ops[value]
        before = tape.ops[op.operands[0]].type.shape
        if op.name == "permute":
            turned = [0] * len(before)
            for axis, source in enumerate(op.attributes["order"]):
                turned[source] = strides[axis]
            strides = tuple(turned)
        else:
            split = reshaped_strides(shape, strides, before)
            if split is None:
                return None
            strides = split
        shape = before
    return None if is_contiguous(shape, strides) else strides
