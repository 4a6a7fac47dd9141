"""Every op's evaluation agrees with its lowering run by XLA and by the StableHLO reference interpreter.

Cases share modules, so that few are compiled: one result a case. Left out, and nothing else: integer division by zero
(undefined); integer powers beyond an exponent of 40 (XLA reads only part of a 64-bit exponent); on XLA, subnormal
operands of arithmetic but f16's, and subnormal results (it computes with flushed subnormals: either zero will do).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.laws.cases import COMPARISONS, Case, numbers, pairs, specials, tape_of
from tests.laws.random_cases import ELEMENTWISE, laid_out
from topos_core.emission.backend import run_reference, run_xla
from topos_core.emission.lower.lowering import lowerings
from topos_core.emission.module import emit
from topos_core.ops.catalog import definitions
from topos_core.run.interpreter import interpret
from topos_core.tape.type import DTYPE_NAMES, FLOATS, INTEGERS, is_float, numpy_dtype

SHAPES: tuple[tuple[int, ...], ...] = ((), (5,), (0, 3), (2, 3, 4))
LIBRARY_ULPS = {
    "exp": 2, "expm1": 4, "log": 2, "log1p": 3, "tanh": 4, "erf": 4, "sin": 2, "cos": 2, "pow": 4, "rsqrt": 2,
}  # fmt: skip
"""Units in the last place by which two math libraries may differ; every other elementwise op is exact."""


def check(cases: list[Case], run: Any = run_xla) -> None:
    """Runs the cases as one module and compares each with NumPy's evaluation."""
    tape = tape_of(cases)
    inputs = [x for case in cases for x in case.operands]
    expected = interpret(tape, inputs)
    for case, got, want in zip(cases, run(emit(tape), inputs), expected, strict=True):
        assert got.dtype == want.dtype, case
        assert got.shape == want.shape, case
        agree(case, got, want)


def agree(case: Case, got: np.ndarray, want: np.ndarray) -> None:
    if not is_float(want.dtype):
        np.testing.assert_array_equal(got, want, err_msg=str(case))
        return
    a, b = got.astype(np.float64), want.astype(np.float64)
    tiny = {"f16": 0.0, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022}[case.type.dtype]
    subnormal = (np.abs(b) < tiny) & (b != 0)
    assert np.all(np.abs(a[subnormal]) < tiny), case
    a[subnormal] = b[subnormal] = 0.0
    with np.errstate(all="ignore"):
        close = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= tolerance(case, b))
    assert close.all(), f"{case}: {got[~close][:3]} is not {want[~close][:3]}"
    if tolerance_kind(case) == "exact":
        zero = (b == 0) & ~subnormal
        np.testing.assert_array_equal(np.signbit(a[zero]), np.signbit(b[zero]), err_msg=f"sign of zero: {case}")


def tolerance_kind(case: Case) -> str:
    if case.op in ("sum", "prod", "cumsum", "matmul", "logsumexp", "scatter_add"):
        return "summed"
    return "library" if case.op in LIBRARY_ULPS else "exact"


def tolerance(case: Case, want: np.ndarray) -> Any:
    """Gives the largest difference allowed: per element in ulps, or for sums per rounding of their terms."""
    digits = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}[case.type.dtype]
    if tolerance_kind(case) == "exact":
        return 0.0
    if tolerance_kind(case) == "library":
        return LIBRARY_ULPS[case.op] * np.spacing(np.maximum(np.abs(want), 2.0**-100)) * 2.0 ** (52 - digits)
    terms = case.operands[0].shape[-1] if case.op == "matmul" else case.operands[0].size
    largest = max((float(np.abs(x.astype(np.float64)).max()) for x in case.operands if x.size), default=0.0)
    scale = largest**terms if case.op == "prod" else max(largest, largest**2) * max(terms, 1)
    return 4 * 2.0**-digits * max(scale, 1.0)


def elementwise(dtype: str, subnormals: bool) -> Iterator[Case]:
    """Special values in every combination, and ordinary ones in every shape."""
    for op, (arity, dtypes) in ELEMENTWISE.items():
        if dtype not in dtypes or op == "cast":
            continue
        kinds = [{"kind": kind} for kind in COMPARISONS] if op == "compare" else [{}]
        for shape, attributes in itertools.product(SHAPES, kinds):
            yield defined(op, tuple(numbers(dtype, shape, seed) for seed in range(arity)), attributes)
        for attributes in kinds:
            corner = specials(dtype, subnormals=subnormals)
            yield defined(op, pairs(corner) if arity == 2 else (corner,), attributes)
    for target in DTYPE_NAMES:
        wide = numbers(dtype, (40,), 3, low=-300, high=300) if dtype in FLOATS else numbers(dtype, (40,), 3)
        yield Case("cast", (specials(dtype, subnormals=subnormals),), {"dtype": target})
        yield Case("cast", (wide,), {"dtype": target})
        edges = edge_floats(dtype, target)
        if edges.size:
            yield Case("cast", (edges,), {"dtype": target})


def edge_floats(dtype: str, target: str) -> np.ndarray:
    """Floats around the ends of an integer's range, and halves."""
    if dtype not in FLOATS or target not in INTEGERS:
        return np.empty(0)
    limits = np.iinfo(numpy_dtype(target))
    ends = [np.float64(x) for x in (limits.min, limits.max)]
    around = [np.nextafter(end, toward) for end in ends for toward in (-np.inf, np.inf)]
    values = [*ends, *around, 0.5, -0.5, 1.5, -1.5, 126.99, -0.999]
    with np.errstate(all="ignore"):
        return np.array(values).astype(numpy_dtype(dtype))


def defined(op: str, operands: tuple[np.ndarray, ...], attributes: dict[str, Any]) -> Case:
    """Keeps away from what the rules leave undefined."""
    if op in ("div", "remainder") and operands[1].dtype.kind in "iu":
        a, b = operands
        operands = (a, np.where(b == 0, b.dtype.type(3), b))
    if op == "pow" and operands[1].dtype.kind in "iu":
        a, b = operands
        operands = (a, np.where(b > 40, b.dtype.type(40), b))
    if op == "select":
        operands = (numbers("bool", operands[0].shape, 9), *operands)
    return Case(op, operands, attributes)


def movement(dtype: str, subnormals: bool) -> Iterator[Case]:
    x, empty, cube = numbers(dtype, (4, 5), 1), numbers(dtype, (0, 3), 1), numbers(dtype, (2, 3, 4), 2)
    one = numpy_dtype(dtype).type(1)
    yield Case("reshape", (x,), {"shape": (2, 10)})
    yield Case("reshape", (empty,), {"shape": (3, 0, 2)})
    yield Case("permute", (cube,), {"order": (2, 0, 1)})
    yield Case("permute", (cube,), {"order": (0, 1, 2)})
    yield Case("broadcast", (numbers(dtype, (3, 1), 1),), {"shape": (2, 3, 4)})
    yield Case("broadcast", (numbers(dtype, (), 1),), {"shape": (2, 0)})
    pads = [((1, 0), (0, 2), (0, 0)), ((-1, 2), (1, -2), (0, 0)), ((0, -2), (-3, 3), (2, 1)), ((-4, 0), (0, 0), (0, 0))]
    for low, high, interior in pads:
        yield Case("pad", (x,), {"fill": one, "low": low, "high": high, "interior": interior})
    yield Case("pad", (empty,), {"fill": one, "low": (1, 0), "high": (1, 0), "interior": (1, 0)})
    yield Case("slice", (x,), {"start": (1, 0), "stop": (4, 5), "step": (2, 3)})
    yield Case("slice", (x,), {"start": (1, 5), "stop": (1, 5), "step": (1, 1)})
    yield Case("reverse", (cube,), {"axes": (0, 2)})
    yield Case("reverse", (cube,), {"axes": ()})
    yield Case("reverse", (specials(dtype),), {"axes": (0,)})
    yield Case("concat", (x, numbers(dtype, (4, 0), 1), numbers(dtype, (4, 2), 3)), {"axis": 1})
    yield Case("unfold", (cube,), {"axis": 1, "size": 2, "step": 1, "dilation": 1})
    yield Case("unfold", (x,), {"axis": 1, "size": 2, "step": 2, "dilation": 2})
    yield Case("unfold", (numbers(dtype, (2, 60, 2), 1),), {"axis": 1, "size": 17, "step": 3, "dilation": 2})
    yield Case("strided", (x,), {"shape": (3, 2, 3), "strides": (5, 1, 1), "offset": 2})
    yield Case("strided", (x,), {"shape": (4, 5), "strides": (-5, -1), "offset": 19})
    yield Case("strided", (x,), {"shape": (), "strides": (), "offset": 7})
    yield Case("strided", (x,), {"shape": (2, 3), "strides": (0, 4), "offset": 0})
    yield Case("strided", (empty,), {"shape": (0, 2), "strides": (1, 1), "offset": 0})
    yield from (
        Case("unfold", (laid_out(cube, how),), {"axis": 2, "size": 3, "step": 1, "dilation": 1})
        for how in ("backwards", "spread")
    )


def reduction(dtype: str, subnormals: bool) -> Iterator[Case]:
    cube = numbers(dtype, (2, 3, 4), 5, low=-2, high=2)
    corner = specials(dtype, subnormals=subnormals)
    corner = corner[: len(corner) // 2 * 2].reshape(-1, 2)
    axes: tuple[tuple[int, ...], ...] = ((), (0,), (1, 2), (0, 1, 2))
    for op in ("max", "min"):
        yield from (Case(op, (cube,), {"axes": chosen}) for chosen in axes)
        yield from (Case(op, (corner,), {"axes": chosen}) for chosen in ((0,), (1,), (0, 1)))
        yield from (Case(op, (pair,), {"axes": (0,)}) for pair in zeros(dtype))
        yield Case(op, (numbers(dtype, (0, 3), 1),), {"axes": (1,)})
    for axis in (0, 1, 2):
        yield Case("argmax", (cube,), {"axis": axis})
    yield from (Case("argmax", (corner,), {"axis": axis}) for axis in (0, 1))
    yield Case("argmax", (np.repeat(cube[:1], 3, 0),), {"axis": 0})
    if dtype == "bool":
        return
    accumulate = {"f16": "f32", "bf16": "f32", "i8": "i64", "u8": "u64"}.get(dtype, dtype)
    for op, running in itertools.product(("sum", "prod"), sorted({dtype, accumulate})):
        yield from (Case(op, (cube,), {"axes": chosen, "accumulate": running}) for chosen in axes)
        yield Case(op, (numbers(dtype, (0, 3), 1),), {"axes": (0,), "accumulate": running})
    for axis in (0, 1, 2):
        yield Case("cumsum", (cube,), {"axis": axis, "accumulate": accumulate})
    yield Case("cumsum", (numbers(dtype, (3, 0), 1),), {"axis": 0, "accumulate": dtype})
    if dtype in FLOATS:
        yield from (Case("logsumexp", (cube,), {"axes": chosen}) for chosen in axes)
        rows = np.array([[-np.inf, -np.inf], [np.inf, 0], [np.nan, 0], [-np.inf, 3], [80, 81], [-80, -81]])
        yield Case("logsumexp", (rows.astype(numpy_dtype(dtype)),), {"axes": (1,)})


def zeros(dtype: str) -> list[np.ndarray]:
    return [np.array(pair).astype(numpy_dtype(dtype)) for pair in itertools.product((0.0, -0.0), repeat=2)]


def product_and_lookup(dtype: str, subnormals: bool) -> Iterator[Case]:
    accumulate = {"f16": "f32", "bf16": "f32", "i8": "i32", "u8": "u32"}.get(dtype, dtype)
    shapes = [
        ((3, 4), (4, 5)),
        ((2, 3, 4), (2, 4, 1)),
        ((2, 2, 1, 3), (2, 2, 3, 2)),
        ((3, 0), (0, 2)),
        ((0, 3), (3, 2)),
    ]
    for running in sorted({dtype, accumulate}):
        for a, b in shapes:
            yield Case("matmul", (numbers(dtype, a, 1), numbers(dtype, b, 2)), {"accumulate": running})
    cube = numbers(dtype, (3, 4, 2), 1)
    for axis, where, kind in ((0, (5,), "i32"), (1, (2, 3), "i64"), (2, (), "i64"), (1, (0,), "i32")):
        index = numbers(kind, where, 4, low=0, high=cube.shape[axis] - 1)
        yield Case("gather", (cube, index), {"axis": axis})
        yield Case("within", (index,), {"low": -2, "high": cube.shape[axis]})
        updates = numbers(dtype, (*cube.shape[:axis], *where, *cube.shape[axis + 1 :]), 6)
        yield Case("scatter_add", (cube, index, updates), {"axis": axis})


FAMILIES = {"elementwise": elementwise, "movement": movement, "reduction": reduction, "product": product_and_lookup}


def family(name: str, dtype: str, *, subnormals: bool) -> list[Case]:
    return [] if (name, dtype) == ("product", "bool") else list(FAMILIES[name](dtype, subnormals))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPE_NAMES)
@pytest.mark.parametrize("name", FAMILIES)
def test_xla_agrees_with_the_interpreter(name, dtype):
    cases = family(name, dtype, subnormals=dtype == "f16")
    if cases:
        check(cases)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPE_NAMES)
def test_the_reference_interpreter_agrees_with_the_interpreter(dtype):
    check([case for name in FAMILIES for case in family(name, dtype, subnormals=True)], run_reference)


def test_every_op_has_a_lowering_and_is_in_the_cases():
    arguments = {"input", "parameter"}
    assert set(lowerings()) == set(definitions()) - arguments
    pairs = (("f32", FAMILIES), ("bool", ["elementwise"]), ("i32", ["elementwise"]))
    reached = {case.op for dtype, names in pairs for name in names for case in family(name, dtype, subnormals=True)}
    assert reached == set(definitions()) - arguments - {"constant", "iota", "opaque", "pick"}
