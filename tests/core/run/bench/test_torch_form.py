"""A tape in torch gives what the interpreter gives, wherever both define it."""

import numpy as np
import pytest
from hypothesis import assume, given, settings

from tests.laws.cases import tape_of
from tests.laws.random_cases import COMPUTED, cases
from topos_core.ops.catalog import definitions
from topos_core.run.bench.torch_form import Untranslated, array_of, calls, tensor_of, torch_function
from topos_core.run.interpreter import interpret
from topos_core.tape.parse import parse_tape

pytest.importorskip("torch")

KNOWN_TO_TORCH = ("f32", "f64", "i32", "i64", "u8", "bool")
UNLIKE = ("pow", "remainder", "sign", "round")  # integer powers and signs of zero are torch's own


def test_every_op_that_computes_has_a_form_in_torch():
    assert set(COMPUTED) <= calls().keys() <= definitions().keys()


@given(cases())
@settings(max_examples=200, deadline=None)
def test_an_op_in_torch_gives_the_interpreters_finite_values(case):
    kinds = [*case.types, case.type]
    assume(all(kind.dtype in KNOWN_TO_TORCH for kind in kinds))
    assume(not (case.op in UNLIKE and case.type.dtype not in ("f32", "f64")))
    assume(case.op != "cast" or case.types[0].dtype not in ("f32", "f64") or case.type.dtype in ("f32", "f64", "bool"))
    tape = tape_of([case])
    expected = interpret(tape, case.operands)[0]
    function, held = torch_function(tape)
    got = array_of(function(*map(tensor_of, case.operands), *held)[0])
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    firm = np.isfinite(expected) if expected.dtype.kind == "f" else np.ones(expected.shape, bool)
    np.testing.assert_allclose(got[firm], expected[firm], rtol=3e-5, atol=3e-5)


def test_parameters_and_constants_are_ready_before_the_function_runs():
    text = """
        %0 = input() : f32[2]
        %1 = parameter() : f32[2]
        %2 = constant() value=f32:3.0 : f32[2]
        %3 = mul(%0, %1) : f32[2]
        %4 = add(%3, %2) : f32[2]
        return (%4,)
        default %1 f32[2]:(5.0, 7.0)
    """
    function, held = torch_function(parse_tape(text))
    assert [each.tolist() for each in held] == [[5.0, 7.0], [3.0, 3.0]]
    assert function(tensor_of(np.array([1.0, 2.0], np.float32)), *held)[0].tolist() == [8.0, 17.0]


def test_a_foreign_op_is_refused_by_name():
    text = """
        %0 = input() : f32[2]
        %1 = opaque(%0) foreign="thing" types=(f32[2],) note="" : f32[2]
        return (%1,)
    """
    with pytest.raises(Untranslated, match="opaque"):
        torch_function(parse_tape(text))
