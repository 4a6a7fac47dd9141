"""What a plan tells of a recorded op's memory is what the op takes: every op, dtype by dtype, contiguous operands and turned ones."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import topos_core as tp
from tests.laws.cases import Case, numbers, pairs, specials, tape_of
from tests.laws.random_cases import COMPUTED, ELEMENTWISE, NUMBERS, REDUCED, SHAPED
from topos_core.matching.catalog import patterns
from topos_core.ops.catalog import definition
from topos_core.ops.pieces import PIECE
from topos_core.run.executor import execute, make_program
from topos_core.tape.type import DTYPE_NAMES, FLOATS, dtype_name, numpy_dtype

SHAPE = (512, 1024)
SLACK = 400 << 10
"""Bytes of a few pieces."""
SETTLED = ("exp", "expm1", "log", "log1p", "tanh", "erf", "sin", "cos", "pow", "cumsum", "matmul")
"""Ops whose results always lie row by row."""
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def array(dtype: str, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    """Draws numbers from 1 to 3, so that nothing is divided by zero."""
    return numbers(dtype, shape, 0, low=1, high=3)


def cases(op: str) -> Iterator[Case]:
    if op in ELEMENTWISE:
        arity, dtypes = ELEMENTWISE[op]
        for dtype in dtypes:
            operands = [array(dtype) for _ in range(arity)]
            if op == "select":
                yield Case(op, (array("bool"), *operands), {})
            elif op == "cast":
                yield from (Case(op, tuple(operands), {"dtype": to}) for to in DTYPE_NAMES)
            else:
                yield Case(op, tuple(operands), {"kind": "lt"} if op == "compare" else {})
    elif op in REDUCED:
        places: list[dict[str, Any]] = [{"axis": axis} for axis in (0, 1)]
        if op not in ("argmax", "cumsum"):
            places = [{"axes": axes} for axes in ((0,), (1,), (0, 1))]
        for dtype in FLOATS if op == "logsumexp" else NUMBERS:
            for place in places:
                for running in _running(op, dtype):
                    yield Case(op, (array(dtype),), place | running)
    elif op == "matmul":
        for dtype in (*FLOATS, "u8", "i64"):
            sides = array(dtype, (512, 64)), array(dtype, (64, 1024))
            yield from (Case(op, sides, running) for running in _running(op, dtype))
    elif op == "gather":
        rows = np.arange(SHAPE[0])[::-1].copy()
        yield from (Case(op, (array(dtype), rows), {"axis": 0}) for dtype in NUMBERS)
    elif op == "scatter_add":
        rows = np.arange(SHAPE[0]) // 2
        yield from (Case(op, (array(dtype), rows, array(dtype)), {"axis": 0}) for dtype in NUMBERS)
    elif op == "within":
        yield Case(op, (array("i64"),), {"low": 0, "high": 4})


def _running(op: str, dtype: str) -> Sequence[dict[str, str]]:
    """Lists what a running value may be: the operand's dtype, or a wider one."""
    if op not in ("sum", "prod", "cumsum", "matmul"):
        return [{}]
    wider = "f32" if dtype in FLOATS[:2] else "f64" if dtype in FLOATS else "i64"
    return [{"accumulate": each} for each in dict.fromkeys((dtype, wider))]


@pytest.mark.parametrize("turned", [False, True], ids=["plain", "turned"])
@pytest.mark.parametrize("op", [op for op in COMPUTED if op not in SHAPED])
def test_an_op_takes_what_its_plan_tells(op: str, turned: bool) -> None:
    count = 0
    for case in cases(op):
        tape = tape_of([case])
        plan = tp.plan(tape, off=sorted(patterns())).data
        program = make_program(plan)
        given = [np.asarray(x, order="F") if turned else x for x in case.operands]
        with np.errstate(all="ignore"):
            execute(program, plan, given, 1)
            program.pool.free.clear()
            tracemalloc.start()
            try:
                kept = execute(program, plan, given, 1)
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
        del kept
        told = max(plan.liveness.peak_bytes, plan.arena.bytes + plan.arena.outside)
        copies = sum(x.nbytes for x in case.operands) if turned else 0  # a plan does not know how an input lies
        assert abs(peak - told) <= 0.1 * told + SLACK + copies, (str(case), told >> 10, peak >> 10)
        count += 1
    assert count


@pytest.mark.parametrize("op", [op for op in COMPUTED if op not in SHAPED])
def test_an_op_writes_the_bits_that_it_gives(op: str) -> None:
    """Operands are all pairs of special values, in more than one piece; results lie row by row, and column by column where they may."""
    row = definition(op)
    for case in cases(op):
        operands = case.operands
        if op in ELEMENTWISE:
            kinds = [dtype_name(x.dtype) or "" for x in operands]
            values = [each for kind in kinds for each in pairs(specials(kind))]
            operands = tuple(np.resize(each, (PIECE // 256 + 3, 259)) for each in values[-len(operands) :])
            operands = tuple(x.astype(numpy_dtype(kind)) for x, kind in zip(operands, kinds, strict=True))
        case = case._replace(operands=operands)
        with np.errstate(all="ignore"):
            wanted = row.evaluate(operands, case.attributes, case.type)
            if row.into is None:
                continue
            for order in ("C", "F") if wanted.ndim == 2 and op not in SETTLED else ("C",):
                out = np.empty(wanted.shape, wanted.dtype, order=order)
                row.into(operands, case.attributes, case.type, out)
                nan = wanted != wanted
                same = (out != out) == nan
                assert same.all(), str(case)
                assert out[~nan].tobytes() == wanted[~nan].tobytes(), (str(case), order)


def test_a_product_of_halves_tells_its_operands_in_f32() -> None:
    case = Case("matmul", (array("f16", (256, 384)), array("f16", (384, 512))), {"accumulate": "f32"})
    plan = tp.plan(tape_of([case]), off=sorted(patterns())).data
    assert plan.liveness.scratch == ((256 * 384 + 384 * 512 + 256 * 512) * 4,)
    assert numpy_dtype("f16").itemsize * 256 * 512 == plan.arena.outside
