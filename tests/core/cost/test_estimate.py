from __future__ import annotations

import pytest

from tests.support.tapes import TapeBuilder
from topos_core.cost.estimate import Estimate, recorded_op
from topos_core.cost.memory import Placed, place
from topos_core.cost.profiles import machine
from topos_core.ops.catalog import definition
from topos_core.tape.tape import Tape

REFERENCE = machine("reference")
NUMPY = REFERENCE.recorded


def estimates(tape: Tape) -> list[Estimate]:
    places: list[Placed] = []
    found = []
    for value, op in enumerate(tape.ops):
        placement = place(tape, value, places.__getitem__)
        places.append(placement.placed)
        types = [tape.type_of(o) for o in op.operands]
        row = definition(op.name)
        found.append(recorded_op(op, types, row.kind, row.work(types, op.attributes, op.type), placement, REFERENCE))
    return found


def last(name: str, *kinds: str, **attributes: object) -> Estimate:
    b = TapeBuilder()
    value = b.op(name, *(b.input(f"x{k}", kind) for k, kind in enumerate(kinds)), **attributes)
    return estimates(b.tape(value))[-1]


def test_sources_cost_nothing_and_views_only_their_call() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[64,64]")
    b.constant(1.0, "f32[64,64]")
    view = b.op("permute", x, order=(1, 0))
    source, constant, permuted = estimates(b.tape(view))
    assert (
        source
        == constant
        == Estimate(last("abs", "f32[1]").work._replace(flops=0, bytes_read=0, bytes_written=0), 0, 0.0)
    )
    assert (permuted.calls, permuted.seconds) == (0, NUMPY.view_seconds)


def test_a_reshape_that_is_no_view_counts_its_copy() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[64,32]")
    flat = b.op("reshape", b.op("permute", x, order=(1, 0)), shape=(2048,))
    copy = estimates(b.tape(flat))[-1]
    assert (copy.work.bytes_read, copy.work.bytes_written, copy.calls) == (8192, 8192, 1)
    assert copy.seconds >= 2048 * NUMPY.strided_element_seconds


def test_a_matmul_of_a_transposed_operand_pays_for_making_it_contiguous() -> None:
    b = TapeBuilder()
    x, w = b.input("x", "f32[64,64]"), b.input("w", "f32[64,64]")
    direct = b.op("matmul", x, w, accumulate="f32")
    turned = b.op("matmul", x, b.op("permute", w, order=(1, 0)), accumulate="f32")
    found = estimates(b.tape(direct, turned))
    assert found[turned].work.bytes_read - found[direct].work.bytes_read == 64 * 64 * 4
    assert found[turned].seconds > found[direct].seconds


def test_a_large_matmul_runs_near_blas_speed_and_a_thin_one_does_not() -> None:
    large = last("matmul", "f32[512,512]", "f32[512,512]", accumulate="f32")
    thin = last("matmul", "f32[131072,16]", "f32[16,64]", accumulate="f32")
    assert large.work.flops == thin.work.flops
    assert 200e9 < large.work.flops / large.seconds < 263e9
    assert thin.seconds > 1.3 * large.seconds


def test_dtypes_without_blas_are_slow() -> None:
    fast, slow = (last("matmul", f"{d}[256,256]", f"{d}[256,256]", accumulate=d) for d in ("f32", "i64"))
    assert slow.seconds > 50 * fast.seconds
    assert last("add", "f16[65536]", "f16[65536]").seconds > 10 * last("add", "f32[65536]", "f32[65536]").seconds


def test_small_inner_rows_make_a_reduction_slow() -> None:
    rows = last("max", "f32[4096,9]", axes=(1,))
    columns = last("max", "f32[9,4096]", axes=(0,))
    assert rows.seconds > 2 * columns.seconds


@pytest.mark.parametrize("name", ["exp", "tanh", "erf", "sqrt"])
def test_transcendentals_cost_more_than_traffic(name: str) -> None:
    assert last(name, "f32[65536]").seconds > last("abs", "f32[65536]").seconds


def test_zero_sizes_cost_a_call() -> None:
    assert last("add", "f32[0,4]", "f32[0,4]").seconds == NUMPY.call_seconds
    assert last("matmul", "f32[4,0]", "f32[0,4]", accumulate="f32").seconds < 2 * NUMPY.call_seconds
    assert last("exp", "f32[0,4]").seconds == NUMPY.call_seconds
