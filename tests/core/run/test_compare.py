from dataclasses import replace

import numpy as np
import pytest

import topos_core as tp
from topos_core import nn
from topos_core.run.compare import _movements, compare, difference, judge
from topos_core.run.executor import make_program
from topos_core.run.interpreter import interpret
from topos_core.run.widened import narrowed, widened


def convolved(x, w):
    return nn.relu(nn.conv2d(x, w, padding=1))


def planned(function, *specs, **options):
    plan = tp.plan(tp.trace(function, *specs), cost="always", **options)
    tape = plan.tape
    random = np.random.default_rng(0)
    given = [random.standard_normal(tape.ops[value].type.shape).astype(np.float32) for value in tape.inputs]
    return plan.data, given


def test_a_fast_plan_stays_inside_its_envelope():
    plan, given = planned(convolved, tp.f32[1, 8, 9, 9], tp.f32[8, 8, 3, 3])
    assert len(plan.taken) == 1
    found = compare(plan, given)
    assert found.inside
    (output,) = found.outputs
    assert output.judgement in ("inside", "equal")
    assert 0 < output.allowed < 1e-3
    assert output.absolute <= output.allowed
    assert found.to_json()["inside"] is True


def test_an_exact_plan_is_equal_bit_for_bit():
    plan, given = planned(lambda x: nn.max_pool(nn.relu(x), 2), tp.f32[1, 8, 10, 10], fidelity="exact")
    assert len(plan.taken) == 1
    found = compare(plan, given)
    assert [output.judgement for output in found.outputs] == ["equal"]
    assert found.sentences() == ["output 0 f32[1,8,5,5]: equal to the interpreter bit for bit"]


def test_a_wrong_kernel_is_outside_and_float64_says_by_how_much():
    plan, given = planned(convolved, tp.f32[1, 8, 9, 9], tp.f32[8, 8, 3, 3])
    program = make_program(plan)

    class Wrong:
        def run(self, bindings, out, threads):
            out["result"][...] = 0.5

    (step,) = (step for step in program.steps if hasattr(step, "prepared"))
    steps = tuple(replace(step, prepared=Wrong()) if s is step else s for s in program.steps)
    found = compare(plan, given, program=replace(program, steps=steps))
    assert not found.inside
    (output,) = found.outputs
    assert output.home_error > 100 * output.interpreter_error
    assert "judged by float64" in found.sentences()[0]
    assert found.sentences()[0].endswith(": outside")


def test_a_program_that_amplifies_rounding_is_judged_by_float64():
    plan, given = planned(amplified, tp.f32[8, 4, 30])
    found = compare(plan, given)
    (output,) = found.outputs
    assert output.absolute > output.allowed
    assert output.judgement == "inside"
    assert output.home_error is not None


def amplified(x):
    mean = x.mean((0, 2), keepdims=True)
    return np.sin((x - mean) / np.sqrt(((x - mean) ** 2).mean((0, 2), keepdims=True) + 1e-5) * 1e5)


@pytest.mark.parametrize("times", [1, 30, 300])
@pytest.mark.parametrize("limit", [nn.relu6, np.tanh, nn.sigmoid, lambda y: np.where(y > 1, 1, np.where(y < 0, 0, y))])
def test_what_a_program_limits_keeps_the_error_of_what_it_was(limit, times):
    plan, (x,) = planned(lambda x: limit(tiled(x)), tp.f32[1, 32, 24, 24])
    found = compare(plan, [x * np.float32(times)])
    assert found.inside, found.sentences()
    (output,) = found.outputs
    assert output.rule == "envelope"


def test_a_wrong_kernel_is_outside_behind_a_limit():
    plan, (x,) = planned(lambda x: nn.relu6(tiled(x)), tp.f32[1, 32, 24, 24])
    given = [x * np.float32(30)]
    recorded = interpret(plan.tape, given)
    inner = (recorded[0] > 1) & (recorded[0] < 5)
    (output,) = judge(plan, [np.where(inner, recorded[0] + np.float32(0.02), recorded[0])], recorded, given).outputs
    assert (output.judgement, output.rule) == ("outside", "float64")


WEIGHTS = np.random.default_rng(7).standard_normal((32, 32, 3, 3)).astype(np.float32) / np.float32(17)


def tiled(x):
    return nn.conv2d(x, WEIGHTS, padding=1)


def test_an_f64_program_that_amplifies_rounding_is_judged_by_its_f32_form():
    plan, _ = planned(amplified, tp.f64[8, 4, 30])
    given = [np.random.default_rng(0).standard_normal((8, 4, 30))]
    (output,) = compare(plan, given).outputs
    assert (output.judgement, output.rule) == ("inside", "float32")
    assert output.absolute > output.allowed
    assert "estimated from the program in float32: inside" in output.sentence
    recorded = interpret(plan.tape, given)
    wrong = judge(plan, [recorded[0] + 1e-5], recorded, given)
    assert (wrong.inside, wrong.outputs[0].rule) == (False, "float32")


def test_the_interpreter_is_judged_by_its_bits():
    plan, given = planned(amplified, tp.f32[8, 4, 30])
    recorded = interpret(plan.tape, given)
    assert judge(plan, recorded, recorded, given, backend="interpreter").inside
    off = np.nextafter(recorded[0], np.float32(2))
    found = judge(plan, [off], recorded, given, backend="interpreter")
    assert (found.inside, found.outputs[0].rule) == (False, "bits")
    assert "outside, since it has to have the interpreter's bits" in found.outputs[0].sentence


def test_xla_may_round_every_op_in_another_way_and_no_more():
    plan, given = planned(lambda x: np.exp(x).sum(1), tp.f32[4, 100], consumer="stablehlo")
    recorded = interpret(plan.tape, given)
    near = judge(plan, [recorded[0] * np.float32(1 + 1e-6)], recorded, given, backend="xla")
    assert (near.inside, near.outputs[0].rule) == (True, "envelope")
    far = judge(plan, [recorded[0] * np.float32(1.001)], recorded, given, backend="xla")
    assert (far.inside, far.outputs[0].rule) == (False, "float64")


def test_nan_equals_nan_on_every_backend():
    plan, given = planned(lambda x: np.log(x), tp.f32[6])
    given = [np.array([-1, 1, 2, 3, 4, np.nan], np.float32)]
    with np.errstate(invalid="ignore"):
        recorded = interpret(plan.tape, given)
    for backend in ("home", "interpreter", "xla"):
        (output,) = judge(plan, recorded, recorded, given, backend=backend).outputs
        assert (output.judgement, output.absolute, output.ulps) == ("equal", 0.0, 0.0)


@pytest.mark.parametrize(
    ("home", "recorded", "absolute", "ulps", "judgement"),
    [
        ([1.0, np.nan], [1.0, np.nan], 0.0, 0.0, "equal"),
        ([np.inf], [np.inf], 0.0, 0.0, "equal"),
        ([np.inf], [1.0], np.inf, np.inf, "outside"),
        ([np.nan], [1.0], np.inf, np.inf, "outside"),
        ([-0.0], [0.0], 0.0, 0.0, "inside"),
        ([1.0 + 2**-22], [1.0], 2**-22, 2.0, "inside"),
        ([1.5], [1.0], 0.5, 2**22, "outside"),
        ([1.0, 2**-30], [1.0, 0.0], 2**-30, 0.0, "inside"),  # beside 0 ulps say nothing
        ([], [], 0.0, 0.0, "equal"),
    ],
)
def test_differences_of_floats(home, recorded, absolute, ulps, judgement):
    found = difference(0, "f32[n]", np.array(home, np.float32), np.array(recorded, np.float32), 1e-6, 0.0)
    assert (found.absolute, found.ulps, found.judgement) == (absolute, ulps, judgement)


def test_differences_of_integers_are_counted():
    found = difference(0, "i64[3]", np.array([1, 2, 3]), np.array([1, 5, 4]), 1.0, 1.0)
    assert (found.absolute, found.at, found.judgement) == (2.0, (1,), "outside")


def test_the_widened_tape_computes_in_float64():
    tape = tp.trace(lambda x: (x.astype(np.float16) * 3).astype(np.float32) + np.pad(x, 1)[1:-1], tp.f32[4])
    wide = widened(tape)
    assert {op.type.dtype for op in wide.ops} == {"f64"}
    x = np.array([0.1, 0.2, 0.3, 0.4])
    np.testing.assert_array_equal(interpret(wide, [x])[0], x * 3 + x)


def test_the_narrowed_tape_computes_in_float32():
    tape = tp.trace(lambda x: x * np.array([1.0, 1e300]), tp.f64[2])
    short = narrowed(tape)
    assert {op.type.dtype for op in short.ops} == {"f32"}
    np.testing.assert_array_equal(interpret(short, [np.ones(2, np.float32)])[0], np.array([1, np.inf], np.float32))


@pytest.mark.parametrize(("units", "inside"), [(1.0, True), (40.0, False)])
def test_a_sum_that_cancels_may_be_as_far_off_as_the_rounding_of_what_goes_in_takes_it(units, inside):
    whole = np.arange(1.0, 65.0)
    x = np.concatenate([whole, -whole])
    x[0] += 1.0  # sums of whole numbers are exact, so that the interpreter's error is 0
    given = [x.reshape(1, 128, 1, 1).astype("f"), np.full((1, 128, 1, 1), 1024.0, "f")]
    plan, _ = planned(lambda x, w: nn.relu(nn.conv2d(x, w)), *(tp.f32[array.shape] for array in given))
    program = make_program(plan)

    class Off:
        def run(self, bindings, out, threads):
            out["result"][...] = 1024.0 + units * 1024.0 * 64.0 * 2.0**-22

    (step,) = (step for step in program.steps if hasattr(step, "prepared"))
    steps = tuple(replace(step, prepared=Off()) if s is step else s for s in program.steps)
    found = compare(plan, given, program=replace(program, steps=steps))
    (output,) = (each for each in found.outputs)
    assert output.interpreter_error == 0.0
    assert 0.0 < output.moved < 1024.0 * 64.0 * 128 * 2.0**-23
    assert (output.judgement, output.rule) == (("inside", "rounding") if inside else ("outside", "float64"))
    assert ("what goes in moves it by" in output.sentence) == inside
    assert found.to_json()["outputs"][0]["moved"] == output.moved


def attention_of_equal_keys():
    """Scores of 1e20 that differ by rounding alone: which key is seen is chance, in f32 too."""
    plan, given = planned(lambda q, k, v: nn.attention(q, k, v), *(tp.f64[1, 2, n, 16] for n in (5, 130, 130)))
    return plan, [given[0].astype("f8"), np.full((1, 2, 130, 16), 1e20), given[2].astype("f8")]


def add_norm_of_large_sums():
    plan, (x, y) = planned(lambda x, y: nn.layer_norm(x + y), tp.f64[7, 33], tp.f64[7, 33])
    return plan, [np.full(x.shape, 1e20), y.astype("f8")]


@pytest.mark.parametrize("made", [attention_of_equal_keys, add_norm_of_large_sums])
def test_an_f64_output_may_be_as_far_off_as_the_rounding_of_what_goes_in_takes_it(made):
    plan, given = made()
    assert len(plan.taken) == 1
    (output,) = compare(plan, given).outputs
    assert output.home_error > 4 * output.interpreter_error
    assert (output.judgement, output.rule) == ("inside", "rounding")
    recorded = interpret(plan.tape, given)
    (wrong,) = judge(plan, [recorded[0] + 1e3], recorded, given).outputs
    assert wrong.judgement == "outside"
    assert 0.0 < wrong.moved < 1e2


@pytest.mark.parametrize("given", [False, True])
def test_parameters_move_as_inputs_do(given):
    weight = np.full((1, 128), 2.0**20, np.float32)
    tape = tp.trace(lambda x: nn.linear(x, weight), tp.f32[1, 128])
    x = np.zeros((1, 128), np.float32)
    x[0, 0] = 1.0
    (value,) = tape.parameters
    (movement,) = _movements(tape, [x], {tape.names[value]: weight} if given else None, [np.full((1, 1), 2.0**20)])
    assert movement == pytest.approx(2.0**-3)  # both by half a unit of 2^20, in one of the trials to one side
