"""Inference, evaluation, layouts and text of random op applications."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.cases import Case, tape_of
from tests.laws.random_cases import COMPUTED, LAYOUTS, cases, laid_out
from topos_core.digest import tape_digest
from topos_core.ops.catalog import definitions
from topos_core.ops.verify import seal, verify
from topos_core.tape.parse import parse_tape
from topos_core.tape.text import tape_text
from topos_core.tape.type import numpy_dtype

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def evaluated(case: Case) -> np.ndarray:
    with np.errstate(all="ignore"):
        return case.definition.evaluate(case.operands, case.attributes, case.type)


def test_the_strategies_reach_every_op_that_computes():
    unbound = {"input", "parameter", "constant", "iota", "opaque", "pick"}
    assert set(COMPUTED) == set(definitions()) - unbound


@given(cases())
@settings(max_examples=600, deadline=None)
def test_evaluation_gives_the_type_that_inference_promised(case):
    got, promised = evaluated(case), case.type
    assert isinstance(got, np.ndarray)
    assert got.shape == promised.shape
    assert got.dtype == numpy_dtype(promised.dtype)


@given(cases(), st.data())
@settings(max_examples=600, deadline=None)
def test_no_bit_depends_on_memory_layout_and_no_operand_is_written(case, data):
    moved = tuple(laid_out(x, data.draw(st.sampled_from(LAYOUTS))) for x in case.operands)
    before = [x.copy() for x in moved]
    assert evaluated(case._replace(operands=moved)).tobytes() == evaluated(case).tobytes()
    assert all(x.tobytes() == y.tobytes() for x, y in zip(moved, before, strict=True))


@given(cases())
@settings(max_examples=200, deadline=None)
def test_work_is_counted_in_whole_numbers_and_never_negative(case):
    work = case.definition.work(case.types, case.attributes, case.type)
    assert all(isinstance(count, int) and count >= 0 for count in work)


@given(st.lists(cases(), min_size=1, max_size=4))
@settings(max_examples=150, deadline=None)
def test_a_tape_survives_its_own_text(drawn):
    tape = tape_of(drawn)
    verify(tape)
    text = tape_text(tape)
    again = parse_tape(text)
    assert tape_text(again) == text
    assert tape_digest(again) == tape_digest(seal(tape)) == tape_digest(tape)
