"""How recorded values lie in memory: which movement NumPy answers with a view, and what the rest copies."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from topos_core.tape.op import Op
from topos_core.tape.tape import Tape
from topos_core.tape.type import numpy_dtype


class Placed(NamedTuple):
    """Where a value lies: in the buffer of value `base`, with `strides` counted in elements (0 where broadcast)."""

    base: int
    strides: tuple[int, ...]


class Placement(NamedTuple):
    """What making one value did.

    Args:
        placed: Where the value lies.
        allocated_bytes: The new buffer's size; 0 for a view and for what exists before the run.
        copied: Elements that were copied beside the op's own work (a reshape that is no view, operands made contiguous).
        run: The shortest innermost contiguous run of what was copied, in elements.
        temporary_bytes: Buffers that live only while the op runs.
    """

    placed: Placed
    allocated_bytes: int = 0
    copied: int = 0
    run: int = 1
    temporary_bytes: int = 0


def place(tape: Tape, value: int, places: Callable[[int], Placed]) -> Placement:
    """Says where a recorded op puts its value, given where its operands lie. Cost independent of extents."""
    op = tape.ops[value]
    rule = _VIEWS.get(op.name)
    if rule is not None:
        return rule(tape, op, value, places(op.operands[0]))
    if op.name in _CALLERS:
        return Placement(Placed(value, contiguous_strides(op.type.shape)))
    if op.name == "constant":
        table = getattr(op.attributes["value"], "ndim", 0) > 0
        return Placement(Placed(value, contiguous_strides(op.type.shape) if table else (0,) * len(op.type.shape)))
    if op.name == "iota":
        axis = op.attributes["axis"]
        column = tuple(int(k == axis) for k in range(len(op.type.shape)))
        return Placement(Placed(value, column), numpy_dtype(op.type.dtype).itemsize * op.type.shape[axis])
    if op.name in _WANT_CONTIGUOUS or op.name in _SETTLED:
        copied, run = 0, 1
        for operand in op.operands:
            kind = tape.ops[operand].type
            strides = places(operand).strides
            if op.name in _SETTLED and not any(strides):
                continue
            if not is_contiguous(kind.shape, strides):
                run = min(run, innermost_run(kind.shape, strides)) if copied else innermost_run(kind.shape, strides)
                copied += kind.size
        temporary = copied * numpy_dtype(tape.ops[op.operands[0]].type.dtype).itemsize
        return _fresh(op, value)._replace(copied=copied, run=run, temporary_bytes=temporary)
    fresh = _fresh(op, value)
    if op.name not in _ROW_MAJOR:
        for operand in op.operands:  # ufuncs keep the order of the first operand that has one
            strides = places(operand).strides
            if tape.ops[operand].type.shape == op.type.shape and 0 not in strides:
                if strides == fresh.placed.strides:
                    return fresh
                return fresh._replace(placed=Placed(value, ordered_like(op.type.shape, strides)))
    return fresh


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Gives row-major strides in elements."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * (shape[axis + 1] or 1)
    return tuple(strides)


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Tells whether elements follow each other in row-major order; axes of extent 1 and empty arrays do not count."""
    expected = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent == 0:
            return True
        if extent != 1:
            if stride != expected:
                return False
            expected *= extent
    return True


def innermost_run(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Counts the elements of the innermost contiguous run in row-major order."""
    run = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent > 1:
            if stride != run:
                break
            run *= extent
    return run


def reshaped_strides(shape: Sequence[int], strides: Sequence[int], target: Sequence[int]) -> tuple[int, ...] | None:
    """Gives the strides with which `target` looks at the same memory, or None where NumPy copies.

    Groups of old and new axes with equal products are walked together; each old group must be one progression.
    """
    if math.prod(shape) == 0:
        return contiguous_strides(target)
    old = [(extent, stride) for extent, stride in zip(shape, strides, strict=True) if extent != 1]
    result = [1] * len(target)
    i = j = 0
    while i < len(old):
        old_product, i_end = old[i][0], i + 1
        j_end = j
        new_product = 1
        while new_product != old_product or j_end == j:
            if new_product < old_product or j_end == j:
                new_product *= target[j_end]
                j_end += 1
            else:
                old_product *= old[i_end][0]
                i_end += 1
        for k in range(i, i_end - 1):
            if old[k][1] != old[k + 1][0] * old[k + 1][1]:
                return None
        stride = old[i_end - 1][1]
        for k in range(j_end - 1, j - 1, -1):
            result[k] = stride
            stride *= target[k]
        i, j = i_end, j_end
    return tuple(result)


def _fresh(op: Op, value: int) -> Placement:
    return Placement(Placed(value, contiguous_strides(op.type.shape)), op.type.bytes)


def ordered_like(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Gives the strides of dense memory whose axes follow each other as in an array of such strides."""
    result = [0] * len(shape)
    stride = 1
    for axis in sorted(range(len(shape)), key=lambda k: (abs(strides[k]), -k)):
        result[axis] = stride
        stride *= max(shape[axis], 1)
    return tuple(result)


def _reshape(tape: Tape, op: Op, value: int, x: Placed) -> Placement:
    shape = tape.ops[op.operands[0]].type.shape
    strides = reshaped_strides(shape, x.strides, op.type.shape)
    if strides is not None:
        return Placement(Placed(x.base, strides))
    return _fresh(op, value)._replace(copied=op.type.size, run=innermost_run(shape, x.strides))


def _permute(tape: Tape, op: Op, value: int, x: Placed) -> Placement:
    return Placement(Placed(x.base, tuple(x.strides[k] for k in op.attributes["order"])))


def _slice(tape: Tape, op: Op, value: int, x: Placed) -> Placement:
    steps = op.attributes["step"]
    return Placement(Placed(x.base, tuple(s * step for s, step in zip(x.strides, steps, strict=True))))


def _reverse(tape: Tape, op: Op, value: int, x: Placed) -> Placement:
    axes = op.attributes["axes"]
    return Placement(Placed(x.base, tuple(-s if k in axes else s for k, s in enumerate(x.strides))))


def _broadcast(tape: Tape, op: Op, value: int, x: Placed) -> Placement:
    shape = tape.ops[op.operands[0]].type.shape
    lead = len(op.type.shape) - len(shape)
    kept = (
        s if extent == target else 0 for s, extent, target in zip(x.strides, shape, op.type.shape[lead:], strict=True)
    )
    return Placement(Placed(x.base, (*(0,) * lead, *kept)))


def _unfold(tape: Tape, op: Op, value: int, x: Placed) -> Placement:
    axis, step, dilation = op.attributes["axis"], op.attributes["step"], op.attributes["dilation"]
    stride = x.strides[axis]
    return Placement(Placed(x.base, (*x.strides[:axis], stride * step, *x.strides[axis + 1 :], stride * dilation)))


def _strided(tape: Tape, op: Op, value: int, x: Placed) -> Placement:
    kind = tape.ops[op.operands[0]].type
    strides = tuple(op.attributes["strides"])
    if is_contiguous(kind.shape, x.strides):
        return Placement(Placed(x.base, strides))
    run = innermost_run(kind.shape, x.strides)
    return Placement(Placed(value, strides), allocated_bytes=kind.bytes, copied=kind.size, run=run)


_VIEWS: Final = {
    "reshape": _reshape, "permute": _permute, "slice": _slice, "reverse": _reverse, "broadcast": _broadcast,
    "unfold": _unfold, "strided": _strided,
}  # fmt: skip
_CALLERS: Final = frozenset(("input", "parameter"))
_WANT_CONTIGUOUS: Final = frozenset(("matmul", "sum", "prod", "cumsum"))  # so that bits depend on no layout
_SETTLED: Final = frozenset(
    ("exp", "expm1", "log", "log1p", "tanh", "erf", "sin", "cos", "pow")
)  # likewise; not a splat
_ROW_MAJOR: Final = frozenset(
    ("pad", "concat", "max", "min", "argmax", "logsumexp", "gather", "scatter_add", "within", "opaque", "pick")
)
