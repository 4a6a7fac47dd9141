from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jaxlib")

import topos_core as tp
from topos_core import nn
from topos_core.errors import TraceError
from topos_core.importers.model_file import read_model
from topos_core.importers.stablehlo_text.record import record_text
from topos_core.recording.spec import parse_specs
from topos_core.recording.trace import record
from topos_core.run.interpreter import interpret


def block(x, w, b, mean, var):
    y = nn.relu(nn.batch_norm(nn.conv2d(x, w, b, padding=1), mean, var))
    return nn.max_pool(y, 2)


def mlp(x, w, v):
    hidden = nn.gelu(x @ w)
    return nn.softmax(hidden @ v), nn.layer_norm(hidden)


def moves(x, i):
    padded = np.pad(x, ((1, 2), (0, 1)), constant_values=-1)
    return np.flip(padded, 1)[1::2, ::-1], np.take(x, i, axis=0), np.concatenate([x, x.T[:, :3].T[:, :4]], 0)


PROGRAMS = {
    "block": (block, "f32[2,3,8,8],f32[4,3,3,3],f32[4],f32[4],f32[4]"),
    "mlp": (mlp, "f32[3,8],f32[8,6],f32[6,5]"),
    "moves": (moves, "f32[4,4],i64[3]<4"),
}


def traced(name):
    function, specs = PROGRAMS[name]
    return record(function, *parse_specs(specs))


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_topos_emits_is_read_back_and_computes_the_same(name):
    tape = traced(name)
    text = tp.plan(tape, consumer="stablehlo", machine="reference").emit_stablehlo()
    again = record_text(text, "/tmp/module.mlir")
    rng = np.random.default_rng(0)
    inputs = []
    for value in tape.inputs:
        kind = tape.type_of(value)
        inputs.append(
            rng.integers(0, 4, kind.shape)
            if kind.dtype == "i64"
            else np.abs(rng.standard_normal(kind.shape)).astype("f4")
        )
    assert not [op for op in again.ops if op.name == "opaque"]
    assert [again.names[value] for value in again.inputs] == [tape.names[value] for value in tape.inputs]
    for result, expected in zip(interpret(again, inputs), interpret(tape, inputs), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_patterns_are_found_again_in_emitted_text():
    text = tp.plan(traced("block"), consumer="stablehlo", machine="reference").emit_stablehlo()
    plan = tp.plan(record_text(text, "/tmp/module.mlir"), cost="always", machine="reference")
    assert {"conv_bn_activation", "window_reduce"} <= {decision.match.pattern for decision in plan.taken}


PLAIN = """module {
  func.func @main(%x: tensor<2x3xf32>) -> tensor<2xf32> {
    %zero = stablehlo.constant dense<1.5> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %1 = func.call @double(%0) : (tensor<2xf32>) -> tensor<2xf32>
    return %1 : tensor<2xf32>
  }
  func.func private @double(%y: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.add %y, %y : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
"""


def test_ops_stand_on_their_own_lines_and_calls_are_entered():
    tape = record_text(PLAIN, "/tmp/module.mlir")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(interpret(tape, [x])[0], 2 * (x.sum(1) + 1.5))
    lines = {op.name: tape.location_of(value).span.line for value, op in enumerate(tape.ops)}
    assert lines["sum"] == 4
    assert tape.location_of(tape.results[0]).span.line == 9


def test_emitted_text_names_no_folder_of_the_machine_and_finds_the_projects_lines(tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    (tmp_path / "net.py").write_text("import numpy as np\n\n\ndef f(x):\n    return np.tanh(x) * 2\n")
    text = tp.plan(tp.load(f"{tmp_path / 'net.py'}:f", "f32[2]"), machine="reference").emit_stablehlo()
    assert str(tmp_path) not in text
    assert 'loc("net.py":5:12)' in text
    tape = record_text(text, str(tmp_path / "module.mlir"), root=str(tmp_path))
    span = tape.location_of(tape.results[0]).span
    assert (span.path, span.line) == (str(tmp_path / "net.py"), 5)


PICKING = """module {{
  func.func @main(%x: tensor<2x5xf32>) -> (tensor<2xf32>, tensor<2xi32>) {{
    %at = stablehlo.iota dim = 1 : tensor<2x5xi32>
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.reduce(%x init: %low), (%at init: %zero) across dimensions = [1] : (tensor<2x5xf32>, tensor<2x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
     reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {{
      %1 = stablehlo.compare GT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %2 = stablehlo.compare NE, %a, %a, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.or %1, %2 : tensor<i1>
      %4 = stablehlo.compare EQ, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %5 = stablehlo.compare {tie}, %i, %j, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %6 = stablehlo.and %4, %5 : tensor<i1>
      %7 = stablehlo.or %3, %6 : tensor<i1>
      %8 = stablehlo.select %3, %a, %b : tensor<i1>, tensor<f32>
      %9 = stablehlo.select %7, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %8, %9 : tensor<f32>, tensor<i32>
    }}
    return %0#0, %0#1 : tensor<2xf32>, tensor<2xi32>
  }}
}}
"""


def test_a_reducer_of_pairs_is_told_by_what_it_picks():
    x = np.array([[1, 4, 4, 0, 2], [-1, -3, -1, -2, -1]], np.float32)

    def argmax(x):
        return jax.lax.argmax(x, 1, np.int32)

    jax = pytest.importorskip("jax")
    text = jax.jit(argmax).lower(x).as_text()
    tape = record_text(text, "/tmp/module.mlir")
    assert "argmax" in [op.name for op in tape.ops]
    np.testing.assert_array_equal(interpret(tape, [x])[0], [1, 0])


def test_a_reducer_that_picks_the_last_of_equals_stays_opaque():
    tape = record_text(PICKING.format(tie="GT"), "/tmp/module.mlir")
    (foreign,) = [op for op in tape.ops if op.name == "opaque"]
    assert "neither the first greatest nor the first smallest" in foreign.attributes["note"]


def test_rows_are_added_by_index_and_those_outside_left_out():
    jax = pytest.importorskip("jax")

    def added(x, at, rows):
        return x.at[at].add(rows)

    x, at, rows = np.zeros((4, 2), np.float32), np.array([1, 3, 1, 9], np.int32), np.ones((4, 2), np.float32)
    tape = record_text(jax.jit(added).lower(x, at, rows).as_text(), "/tmp/module.mlir")
    assert not [op for op in tape.ops if op.name == "opaque"]
    np.testing.assert_array_equal(interpret(tape, [x, at, rows])[0], np.asarray(added(jax.numpy.asarray(x), at, rows)))


def test_a_table_of_bf16_is_read_whatever_its_text_looks_like():
    text = """module { func.func @main() -> tensor<4xbf16> {
    %0 = stablehlo.constant dense<[1.5, 0x7F80, -2.0e+3, 0.0]> : tensor<4xbf16>
    return %0 : tensor<4xbf16> } }"""
    (found,) = interpret(record_text(text, "/tmp/module.mlir"), [])
    np.testing.assert_array_equal(found.astype(np.float32), [1.5, np.inf, -2000.0, 0.0])


def test_a_location_that_names_a_file_of_the_project_is_shown(tmp_path: Path):
    source = tmp_path / "net.py"
    source.write_text("def f(x):\n    return x + x\n")
    text = (
        "module { func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
        f'%0 = stablehlo.add %a, %a : tensor<2xf32> loc("{source}":2:12)\nreturn %0 : tensor<2xf32> }} }}'
    )
    path = tmp_path / "net.mlir"
    path.write_text(text)
    tape = read_model(str(path), root=str(tmp_path))
    span = tape.location_of(tape.results[0]).span
    assert (span.path, span.line, span.column) == (str(source), 2, 11)
    assert tape.sources[str(source)] == source.read_text()


def test_an_open_extent_and_a_broken_text_are_told():
    with pytest.raises(TraceError, match="unknown extent") as caught:
        record_text(
            "module { func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> { return %a : tensor<?xf32> } }", "/a.mlir"
        )
    assert caught.value.code == "TP209"
    with pytest.raises(TraceError, match="no StableHLO module"):
        record_text("module { func.func", "/a.mlir")


@pytest.mark.parametrize(
    ("location", "line"),
    [
        ('loc("elsewhere/gone.py":7:3)', 2),
        ('loc("a scope (of two)"("elsewhere/gone.py":7:3))', 2),
        ("loc(#of_another)", 2),
        ('loc(callsite("elsewhere/gone.py":7:3 at "net.py":1:5))', 1),
        ('loc("net.py":1:5)', 1),
        ("", 2),
    ],
)
def test_an_op_whose_file_is_not_the_projects_stands_on_its_own_line(tmp_path: Path, location: str, line: int):
    (tmp_path / "net.py").write_text("y = x + x\n")
    text = (
        'module { func.func @main(%a: tensor<2xf32> loc("weight (old")) -> tensor<2xf32> {\n'
        f"  %0 = stablehlo.add %a, %a : tensor<2xf32> {location} // loc(\n"
        '  return %0 : tensor<2xf32> } }\n#here = loc("elsewhere/gone.py":7:3)\n#of_another = loc("scope"(#here))\n'
    )
    path = tmp_path / "net.mlir"
    tape = record_text(text, str(path), root=str(tmp_path))
    span = tape.location_of(tape.results[0]).span
    assert (span.path, span.line) == (str(path if line == 2 else tmp_path / "net.py"), line)
    assert tape.names[tape.inputs[0]] == "weight (old"


def test_an_argument_of_a_foreign_element_type_is_told_by_its_type():
    text = "module { func.func @main(%a: tensor<2xf8E4M3FN>) -> tensor<2xf8E4M3FN> { return %a : tensor<2xf8E4M3FN> } }"
    with pytest.raises(TraceError, match="a type that topos does not have") as caught:
        record_text(text, "/a.mlir")
    assert caught.value.code == "TP402"
