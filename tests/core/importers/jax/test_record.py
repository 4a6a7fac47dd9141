import numpy as np
import pytest

jax = pytest.importorskip("jax")

import topos_core as tp  # noqa: E402
from tests.core.importers.jax import programs  # noqa: E402
from topos_core.errors import ToposError  # noqa: E402
from topos_core.importers.imported import record  # noqa: E402
from topos_core.importers.jax_jaxpr import places  # noqa: E402
from topos_core.importers.jax_jaxpr.target import uses_jax  # noqa: E402
from topos_core.recording.spec import parse_specs  # noqa: E402
from topos_core.run.interpreter import interpret  # noqa: E402

CASES = {
    "mlp": "f32[2,8],f32[8,8],f32[8,5]",
    "block": "f32[2,3,8,8],f32[4,3,3,3],f32[4],f32[4],f32[4],f32[4]",
    "channels_last": "f32[2,9,9,3],f32[3,3,3,4]",
    "attention": "f32[2,2,4,8],f32[2,2,4,8],f32[2,2,4,8]",
    "norm": "f32[4,16],f32[16],f32[16]",
    "standardised": "f32[4,16],f32[16],f32[16]",
    "spread": "f32[4,16]",
    "without_divisor": "f32[4,16]",
    "lookups": "i32[3]<8",
    "updated": "f32[6,4],f32[2,2],i32[]<9,i32[3]<2",
    "activations": "f32[4,5]",
    "jitted": "f32[3,4]",
    "transposed": "f32[1,3,5,5],f32[3,4,3,3]",
}


def tape_of(name):
    positional, named = parse_specs(CASES[name])
    return record(getattr(programs, name), positional, named)


def inputs_of(tape):
    rng = np.random.default_rng(0)
    arrays = []
    for value in tape.inputs:
        kind = tape.type_of(value)
        if kind.dtype == "i32":
            arrays.append(rng.integers(0, tape.ranges[value][1], kind.shape).astype(np.int32))
        else:
            arrays.append(np.abs(rng.standard_normal(kind.shape)).astype(np.float32))
    return arrays


@pytest.mark.parametrize("name", CASES)
def test_a_function_computes_what_jax_computes(name):
    tape = tape_of(name)
    assert not [op for op in tape.ops if op.name == "opaque"]
    inputs = inputs_of(tape)
    wanted = jax.tree_util.tree_leaves(getattr(programs, name)(*inputs))
    for result, expected in zip(interpret(tape, inputs), wanted, strict=True):
        np.testing.assert_allclose(result, np.asarray(expected), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
    ("name", "patterns"),
    [
        ("mlp", {"softmax"}),
        ("standardised", {"layer_norm"}),
        ("block", {"conv_bn_activation", "window_reduce"}),
        ("channels_last", {"conv_bn_activation"}),
        ("attention", {"attention"}),
        ("norm", {"layer_norm"}),
    ],
)
def test_patterns_fire_on_what_jax_records(name, patterns):
    plan = tp.plan(tape_of(name), cost="always", machine="reference")
    assert patterns <= {decision.match.pattern for decision in (*plan.taken, *plan.declined)}


def test_every_op_has_the_users_line_and_columns():
    tape = tape_of("mlp")
    product = next(value for value, op in enumerate(tape.ops) if op.name == "matmul")
    place = tape.location_of(product)
    line = tape.sources[place.span.path].splitlines()[place.span.line - 1]
    assert line[place.span.column : place.span.end_column] == "x @ w"
    assert [frame.function for frame in place.frames] == ["layer", "mlp"]
    assert place.scope == ("layer",)


def test_without_jaxs_private_frames_places_are_whole_lines(monkeypatch):
    monkeypatch.setattr(places, "SOURCE_INFO", "jax._src.no_such_module")
    tape = tape_of("mlp")
    product = next(value for value, op in enumerate(tape.ops) if op.name == "matmul")
    place = tape.location_of(product)
    line = tape.sources[place.span.path].splitlines()[place.span.line - 1]
    assert line[place.span.column : place.span.end_column] == "return jax.nn.relu(x @ w) * 2"
    assert [frame.function for frame in place.frames] == ["layer", "mlp"]


def test_the_private_frames_are_those_that_this_jax_has():
    from jax._src import source_info_util

    assert hasattr(source_info_util, "user_frames"), jax.__version__


def test_ops_inside_of_jaxs_own_functions_stand_at_the_users_call():
    tape = tape_of("mlp")
    largest = next(value for value, op in enumerate(tape.ops) if op.name == "maximum")
    span = tape.location_of(largest).span
    assert tape.sources[span.path].splitlines()[span.line - 1][span.column : span.end_column] == "jax.nn.relu(x @ w)"


def test_control_flow_is_opaque_under_its_own_name():
    tape = record(programs.looped, *parse_specs("f32[3]"))
    (foreign,) = [op for op in tape.ops if op.name == "opaque"]
    assert foreign.attributes["foreign"] in ("scan", "while")


def test_a_branch_on_a_value_is_an_error_at_its_line():
    with pytest.raises(ToposError) as caught:
        record(programs.branching, *parse_specs("f32[3]"))
    assert caught.value.code == "TP402"
    assert caught.value.span is not None
    assert caught.value.span.path.endswith("programs.py")


def test_containers_of_inputs_and_outputs_keep_their_structure():
    tape = record(programs.structured, ({"a": tp.f32[3], "b": tp.f32[3]},), {"scale": 2.0})
    assert [tape.names[value] for value in tape.inputs] == ["parts.a", "parts.b"]
    assert tape.structure.keys == ("pair", "sum")
    a, b = np.float32([1, 2, 3]), np.float32([0, 1, 0])
    results = interpret(tape, [a, b])
    np.testing.assert_allclose(results[-1], a + 2 * b)


def test_a_spec_wider_than_jax_works_in_is_told():
    with pytest.raises(ToposError, match="write f32, or set jax_enable_x64"):
        record(programs.mlp, *parse_specs("f64[2,8],f32[8,8],f32[8,5]"))


def test_functions_of_numpy_are_recorded_as_before_beside_functions_of_jax():
    assert uses_jax(programs.mlp)
    assert uses_jax(programs.jitted)
    assert not uses_jax(programs.plain)
    assert [op.name for op in record(programs.plain, *parse_specs("f32[3]")).ops] == ["input", "constant", "maximum"]


def test_what_only_numbers_decide_is_decided():
    assert not {op.name for op in tape_of("spread").ops} & {"select", "compare", "cast"}
    assert {op.name for op in tape_of("without_divisor").ops} >= {"broadcast"}
