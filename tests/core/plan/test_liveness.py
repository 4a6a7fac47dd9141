from __future__ import annotations

from itertools import pairwise
from typing import Any

from tests.core.plan.matches import match
from tests.support.tapes import TapeBuilder
from topos_core.cost.work import Work
from topos_core.kernels.kernel import Offer
from topos_core.matching.match import Match
from topos_core.plan.kinds import kinds
from topos_core.plan.liveness import Liveness, liveness
from topos_core.plan.schedule import schedule
from topos_core.tape.tape import Tape


def live(tape: Tape, taken: list[Match] | None = None, in_place: bool = False, **offer: Any) -> Liveness:
    offers = {match.root: Offer("kernel", Work(), True, **offer) for match in taken or []}
    return liveness(tape, schedule(tape, taken or [], tape.results), offers, kinds(tape).places(), in_place=in_place)


def told(live: Liveness) -> tuple[tuple[int, ...], int, int]:
    return live.bytes, live.peak_bytes, live.peak_step


def chain() -> tuple[Tape, int, list[int]]:
    b = TapeBuilder()
    x = b.input("x", "f32[10]")
    values = [b.op("abs", x)]
    for _ in range(3):
        values.append(b.op("neg", values[-1]))
    return b.tape(values[-1]), x, values


def test_a_chain_holds_two_buffers_at_once_and_its_result_at_the_end() -> None:
    tape, _, _ = chain()
    assert told(live(tape)) == ((40, 40, 40, 40), 80, 1)


def test_a_taken_region_holds_only_its_result_and_its_scratch() -> None:
    tape, x, values = chain()
    whole = match(tape, "elementwise_chain", values[-1], {"x": x})
    assert told(live(tape, [whole])) == ((40,), 40, 0)
    assert live(tape, [whole], temporary_bytes=7).peak_bytes == 47


def test_views_cost_nothing_and_hold_their_base() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[4,5]")
    a = b.op("abs", x)
    turned = b.op("permute", a, order=(1, 0))
    part = b.op("slice", turned, start=(0, 0), stop=(5, 2), step=(1, 1))
    out = b.op("neg", part)
    assert told(live(b.tape(out))) == ((80, 80, 80, 40), 120, 3)


def test_a_view_of_an_input_is_free() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[4,5]")
    assert told(live(b.tape(b.op("permute", x, order=(1, 0))))) == ((0,), 0, 0)


def test_a_reshape_that_copies_is_a_buffer_of_its_own() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[4,5]")
    flat = b.op("reshape", b.op("permute", x, order=(1, 0)), shape=(20,))
    assert live(b.tape(flat)).peak_bytes == 80


def test_operands_that_are_made_contiguous_count_while_the_op_runs() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[4,4]")
    product = b.op("matmul", x, b.op("permute", x, order=(1, 0)), accumulate="f32")
    assert told(live(b.tape(product))) == ((0, 64), 128, 1)


def test_a_named_result_that_nobody_reads_is_dropped_at_once() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[8,2]")
    mean = b.op("sum", x, axes=(0,), accumulate="f32")
    root = b.op("sub", x, b.op("broadcast", mean, shape=(8, 2)))
    tape = b.tape(root)
    norm = match(tape, "batch_norm_training", root, {"x": x}, named={"mean": (mean,)})
    assert told(live(tape, [norm])) == ((64,), 72, 0)


def test_nothing_to_run_has_no_peak() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[4]")
    assert told(live(b.tape(x))) == ((), 0, 0)


def test_a_region_that_writes_a_contiguous_result_saves_the_copy_behind_it() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[4,5]")
    turned = b.op("permute", x, order=(1, 0))
    out = b.op("neg", b.op("abs", turned))  # as recorded both keep the transposed order
    flat = b.op("reshape", out, shape=(20,))  # so this copies
    tape = b.tape(flat)
    assert live(tape).peak_bytes == 160
    assert live(tape, [match(tape, "elementwise_chain", out, {"x": x})]).peak_bytes == 80


def test_a_result_is_written_over_an_operand_that_ends_there() -> None:
    tape, _, values = chain()
    run = live(tape, in_place=True)
    assert told(run) == ((40, 40, 40, 40), 40, 0)
    assert run.over == {after: before for before, after in pairwise(values)}
    whole = match(tape, "elementwise_chain", values[-1], {"x": values[0]})
    assert live(tape, [whole], in_place=True).over == {}  # unless its kernel says so
    assert live(tape, [whole], in_place=("x",)).peak_bytes == 80
    assert liveness(
        tape, schedule(tape, [whole], tape.results), {whole.root: Offer("k", Work(), True, in_place=("x",))},
        kinds(tape).places(),
    ).over == {values[-1]: values[0]}  # fmt: skip


def test_nothing_is_written_over_what_somebody_reads_later_or_beside() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[4,4]")
    a = b.op("abs", x)
    turned = b.op("permute", a, order=(1, 0))
    tape = b.tape(b.op("add", a, turned))
    assert live(tape, in_place=True).over == {}
    later = b.op("neg", a)
    tape = b.tape(b.op("add", b.op("neg", later), a))
    assert set(live(tape, in_place=True).over.values()) <= {later, later + 1}


def test_a_function_whose_bits_depend_on_layout_is_written_elsewhere() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[10]")
    tape = b.tape(b.op("exp", b.op("abs", x)))
    assert live(tape, in_place=True).over == {}


def test_the_producers_of_one_named_result_share_its_buffer() -> None:
    b = TapeBuilder()
    x = b.input("x", "f32[8,2]")
    mean = b.op("sum", x, axes=(0,), accumulate="f32")
    again = b.op("reshape", mean, shape=(1, 2))
    root = b.op("sub", x, b.op("broadcast", mean, shape=(8, 2)))
    tape = b.tape(root, again)
    norm = match(tape, "batch_norm_training", root, {"x": x}, named={"mean": (mean, again)})
    assert told(live(tape, [norm])) == ((72,), 72, 0)
