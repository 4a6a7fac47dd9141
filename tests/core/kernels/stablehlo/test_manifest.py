from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.core.emission.programs import Program, batch_norm, convolution, epilogue, window_reduce
from topos_core.emission.raises.catalog import raises
from topos_core.kernels.kernel import Decline, Offer
from topos_core.kernels.stablehlo.fidelity import MEASURED, WORSE
from topos_core.kernels.stablehlo.manifest import ROWS, StableHlo
from topos_core.plan.request import Request


def answer(
    record: Any, dialect: str = "portable", changes: dict[str, Any] | None = None, **options: Any
) -> Offer | Decline:
    program = Program()
    record(program, **options)
    (match,) = program.matches
    if changes:
        match = dataclasses.replace(match, facts=dataclasses.replace(match.facts, **changes))
    request = Request(consumer="stablehlo", dialect=dialect)  # type: ignore[arg-type]
    return StableHlo().offer(program.tape.tape(match.root), match, request)


def test_every_pattern_with_a_row_has_a_raise_and_the_other_way_round():
    assert set(ROWS) == set(raises())


@pytest.mark.parametrize(
    ("record", "options", "kernel", "exact"),
    [
        (convolution, {}, "stablehlo.convolution", False),
        (window_reduce, {}, "stablehlo.reduce_window", True),
        (window_reduce, {"reducer": "sum"}, "stablehlo.reduce_window", False),
        (batch_norm, {}, "stablehlo.batch_norm_training", False),
        (batch_norm, {"training": False}, "stablehlo.batch_norm_inference", False),
    ],
)
def test_named_ops_are_offered(record, options, kernel, exact):
    offer = answer(record, **options)
    assert isinstance(offer, Offer)
    assert (offer.kernel, offer.exact) == (kernel, exact)


def test_a_convolution_counts_two_flops_a_tap_and_every_border_byte_once():
    offer = answer(convolution)
    assert offer.work.flops == 2 * (2 * 5 * 6 * 4) * (3 * 3 * 3)
    assert offer.work.bytes_read == 4 * (2 * 3 * 7 * 8 + 3 * 3 * 3 * 4)
    assert offer.work.bytes_written == 4 * (2 * 5 * 6 * 4)


def test_a_batch_norm_counts_its_named_results_as_written():
    assert answer(batch_norm).work.bytes_written == 4 * (4 * 3 * 5 + 3 + 3)


@pytest.mark.parametrize(
    ("record", "options", "changes", "code", "words"),
    [
        (epilogue, {"bias": True}, {}, "TP206", "; its convolution is raised itself"),
        (epilogue, {"norm": True}, {}, "TP206", "; its convolution and batch norm are raised themselves"),
        (batch_norm, {"dtype": "f64"}, {"epsilon": 0.1}, "TP207", "0.1 is no f32 number"),
        (window_reduce, {"dtype": "i32"}, {"scale": 0.25}, "TP207", "an average of i32"),
    ],
)
def test_what_the_dialect_cannot_hold_is_declined(record, options, changes, code, words):
    decline = answer(record, changes=changes, **options)
    assert isinstance(decline, Decline)
    assert decline.code == code
    assert words in decline.reason


def test_an_epsilon_that_f32_holds_is_offered_in_f64_too():
    assert isinstance(answer(batch_norm, changes={"epsilon": 2.0**-17}, dtype="f64"), Offer)


@pytest.mark.parametrize("dialect", ["xla", "iree"])
def test_a_target_that_loses_too_much_is_declined_with_both_errors(dialect):
    decline = answer(batch_norm, dialect)
    assert isinstance(decline, Decline)
    assert (decline.code, decline.word) == ("TP205", "fidelity")
    assert decline.numbers["raised_error"] > WORSE * decline.numbers["recorded_error"]
    assert "one-pass variance" in decline.reason


@pytest.mark.parametrize("dialect", ["xla", "iree"])
def test_a_target_whose_loss_rounding_the_input_explains_is_offered(dialect):
    assert isinstance(answer(batch_norm, dialect, training=False), Offer)
    assert isinstance(answer(convolution, dialect), Offer)


@pytest.mark.parametrize(("raised", "kept"), [(15.9, True), (16.0, True), (16.1, False)])
def test_the_threshold_is_sixteen_times_the_larger_excuse(raised, kept):
    row = MEASURED[0]._replace(raised_error=raised * 3e-5, recorded_error=1e-6, rounding_error=3e-5)
    assert row.keeps_fidelity is kept


def test_a_pattern_without_an_op_is_declined():
    program = Program()
    convolution(program)
    match = dataclasses.replace(program.matches[0], pattern="softmax")
    decline = StableHlo().offer(program.tape.tape(match.root), match, Request(consumer="stablehlo"))
    assert isinstance(decline, Decline)
    assert (decline.code, decline.reason) == ("TP206", "StableHLO has no op for softmax")
