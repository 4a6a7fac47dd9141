"""A region cut out of a program computes what it computes inside."""

import numpy as np

import topos_core as tp
from topos_core import nn
from topos_core.ops.verify import verify
from topos_core.run.bench.region_tape import known_values, region_inputs, region_results, region_tape
from topos_core.run.interpreter import bind, evaluate, interpret

WEIGHT = np.linspace(-1, 1, 640, dtype=np.float32).reshape(80, 8)
SCALES = np.linspace(0.5, 1.5, 160, dtype=np.float32)


def program(x):
    hidden = nn.softmax(x @ WEIGHT.T)
    doubled = np.concatenate([hidden[:, :40], hidden[:, :40] * 3], -1)
    return nn.layer_norm(doubled, SCALES[::2])


def cut(pattern):
    tape = tp.trace(program, tp.f32[5, 8])
    match = next(match for match in tp.plan(tape, cost="always").patterns if match.pattern == pattern)
    x = np.random.default_rng(0).standard_normal((5, 8)).astype(np.float32)
    bound = bind(tape, [x])
    values = evaluate(tape, bound, match.bindings.values())
    known = known_values(tape)
    part = region_tape(tape, match, values, known)
    verify(part)
    inside = evaluate(tape, bound, region_results(match))
    alone = interpret(part, region_inputs(tape, match, values, known))
    return part, [inside[value] for value in region_results(match)], alone


def test_every_taken_region_alone_gives_its_bits_inside_the_program():
    for pattern in ("softmax", "layer_norm"):
        _, inside, alone = cut(pattern)
        assert [array.tobytes() for array in alone] == [array.tobytes() for array in inside]


def test_what_no_input_reaches_is_a_parameter_with_its_value():
    part, _, _ = cut("layer_norm")
    (scale,) = part.parameters
    np.testing.assert_array_equal(part.defaults[scale], SCALES[::2])
    assert [part.names[value] for value in part.inputs] == ["x"]


def test_the_region_alone_is_recognised_again():
    for pattern in ("softmax", "layer_norm"):
        part, _, _ = cut(pattern)
        assert [match.pattern for match in tp.plan(part, cost="always").patterns] == [pattern]
