from __future__ import annotations

import dataclasses
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

from topos_core.emission.backend import BACKENDS, BackendFailure, parse, run_reference, run_xla
from topos_core.emission.module import emit
from topos_core.emission.verify import verify
from topos_core.errors import ConfigurationError
from topos_core.run.interpreter import interpret
from topos_core.tape.parse import parse_tape

PROGRAM = """
%0 "x" = input() : f32[2,3]
%1 "w" = parameter() : f32[3,2]
%2 = matmul(%0, %1) accumulate=f32 : f32[2,2]
%3 = tanh(%2) : f32[2,2]
return (%3, %0)
default %1 f32[3,2]:(1.0, -0.5, 0.25, 2.0, 0.0, 1.0)
"""
X = np.array([[0.1, 0.2, 0.3], [-0.4, 0.5, 0.6]], np.float32)


def verified(text=None, expected=None, backends=BACKENDS):
    tape = parse_tape(PROGRAM)
    return verify(text or emit(tape), tape, [X], expected or interpret(tape, [X]), backends=backends)


def test_a_module_is_parsed_verified_and_run_with_its_differences():
    found = verified()
    assert (found.parsed, found.verified, found.error) == (True, True, None)
    assert [row.backend for row in found.comparisons] == ["xla", "reference"]
    assert found.ran
    for row in found.comparisons:
        assert len(row.differences) == 2
        assert row.largest.absolute < 1e-6
        assert row.largest.relative < 1e-6


def test_a_wrong_result_is_told_in_both_measures():
    tape = parse_tape(PROGRAM)
    right = interpret(tape, [X])
    found = verified(expected=(right[0] + np.float32(0.5), right[1]))
    assert found["xla"].largest.absolute == pytest.approx(0.5, abs=1e-6)
    assert found["xla"].largest.relative > 0.1


def test_text_that_is_no_stablehlo_is_not_parsed():
    found = verified("module { func.func @main() { stablehlo.wrong } }")
    assert (found.parsed, found.verified) == (False, False)
    assert "stablehlo.wrong" in found.error


def test_text_whose_types_do_not_fit_is_parsed_but_not_verified():
    text = "module { func.func @main(%a: tensor<2xf32>) -> tensor<3xf32> { return %a : tensor<2xf32> } }"
    found = verified(text)
    assert (found.parsed, found.verified) == (True, False)
    assert "tensor<3xf32>" in found.error


def test_a_backend_that_fails_is_told_with_its_reason():
    def refuse(text, inputs):
        raise BackendFailure("no such op")

    found = verified(backends={"mine": refuse})
    assert found["mine"].reason == "no such op"
    assert not found.ran


def test_an_op_that_a_backend_lacks_says_nothing_about_the_module():
    tensor = "tensor<2x3xf32>"
    text = (
        f"module {{ func.func @main(%x: {tensor}, %c: tensor<3xf32>) -> {tensor} {{"
        '%0 = "stablehlo.batch_norm_inference"(%x, %c, %c, %c, %c) {epsilon = 1.0e-5 : f32, feature_index = 1 : i64}'
        f" : ({tensor}, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> {tensor} return %0 : {tensor} }} }}"
    )
    ones = np.ones(3, np.float32)
    tape = parse_tape('%0 "x" = input() : f32[2,3]\n%1 "c" = input() : f32[3]\nreturn (%0)\n')
    found = verify(text, tape, [X, ones], [(X - 1) / np.sqrt(np.float32(1 + 1e-5)) + 1])
    assert (found["reference"].ran, found["reference"].offered) == (False, False)
    assert found["reference"].reason == "it has no batch_norm_inference"
    assert found["xla"].ran
    assert found.ran
    assert not verify(text, tape, [X, ones], [X], backends={"reference": run_reference}).ran


def test_a_backend_with_other_types_is_told():
    found = verified(backends={"mine": lambda text, inputs: [x.astype(np.float64) for x in (inputs[0], inputs[0])]})
    assert "float64" in found["mine"].reason


def test_the_reference_interpreter_may_abort_without_harm():
    text = """module { func.func @main(%a: tensor<4xf32>) -> tensor<3xf32> {
      %y = stablehlo.fft %a, type = RFFT, length = [4] : (tensor<4xf32>) -> tensor<3xcomplex<f32>>
      %z = stablehlo.real %y : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
      return %z : tensor<3xf32> } }"""
    inputs = [np.array([1, 2, 3, 4], np.float32)]
    with pytest.raises(BackendFailure, match=r"signal|status"):
        run_reference(text, inputs)
    assert np.allclose(run_xla(text, inputs)[0], np.fft.rfft(inputs[0]).real, atol=1e-5)


def test_the_reference_interpreter_is_stopped_when_it_takes_too_long():
    with pytest.raises(BackendFailure, match=r"longer than 0\.01 s"):
        run_reference(emit(parse_tape(PROGRAM)), [X, X.reshape(3, 2)], seconds=0.01)


def test_a_backend_that_takes_too_long_leaves_the_judgement_to_the_others():
    slow = partial(run_reference, seconds=0.01)
    found = verified(backends={"reference": slow, "xla": run_xla})
    assert (found["reference"].ran, found["reference"].offered, found["xla"].ran, found.ran) == (
        False,
        False,
        True,
        True,
    )
    assert not verified(backends={"reference": slow}).ran


def test_a_missing_jax_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "jaxlib.mlir", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'topos-inspector\[jax\]'") as failure:
        parse("module {}")
    assert failure.value.code == "TP506"


@pytest.mark.parametrize("module", ["topos_core.emission.module", "topos_core.emission.verify"])
def test_importing_emission_loads_no_jax(module):
    code = f"import sys, {module}; print([m for m in ('jax', 'jaxlib', 'numba') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_parameters_can_be_replaced():
    tape = parse_tape(PROGRAM)
    other = np.full((3, 2), 0.25, np.float32)
    expected = interpret(tape, [X], {1: other})
    found = verify(emit(tape), tape, [X], expected, parameters={1: other}, backends={"xla": run_xla})
    assert found["xla"].largest.absolute < 1e-6
    assert dataclasses.asdict(found)["verified"]
