from __future__ import annotations

from tests.core.plan.matches import match
from tests.support.tapes import TapeBuilder
from topos_core.matching.match import Match
from topos_core.plan.liveness import Liveness, liveness, recorded_places
from topos_core.plan.schedule import schedule
from topos_core.tape.tape import Tape


def live(tape: Tape, taken: list[Match] | None = None, temporary: dict[int, int] | None = None) -> Liveness:
    return liveness(tape, schedule(tape, taken or [], tape.results), temporary or {}, recorded_places(tape))


def chain() -> tuple[Tape, int, list[int]]:
    b = TapeBuilder()
    x = b.input("x", "f32[10]")
    values = [b.op("abs", x)]
    for _ in range(3):
        values.append(b.op("neg", values[-1]))
    return b.tape(values[-1]), x, values


def test_a_chain_holds_two_buffers_at_once_and_its_result_at_the_end() -> None:
    tape, _, _ = chain()
    assert live(tape) == Liveness((40, 40, 40, 40), peak_bytes=80, peak_step=1)


def test_a_taken_region_holds_only_its_result_and_its_scratch() -> None:
    tape, x, values = chain()
    whole = match(tape, "elementwise_chain", values[-1], {"x": x})
    assert live(tape, [whole]) == Liveness((40,), peak_bytes=40, peak_step=0)
    assert live(tape, [whole], {values[-1]: 7}).peak_bytes == 47


def test_views_cost_nothing_and_hold_their_base() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[4,5]")
    a = b.op("abs", x)
    turned = b.op("permute", a, order=(1, 0))
    part = b.op("slice", turned, start=(0, 0), stop=(5, 2), step=(1, 1))
    out = b.op("neg", part)
    assert live(b.tape(out)) == Liveness((80, 80, 80, 40), peak_bytes=120, peak_step=3)


def test_a_view_of_an_input_is_free() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[4,5]")
    assert live(b.tape(b.op("permute", x, order=(1, 0)))) == Liveness((0,), 0, 0)


def test_a_reshape_that_copies_is_a_buffer_of_its_own() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[4,5]")
    flat = b.op("reshape", b.op("permute", x, order=(1, 0)), shape=(20,))
    assert live(b.tape(flat)).peak_bytes == 80


def test_operands_that_are_made_contiguous_count_while_the_op_runs() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[4,4]")
    product = b.op("matmul", x, b.op("permute", x, order=(1, 0)), accumulate="f32")
    assert live(b.tape(product)) == Liveness((0, 64), peak_bytes=128, peak_step=1)


def test_a_named_result_that_nobody_reads_is_dropped_at_once() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[8,2]")
    mean = b.op("sum", x, axes=(0,), accumulate="f32")
    root = b.op("sub", x, b.op("broadcast", mean, shape=(8, 2)))
    tape = b.tape(root)
    norm = match(tape, "batch_norm_training", root, {"x": x}, named={"mean": (mean,)})
    assert live(tape, [norm]) == Liveness((64,), peak_bytes=72, peak_step=0)


def test_nothing_to_run_has_no_peak() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[4]")
    assert live(b.tape(x)) == Liveness((), 0, 0)


def test_a_region_that_writes_a_contiguous_result_saves_the_copy_behind_it() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[4,5]")
    turned = b.op("permute", x, order=(1, 0))
    out = b.op("neg", b.op("abs", turned))  # as recorded both keep the transposed order
    flat = b.op("reshape", out, shape=(20,))  # so this copies
    tape = b.tape(flat)
    assert live(tape).peak_bytes == 160
    assert live(tape, [match(tape, "elementwise_chain", out, {"x": x})]).peak_bytes == 80
