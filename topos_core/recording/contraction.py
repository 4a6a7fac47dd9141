"""Matrix products: matmul, dot, tensordot and their kin, all through the one matmul op.

Halves accumulate in f32, as NumPy's own product does; every other dtype in itself. A product of bools is a count compared
with 0. `[..., m, k] @ [k, n]` reshapes the left operand to one matrix rather than repeating the right one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from topos_core.recording import constant, elementwise, movement
from topos_core.recording.axes import one_axis, some_axes
from topos_core.recording.recorder import recorder_of
from topos_core.recording.value import Value


def matmul(a: Any, b: Any) -> Value:
    """Records `a @ b` for any ranks above 0."""
    recorder = recorder_of(a, b)
    a, b = (constant.lift(recorder, x) for x in (a, b))
    if not a.ndim or not b.ndim:
        raise recorder.error(f"matmul of a scalar: {a.type} @ {b.type}; write a * b")
    inner = (a.type.shape[-1], b.type.shape[-2 if b.ndim > 1 else 0])
    if inner[0] != inner[1]:
        raise recorder.error(
            f"matmul: inner extents differ: {a.type} @ {b.type} ({inner[0]}, {inner[1]}); transpose or reshape an operand"
        )
    dtype = elementwise.common(recorder, (a, b))
    if dtype == "bool":
        counts = matmul(elementwise.cast(a, "i64"), elementwise.cast(b, "i64"))
        return counts != 0
    a, b = elementwise.cast(a, dtype), elementwise.cast(b, dtype)
    lone_a, lone_b = a.ndim == 1, b.ndim == 1
    if lone_a:
        a = movement.reshape(a, (1, a.size))
    if lone_b:
        b = movement.reshape(b, (b.size, 1))
    result = _batched(a, b)
    shape = result.type.shape
    if lone_a:
        shape = (*shape[:-2], shape[-1])
    if lone_b:
        shape = shape[:-1]
    return movement.reshape(result, shape)


def _batched(a: Value, b: Value) -> Value:
    if b.ndim == 2 and a.ndim > 2:
        rows = movement.reshape(a, (math.prod(a.type.shape[:-1]), a.type.shape[-1]))
        return movement.reshape(product(rows, b), (*a.type.shape[:-1], b.type.shape[-1]))
    try:
        batch = np.broadcast_shapes(a.type.shape[:-2], b.type.shape[:-2])
    except ValueError:
        raise a.recorder.error(
            f"matmul: batch extents of {a.type} @ {b.type} do not broadcast; trailing ones must be equal or 1"
        ) from None
    return product(movement.spread(a, (*batch, *a.type.shape[-2:])), movement.spread(b, (*batch, *b.type.shape[-2:])))


def product(a: Value, b: Value) -> Value:
    """Records the op itself: [..., m, k] @ [..., k, n] with equal batch extents and dtypes."""
    accumulate = "f32" if a.type.dtype in ("f16", "bf16") else a.type.dtype
    return a.recorder.record("matmul", (a, b), {"accumulate": accumulate})


def dot(a: Any, b: Any, out: Any = None) -> Value:
    """Records np.dot: a product of scalars, vectors, matrices, or over the last axis and the last but one."""
    recorder = recorder_of(a, b)
    if out is not None:
        raise recorder.error("np.dot(out=...) writes into an array; use the returned value")
    a, b = (constant.lift(recorder, x) for x in (a, b))  # np.dot(x, 2) is no weak product: NumPy makes 2 an array
    if not a.ndim or not b.ndim:
        return elementwise.apply(np.multiply, (a, b))
    if a.ndim <= 2 and b.ndim <= 2:
        return matmul(a, b)
    return tensordot(a, b, ((-1,), (-2,) if b.ndim > 1 else (-1,)))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Value:
    """Records np.tensordot in NumPy's own way: kept axes first, then one matrix product."""
    recorder = recorder_of(a, b)
    a, b = (constant.lift(recorder, x) for x in (a, b))
    if isinstance(axes, (int, np.integer)):
        if not 0 <= axes <= min(a.ndim, b.ndim):
            raise recorder.error(f"tensordot: axes={axes} of {a.type} and {b.type}; both need that many axes")
        axes = (range(a.ndim - int(axes), a.ndim), range(int(axes)))
    left, right = some_axes(a, _listed(axes[0])), some_axes(b, _listed(axes[1]))
    extents = [a.type.shape[i] for i in left]
    if extents != [b.type.shape[j] for j in right]:
        raise recorder.error(
            f"tensordot: axes {list(left)} of {a.type} and {list(right)} of {b.type} have different extents; name matching axes"
        )
    kept_a = [i for i in range(a.ndim) if i not in left]
    kept_b = [j for j in range(b.ndim) if j not in right]
    rows, columns = [a.type.shape[i] for i in kept_a], [b.type.shape[j] for j in kept_b]
    inner = math.prod(extents)
    matrix_a = movement.reshape(movement.permute(a, [*kept_a, *left]), (math.prod(rows), inner))
    matrix_b = movement.reshape(movement.permute(b, [*right, *kept_b]), (inner, math.prod(columns)))
    return movement.reshape(matmul(matrix_a, matrix_b), (*rows, *columns))


def _listed(axes: Any) -> Any:
    return axes if isinstance(axes, (int, np.integer)) else tuple(axes)


def inner(a: Any, b: Any) -> Value:
    """Records np.inner: a sum of products over both last axes."""
    recorder = recorder_of(a, b)
    a, b = (constant.lift(recorder, x) for x in (a, b))
    if not a.ndim or not b.ndim:
        return elementwise.apply(np.multiply, (a, b))
    return tensordot(a, b, ((-1,), (-1,)))


def outer(a: Any, b: Any, out: Any = None) -> Value:
    """Records np.outer: every product of two elements."""
    recorder = recorder_of(a, b)
    if out is not None:
        raise recorder.error("np.outer(out=...) writes into an array; use the returned value")
    a, b = (constant.lift(recorder, x) for x in (a, b))
    return elementwise.apply(np.multiply, (movement.reshape(a, (a.size, 1)), movement.reshape(b, (1, b.size))))


def vdot(a: Any, b: Any) -> Value:
    """Records np.vdot: the sum of products of all elements."""
    recorder = recorder_of(a, b)
    a, b = (constant.lift(recorder, x) for x in (a, b))
    return matmul(movement.reshape(a, (a.size,)), movement.reshape(b, (b.size,)))


def vecdot(a: Any, b: Any, axis: int = -1) -> Value:
    """Records np.vecdot: sums of products along one axis."""
    recorder = recorder_of(a, b)
    a, b = (constant.lift(recorder, x) for x in (a, b))
    a, b = (movement.moveaxis(x, one_axis(x, axis), -1) for x in (a, b))
    rows, columns = movement.expand_dims(a, -2), movement.expand_dims(b, -1)
    result = matmul(rows, columns)
    return movement.reshape(result, result.type.shape[:-2])


def matvec(a: Any, b: Any) -> Value:
    """Records np.matvec: [..., m, n] times [..., n]."""
    result = matmul(a, movement.expand_dims(constant.lift(recorder_of(a, b), b), -1))
    return movement.reshape(result, result.type.shape[:-1])


def vecmat(a: Any, b: Any) -> Value:
    """Records np.vecmat: [..., n] times [..., n, m]."""
    result = matmul(movement.expand_dims(constant.lift(recorder_of(a, b), a), -2), b)
    return movement.reshape(result, (*result.type.shape[:-2], result.type.shape[-1]))


def kron(a: Any, b: Any) -> Value:
    """Records np.kron: every element of a times all of b, tiled."""
    recorder = recorder_of(a, b)
    a, b = (constant.lift(recorder, x) for x in (a, b))
    rank = max(a.ndim, b.ndim)
    shape_a, shape_b = ((1,) * (rank - x.ndim) + x.type.shape for x in (a, b))
    spaced_a = movement.reshape(a, tuple(e for extent in shape_a for e in (extent, 1)))
    spaced_b = movement.reshape(b, tuple(e for extent in shape_b for e in (1, extent)))
    return movement.reshape(spaced_a * spaced_b, tuple(m * n for m, n in zip(shape_a, shape_b, strict=True)))


def multi_dot(arrays: Any, out: Any = None) -> Value:
    """Records np.linalg.multi_dot from left to right."""
    recorder = recorder_of(arrays)
    if out is not None:
        raise recorder.error("multi_dot(out=...) writes into an array; use the returned value")
    result = arrays[0]
    for each in arrays[1:]:
        result = matmul(result, each)
    return constant.lift(recorder, result)


def matrix_power(x: Value, n: int) -> Value:
    """Records x @ x @ ... for a small positive n."""
    if not isinstance(n, int) or not 1 <= n <= 64:
        raise x.recorder.error(f"matrix_power({x.type}, {n!r}) is recorded for n from 1 to 64; write the products")
    result = x
    for _ in range(n - 1):
        result = matmul(result, x)
    return result.copy() if result is x else result
