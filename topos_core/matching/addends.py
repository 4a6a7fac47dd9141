"""The two values that a value is the sum of: those of an addition, or those that are stacked and summed over the stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from topos_core.matching.context import Context


class Addends(NamedTuple):
    """Two values of a sum's own shape, and the values that stand between them and the sum."""

    left: int
    right: int
    between: frozenset[int] = frozenset()


def addends(context: Context, total: int) -> Addends | None:
    """Finds the two values whose sum a value is, element by element; None where it is no sum of two.

    `np.stack([x, y], k).sum(k)` is one: each piece is as long as one element along the axis that is summed alone.
    """
    op = context.op(total)
    if op.name == "add":
        left, right = op.operands
        return Addends(left, right)
    if op.name != "sum":
        return None
    stack = op.operands[0]
    pieces = context.op(stack)
    if (
        pieces.name != "concat"
        or len(pieces.operands) != 2
        or tuple(op.attributes["axes"]) != (pieces.attributes["axis"],)
    ):
        return None
    stacked = [_unstacked(context, piece, op.type.shape) for piece in pieces.operands]
    if stacked[0] is None or stacked[1] is None:
        return None
    return Addends(stacked[0], stacked[1], frozenset((stack, *pieces.operands)))


def _unstacked(context: Context, piece: int, shape: tuple[int, ...]) -> int | None:
    """Gives the value of a shape of which a piece is a reshape: a stack's piece is its value with one more axis of one element."""
    op = context.op(piece)
    if op.name != "reshape" or context.op(op.operands[0]).type.shape != shape:
        return None
    return op.operands[0]
