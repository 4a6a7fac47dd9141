"""Hypothesis strategies: any op on operands of any dtype, shape and memory layout that it accepts."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.laws.cases import COMPARISONS, Case, numbers
from topos_core.tape.type import DTYPE_NAMES, FLOATS, INTEGERS, numpy_dtype

NUMBERS = (*FLOATS, *INTEGERS)
BITS = (*INTEGERS, "bool")
ANY = DTYPE_NAMES

ELEMENTWISE: dict[str, tuple[int, tuple[str, ...]]] = {
    "neg": (1, NUMBERS), "abs": (1, NUMBERS), "exp": (1, FLOATS), "expm1": (1, FLOATS), "log": (1, FLOATS),
    "log1p": (1, FLOATS), "sqrt": (1, FLOATS), "rsqrt": (1, FLOATS), "tanh": (1, FLOATS), "erf": (1, FLOATS),
    "sin": (1, FLOATS), "cos": (1, FLOATS), "floor": (1, FLOATS), "ceil": (1, FLOATS), "round": (1, FLOATS),
    "sign": (1, NUMBERS), "logical_not": (1, ("bool",)), "add": (2, ANY), "sub": (2, NUMBERS), "mul": (2, ANY),
    "div": (2, NUMBERS), "pow": (2, NUMBERS), "maximum": (2, ANY), "minimum": (2, ANY), "remainder": (2, NUMBERS),
    "compare": (2, ANY), "and": (2, BITS), "or": (2, BITS), "xor": (2, BITS), "select": (2, ANY), "cast": (1, ANY),
}  # fmt: skip
SHAPED = ("reshape", "permute", "broadcast", "pad", "slice", "reverse", "concat", "unfold", "strided")
REDUCED = ("sum", "prod", "max", "min", "argmax", "logsumexp", "cumsum")
OTHERS = ("matmul", "gather", "scatter_add", "within")
COMPUTED = (*ELEMENTWISE, *SHAPED, *REDUCED, *OTHERS)
LAYOUTS = ("plain", "fortran", "backwards", "spread", "readonly")

shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)
dims = st.integers(0, 4)


def laid_out(x: np.ndarray, layout: str) -> np.ndarray:
    """The same values in another memory layout."""
    match layout:
        case "fortran":
            return np.asarray(x, order="F")
        case "backwards":
            return np.ascontiguousarray(np.flip(x)).reshape(x.shape)[(slice(None, None, -1),) * x.ndim]
        case "spread":
            wide = np.zeros([2 * extent for extent in x.shape], x.dtype)
            wide[(slice(None, None, 2),) * x.ndim] = x
            return wide[(slice(None, None, 2),) * x.ndim]
        case "readonly":
            frozen = x.copy()
            frozen.flags.writeable = False
            return frozen
    return x


@st.composite
def cases(draw: st.DrawFn, ops: tuple[str, ...] = COMPUTED) -> Case:
    op = draw(st.sampled_from(ops))
    if op in ELEMENTWISE:
        return draw(_elementwise(op))
    return draw(_shaped(op) if op in SHAPED else _reduced(op) if op in REDUCED else _other(op))


def _array(draw: st.DrawFn, dtype: str, shape: tuple[int, ...], low: float = -3, high: float = 3) -> np.ndarray:
    return numbers(dtype, shape, draw(st.integers(0, 999)), low=low, high=high)


@st.composite
def _elementwise(draw: st.DrawFn, op: str) -> Case:
    arity, dtypes = ELEMENTWISE[op]
    dtype, shape = draw(st.sampled_from(dtypes)), draw(shapes)
    operands = [_array(draw, dtype, shape) for _ in range(arity)]
    if op in ("div", "remainder") and dtype in INTEGERS:
        operands[1] = np.where(operands[1] == 0, operands[1].dtype.type(2), operands[1])
    if op == "select":
        operands.insert(0, _array(draw, "bool", shape))
    attributes: dict[str, Any] = {}
    if op == "compare":
        attributes["kind"] = draw(st.sampled_from(COMPARISONS))
    if op == "cast":
        attributes["dtype"] = draw(st.sampled_from(DTYPE_NAMES))
    return Case(op, tuple(operands), attributes)


@st.composite
def _shaped(draw: st.DrawFn, op: str) -> Case:
    dtype = draw(st.sampled_from(DTYPE_NAMES))
    shape = draw(st.lists(dims, min_size=1, max_size=4).map(tuple))
    x, rank = _array(draw, dtype, shape), len(shape)
    each = st.tuples
    match op:
        case "reshape":
            order = draw(st.permutations(shape))
            return Case(op, (x,), {"shape": (*order, 1) if draw(st.booleans()) else tuple(order)})
        case "permute":
            return Case(op, (x,), {"order": tuple(draw(st.permutations(range(rank))))})
        case "broadcast":
            narrow = tuple(1 if draw(st.booleans()) else extent for extent in shape)
            lead = tuple(draw(st.lists(dims, max_size=2)))
            return Case(op, (_array(draw, dtype, narrow),), {"shape": (*lead, *shape)})
        case "pad":
            interior = draw(each(*[st.integers(0, 2)] * rank))
            spread = [extent + max(extent - 1, 0) * between for extent, between in zip(shape, interior, strict=True)]
            low = tuple(draw(st.integers(-extent, 3)) for extent in spread)
            high = tuple(draw(st.integers(-(extent + before), 3)) for extent, before in zip(spread, low, strict=True))
            fill = numpy_dtype(dtype).type(draw(st.sampled_from((0, 1))))
            return Case(op, (x,), {"fill": fill, "low": low, "high": high, "interior": interior})
        case "slice":
            start = tuple(draw(st.integers(0, extent)) for extent in shape)
            stop = tuple(draw(st.integers(first, extent)) for first, extent in zip(start, shape, strict=True))
            return Case(op, (x,), {"start": start, "stop": stop, "step": draw(each(*[st.integers(1, 3)] * rank))})
        case "reverse":
            return Case(op, (x,), {"axes": tuple(sorted(draw(st.sets(st.integers(0, rank - 1)))))})
        case "concat":
            axis = draw(st.integers(0, rank - 1))
            extents = draw(st.lists(dims, min_size=1, max_size=3))
            parts = [_array(draw, dtype, (*shape[:axis], extent, *shape[axis + 1 :])) for extent in extents]
            return Case(op, tuple(parts), {"axis": axis})
        case "unfold":
            axis, size, dilation = draw(st.integers(0, rank - 1)), draw(st.integers(1, 3)), draw(st.integers(1, 2))
            extent = dilation * (size - 1) + 1 + draw(st.integers(0, 4))
            source = _array(draw, dtype, (*shape[:axis], extent, *shape[axis + 1 :]))
            step = draw(st.integers(1, 3))
            return Case(op, (source,), {"axis": axis, "size": size, "step": step, "dilation": dilation})
    source = _array(draw, dtype, (draw(st.integers(1, 4)), draw(st.integers(1, 6))))
    target = draw(st.lists(st.integers(0, 3), max_size=3).map(tuple))
    strides = tuple(draw(st.integers(-1, 1)) for _ in target)
    reach = sum(abs(s) * (e - 1) for s, e in zip(strides, target, strict=True) if e)
    back = sum(-s * (e - 1) for s, e in zip(strides, target, strict=True) if s < 0 and e)
    if reach >= source.size:
        strides, back = (0,) * len(target), 0
    return Case("strided", (source,), {"shape": target, "strides": strides, "offset": back})


@st.composite
def _reduced(draw: st.DrawFn, op: str) -> Case:
    dtypes = FLOATS if op == "logsumexp" else ANY if op in ("max", "min", "argmax") else NUMBERS
    dtype = draw(st.sampled_from(dtypes))
    empty = op in ("sum", "prod", "cumsum")
    shape = draw(st.lists(st.integers(0 if empty else 1, 4), min_size=1, max_size=4).map(tuple))
    x = _array(draw, dtype, shape)
    wider = [name for name in (FLOATS if dtype in FLOATS else INTEGERS) if numpy_dtype(name).itemsize >= x.itemsize]
    if op in ("argmax", "cumsum"):
        attributes: dict[str, Any] = {"axis": draw(st.integers(0, len(shape) - 1))}
    else:
        attributes = {"axes": tuple(sorted(draw(st.sets(st.integers(0, len(shape) - 1)))))}
    if empty:
        attributes["accumulate"] = draw(st.sampled_from(wider))
    return Case(op, (x,), attributes)


@st.composite
def _other(draw: st.DrawFn, op: str) -> Case:
    dtype = draw(st.sampled_from(NUMBERS))
    if op == "matmul":
        batch = draw(st.lists(dims, max_size=2).map(tuple))
        m, k, n = draw(dims), draw(dims), draw(dims)
        a, b = _array(draw, dtype, (*batch, m, k)), _array(draw, dtype, (*batch, k, n))
        wider = [name for name in (FLOATS if dtype in FLOATS else INTEGERS) if numpy_dtype(name).itemsize >= a.itemsize]
        return Case(op, (a, b), {"accumulate": draw(st.sampled_from(wider))})
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple))
    axis = draw(st.integers(0, len(shape) - 1))
    where = draw(shapes)
    index = numbers(draw(st.sampled_from(("i32", "i64"))), where, draw(st.integers(0, 99)), low=0, high=shape[axis] - 1)
    if op == "within":
        return Case(op, (index,), {"low": draw(st.integers(-3, 0)), "high": shape[axis]})
    x = _array(draw, dtype, shape)
    if op == "gather":
        return Case(op, (x, index), {"axis": axis})
    updates = _array(draw, dtype, (*shape[:axis], *where, *shape[axis + 1 :]))
    return Case(op, (x, index, updates), {"axis": axis})
