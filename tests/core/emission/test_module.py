from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.support.tapes import TapeBuilder
from topos_core.emission.backend import parse, run_reference, run_xla
from topos_core.emission.module import emit, emit_matches, emitted_results
from topos_core.errors import ConfigurationError, InternalError
from topos_core.matching.facts import ConvolutionFacts, Layout, Window, WindowReduceFacts
from topos_core.matching.match import Match
from topos_core.ops.verify import verify
from topos_core.run.interpreter import interpret
from topos_core.tape.parse import parse_tape

HERE = Path(__file__).parent
CONVOLUTION = Match(
    "convolution",
    9,
    {"x": 2, "kernel": 8},
    frozenset({3, 4, 5, 6}),
    frozenset({9}),
    {},
    ConvolutionFacts(
        image=Layout((1, 1, 6, 6), ("b", "f", "0", "1"), (0, 1, 2, 3)),
        kernel=Layout((3, 3, 2), ("0", "1", "o"), (0, 1, 2)),
        result=Layout((4, 4, 2), ("0", "1", "f"), (0, 1, 2)),
        windows=(Window(3), Window(3)),
        groups=1,
        batch=1,
        in_channels=1,
        out_channels=2,
    ),
)
POOL = Match(
    "window_reduce",
    27,
    {"x": 15},
    frozenset(range(16, 27)),
    frozenset({26, 27}),
    {},
    WindowReduceFacts(
        "max",
        (Window(), Window(), Window(2, 2), Window(2, 2)),
        Layout((1, 2, 2, 2), ("0", "1", "2", "3"), (0, 1, 2, 3)),
        None,
    ),
)


def seed():
    tape = parse_tape((HERE / "seed.tape").read_text())
    verify(tape)
    return tape


def test_the_seed_example_is_emitted_as_the_seed_shows_it():
    assert emit_matches(seed(), [CONVOLUTION, POOL], locations=False) == (HERE / "seed.mlir").read_text()


@pytest.mark.parametrize("matches", [[], [CONVOLUTION], [POOL], [CONVOLUTION, POOL]])
def test_the_seed_example_computes_the_same_whatever_is_taken(matches):
    tape = seed()
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(tape.ops[value].type.shape).astype(np.float32) for value in tape.inputs]
    text, (expected,) = emit_matches(tape, matches), interpret(tape, inputs)
    for run in (run_xla, run_reference):
        np.testing.assert_allclose(run(text, inputs)[0], expected, atol=2e-6)


def test_interiors_that_nobody_else_reads_are_not_emitted():
    text = emit_matches(seed(), [CONVOLUTION, POOL])
    assert not re.search(r"gather|slice|concatenate|dot_general", text)


def test_an_interior_that_an_observation_reads_is_emitted_beside_the_match():
    tape = seed()
    text = emit_matches(tape, [CONVOLUTION, POOL], observed=[4, 27, 4])
    assert emitted_results(tape, [4, 27, 4]) == (27, 4)
    assert "stablehlo.convolution(" in text
    assert "-> (tensor<1x2x2x2xf32>, tensor<1x1x4x4x3x3xf32>)" in text
    parse(text)


def test_every_line_bears_the_users_span_and_every_argument_its_name():
    builder = TapeBuilder()
    x = builder.input("image", "f32[4]")
    tape = builder.tape(builder.op("neg", x, line=7))
    text = emit(tape)
    assert '%arg0: tensor<4xf32> loc("image")' in text
    assert 'stablehlo.negate %arg0 : tensor<4xf32> loc("model.py":7:5)' in text
    module = parse(text)
    assert '"model.py":7:5' in module.operation.get_asm(enable_debug_info=True)
    assert "loc(" not in emit(tape, locations=False)


def test_arguments_are_inputs_in_order_then_parameters():
    text = "%0 = parameter() : f32[1]\n%1 = input() : f32[2]\n%2 = input() : f32[3]\ninputs %2, %1\nreturn (%0, %1, %2)"
    emitted = emit(parse_tape(text), locations=False)
    assert "@main(%arg0: tensor<3xf32>, %arg1: tensor<2xf32>, %arg2: tensor<1xf32>)" in emitted
    assert "return %arg2, %arg1, %arg0 :" in emitted
    parse(emitted)


def test_only_what_results_need_is_emitted():
    text = "%0 = input() : f32[2]\n%1 = neg(%0) : f32[2]\n%2 = exp(%0) : f32[2]\nreturn (%2, %2)"
    emitted = emit(parse_tape(text), locations=False)
    assert "negate" not in emitted
    assert emitted.count("exponential") == 1
    assert np.allclose(run_xla(emitted, [np.zeros(2, np.float32)]), 1)


def test_a_program_without_results_is_a_module_too():
    parse(emit(parse_tape("%0 = input() : f32[2]\nreturn ()")))


def test_constants_and_counters_have_their_values():
    text = """
    %0 = constant() value=f32[3]:(nan, -0.0, 1e-40) : f32[3]
    %1 = constant() value=bool[2]:(true, false) : bool[2]
    %2 = iota() axis=1 : u8[2,3]
    %3 = iota() axis=0 : bf16[3]
    %4 = constant() value=i64:-5 : i64[0,2]
    return (%0, %1, %2, %3, %4)
    """
    tape = parse_tape(text)
    verify(tape)
    for run in (run_xla, run_reference):
        for got, want in zip(run(emit(tape), []), interpret(tape, []), strict=True):
            assert got.dtype == want.dtype
            assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("size", [64, 65])
def test_long_tables_are_bytes_and_read_back(size):
    values = ", ".join(f"{k}.5" for k in range(size))
    tape = parse_tape(f"%0 = constant() value=f64[{size}]:({values}) : f64[{size}]\nreturn %0")
    text = emit(tape)
    assert ('dense<"0x' in text) == (size > 64)
    np.testing.assert_array_equal(run_xla(text, [])[0], np.arange(size) + 0.5)


def test_a_needed_foreign_op_is_refused_by_name_and_place():
    builder = TapeBuilder()
    x = builder.input("x", "f32[2]")
    kinds = (builder.ops[x].type,)
    drawn = builder.op("opaque", x, line=9, foreign="aten::bernoulli", types=kinds, note="")
    tape = builder.tape(builder.op("neg", drawn))
    with pytest.raises(ConfigurationError, match="aten::bernoulli is a foreign op that has no StableHLO") as failure:
        emit(tape)
    assert failure.value.code == "TP507"
    assert str(failure.value.span) == "model.py:9:5"
    assert emit(builder.tape(x))


def test_matches_that_read_each_other_in_a_circle_are_a_bug():
    tape = parse_tape("%0 = input() : f32[2]\n%1 = neg(%0) : f32[2]\n%2 = exp(%1) : f32[2]\nreturn %2")
    match = Match("convolution", 1, {"x": 2}, frozenset(), frozenset({1}), {}, None)
    with pytest.raises(InternalError, match="in a circle"):
        emit(tape, {1: (match, lambda *_: {})})


def test_a_raise_that_gives_another_type_is_a_bug():
    tape = parse_tape("%0 = input() : f32[2]\n%1 = cast(%0) dtype=f64 : f64[2]\nreturn %1")
    match = Match("convolution", 1, {"x": 0}, frozenset(), frozenset({1}), {}, None)
    with pytest.raises(InternalError, match=r"%1 is f64\[2\], what was written for it is f32\[2\]"):
        emit(tape, {1: (match, lambda builder, tape, match, bindings: {1: bindings["x"]})})
