from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import topos_core as tp
from topos_core import api
from topos_core.document import codec
from topos_core.errors import ConfigurationError
from topos_core.matching.catalog import patterns as matching_patterns

EXAMPLES = Path(__file__).parents[2] / "examples"


CHAINS = [name for name in matching_patterns() if name.startswith("elementwise")]


def convolve(image: Any, weight: Any, *, observe: bool) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(2, 3))
    if observe:
        tp.observe(windows, "windows")
    hidden = np.einsum("bchwij,ocij->bohw", windows, weight)
    return np.maximum(hidden, 0)


def planned(*, observe: bool = False, **options: Any) -> api.Plan:
    tape = tp.trace(
        lambda image, weight: convolve(image, weight, observe=observe), tp.f32[4, 8, 16, 16], tp.f32[8, 8, 3, 3]
    )
    return tp.plan(tape, machine="reference", **options)


def patterns(plan: api.Plan) -> list[str]:
    return [match.pattern for match in plan.patterns]


def test_a_hand_written_convolution_is_taken() -> None:
    plan = planned()
    assert patterns(plan) == ["conv_bn_activation"]
    assert (plan.declined, plan.blocked, plan.near_misses) == ((), (), ())
    assert repr(plan) == "<Plan home fast: 1 taken, 0 declined, 0 blocked>"


def test_an_observed_window_matrix_blocks_it_by_name() -> None:
    plan = planned(observe=True)
    (blocked,) = plan.blocked
    assert plan.data.observations[blocked.observations[0]].name == "windows"
    assert "`windows` is read by `tp.observe`" in plan.describe()


def test_what_if_is_the_plan_that_the_changed_program_would_have() -> None:
    plan = planned(observe=True)
    assert patterns(plan.what_if(ignore=["windows"])) == ["conv_bn_activation"]
    assert patterns(plan) == []
    assert [d.verdict for d in planned().what_if(observe=[2]).data.decisions] == ["blocked"]
    assert patterns(planned().what_if(off=["conv_bn_activation"])) == ["convolution"]
    assert patterns(planned().what_if(consumer="stablehlo")) == ["convolution"]


def test_what_if_never_searches_again(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned()
    monkeypatch.setattr(api, "search", lambda *_: pytest.fail("searched again"))
    assert plan.what_if(observe=[2]).what_if(consumer="stablehlo").planner is plan.planner


def test_observing_by_name_and_by_number_agree() -> None:
    tape = planned(observe=True).tape
    value = next(value for value, name in tape.names.items() if name == "windows")
    by_name, by_number = (tp.plan(tape, observe=[each], machine="reference") for each in ("windows", value))
    assert by_name.data.decisions == by_number.data.decisions
    with pytest.raises(tp.ConfigurationError, match="no value is named 'hidden'; named are: image weight windows"):
        tp.plan(tape, observe=["hidden"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"machine": "h100"}, "no machine profile 'h100'"),
        ({"off": ["fuse"]}, "no pattern is called 'fuse'; there are convolution,"),
        ({"observe": [999]}, "no value %999 to observe"),
    ],
)
def test_options_that_do_not_exist_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(tp.ConfigurationError) as caught:
        tp.plan(planned().tape, **options)
    assert message in str(caught.value)
    assert caught.value.code == "TP504"


def test_an_unknown_change_lists_the_known_ones() -> None:
    with pytest.raises(tp.ConfigurationError, match="no option 'target'; use one of observe ignore beside off"):
        planned().what_if(target="xla")
    with pytest.raises(tp.ConfigurationError, match="no observation is named 'nothing'"):
        planned().what_if(ignore=["nothing"])


def test_a_marked_function_is_traced_by_plan() -> None:
    @tp.model(x=tp.f32[4, 4])
    def double(x: Any) -> Any:
        return x + x

    assert [op.name for op in tp.plan(double).tape.ops] == ["input", "add"]


def test_the_document_is_valid_and_names_its_target() -> None:
    plan = tp.plan(tp.load(f"{EXAMPLES}/observed.py:statistics_observed"), machine="reference")
    document = plan.document()
    assert codec.load(codec.dump(document))["target"] == "examples/observed.py:statistics_observed"
    assert document["paths"] == ["examples/observed.py"]
    assert plan.document(target="mine", root=str(EXAMPLES))["paths"] == ["observed.py"]


def test_the_graph_has_a_node_per_value_and_an_edge_per_operand_link() -> None:
    tape = tp.trace(lambda x: np.exp(x) * np.exp(x) + x, tp.f32[4])
    graph = tp.plan(tape, machine="reference").to_networkx()
    assert graph.number_of_nodes() == len(tape.ops)
    assert graph.number_of_edges() == sum(len(op.operands) for op in tape.ops)
    squared = tp.plan(tp.trace(lambda x: x * x, tp.f32[4])).to_networkx()
    assert squared.number_of_edges(0, 1) == 2
    assert squared.nodes[1]["op"] == "mul"


def test_nodes_name_the_region_that_decides_them() -> None:
    graph = planned().to_networkx()
    verdicts = {data["verdict"] for _, data in graph.nodes(data=True)}
    assert verdicts == {None, "taken"}
    taken = next(iter(graph.graph["regions"].values()))
    assert {node for node, data in graph.nodes(data=True) if data["region"] == taken["id"]} == set(taken["nodes"])
    path, line, *_ = graph.nodes[taken["root"]]["span"]
    assert path.endswith("test_api.py")
    assert line > 0


def test_what_no_match_takes_is_grouped() -> None:
    plan = tp.plan(
        tp.trace(lambda x, y: np.exp(x) * y + np.exp(x), tp.f32[4], tp.f32[4]), machine="reference", off=CHAINS
    )
    assert plan.groups == (tuple(range(2, len(plan.tape.ops))),)
    observed = plan.what_if(observe=[2])
    assert all(2 not in group[:-1] for group in observed.groups)


def test_emission_raises_what_stablehlo_takes_whatever_the_plan_is_for() -> None:
    home, raised = planned(), planned(consumer="stablehlo")
    assert "stablehlo.convolution" in home.emit_stablehlo()
    assert home.emit_stablehlo() == raised.emit_stablehlo()
    assert "stablehlo.convolution" not in planned(observe=True).emit_stablehlo()


def test_a_plan_for_elsewhere_does_not_run_here() -> None:
    image, weight = np.zeros((4, 8, 16, 16), np.float32), np.zeros((8, 8, 3, 3), np.float32)
    for options in ({"consumer": "stablehlo"}, {"machine": "a100"}):
        plan = tp.plan(planned().tape, **options)  # type: ignore[arg-type]
        with pytest.raises(tp.ConfigurationError, match="cannot run here") as caught:
            plan.run(image, weight)
        assert caught.value.code == "TP507"


# -- running


def arrays(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((4, 8, 16, 16), np.float32), rng.standard_normal((8, 8, 3, 3), np.float32)


def test_a_run_gives_what_the_program_gives() -> None:
    image, weight = arrays()
    want = convolve(image, weight, observe=False)
    plan = planned()
    assert patterns(plan) == ["conv_bn_activation"]
    np.testing.assert_allclose(plan.run(image, weight), want, rtol=1e-4, atol=1e-4)
    assert np.array_equal(plan.run(image, weight), plan.run(image, weight, threads=1))


def test_observed_values_come_back_by_name() -> None:
    image, weight = arrays()
    result, observed = planned(observe=True).run(image, weight, observed=True)
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(2, 3))
    assert list(observed) == ["windows"]
    assert np.array_equal(observed["windows"], windows)
    np.testing.assert_allclose(result, convolve(image, weight, observe=False), rtol=1e-4, atol=1e-4)


def test_named_results_come_back_from_the_fused_run() -> None:
    plan = tp.plan(tp.load(f"{EXAMPLES}/observed.py:statistics_observed"), machine="reference")
    assert patterns(plan) == ["batch_norm_training"]
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 32, 28, 28), np.float32)
    _, observed = plan.run(x, np.ones(32, np.float32), np.zeros(32, np.float32), observed=True)
    np.testing.assert_allclose(observed["mean"].ravel(), x.mean((0, 2, 3)), atol=1e-5)
    np.testing.assert_allclose(observed["variance"].ravel(), x.var((0, 2, 3)), rtol=1e-4)


def test_the_functions_own_structure_comes_back() -> None:
    plan = tp.plan(tp.trace(lambda x: {"twice": x + x, "both": (x, [-x])}, tp.f32[3]), machine="reference")
    result = plan.run(np.arange(3, dtype=np.float32))
    assert list(result) == ["twice", "both"]
    assert result["both"][1][0].tolist() == [0, -1, -2]


def test_parameters_are_bound_when_the_plan_is_made() -> None:
    weight = np.ones((300, 2), np.float32)
    tape = tp.trace(lambda x: x @ weight, tp.f32[4, 300])
    x = np.ones((4, 300), np.float32)
    other = np.full((300, 2), 2, np.float32)
    plan, rebound = tp.plan(tape), tp.plan(tape, parameters={"weight": other})
    weight[:] = 5
    other[:] = 5
    assert plan.run(x)[0, 0] == 300
    assert rebound.run(x)[0, 0] == 600


# -- loading


def test_a_target_is_a_path_and_a_name() -> None:
    assert tp.load(f"{EXAMPLES}/seed_convolution.py:main").type_of(0).shape == (2, 1, 3, 3)


def test_specs_may_be_given_where_the_entry_has_none(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("def double(x):\n    return x + x\n", encoding="utf-8")
    tape = tp.load(f"{tmp_path}/plain.py:double", tp.f32[3])
    assert tape.type_of(1).shape == (3,)


@pytest.mark.parametrize(
    ("target", "code", "message"),
    [
        ("nowhere.py:main", "TP505", "no file nowhere.py"),
        ("model.py", "TP505", "names no entry; write model.py:NAME"),
        ("model.gguf", "TP507", ".gguf) cannot be read by this build"),
        ("nowhere.onnx", "TP505", "nowhere.onnx is no file"),
        ("{tmp}/broken.mlir", "TP402", "broken.mlir"),
        ("{tmp}/broken.py:main", "TP403", "SyntaxError"),
        ("{tmp}/raises.py:main", "TP402", "raised ValueError: no"),
        ("{tmp}/imports.py:main", "TP404", "No module named 'not_there'"),
        ("{tmp}/empty.py:main", "TP505", "has no 'main'"),
    ],
)
def test_what_cannot_be_loaded_says_why(target: str, code: str, message: str, tmp_path: Path) -> None:
    for name, text in {
        "broken": "def main(:\n",
        "raises": "raise ValueError('no')\n",
        "imports": "import not_there\n",
        "empty": "\n",
    }.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    (tmp_path / "broken.mlir").write_text("module {", encoding="utf-8")
    with pytest.raises(tp.ToposError) as caught:
        tp.load(target.format(tmp=tmp_path))
    assert caught.value.code == code
    assert message in str(caught.value)


def test_a_model_file_is_read_and_runs(tmp_path: Path) -> None:
    plan = tp.plan(tp.load(f"{EXAMPLES}/seed_convolution.py:main"), machine="reference")
    (tmp_path / "module.mlir").write_text(plan.emit_stablehlo(), encoding="utf-8")
    for target in (f"{tmp_path}/module.mlir", f"{tmp_path}/module.mlir:main"):
        tape = tp.load(target)
        inputs = [np.ones(tape.type_of(value).shape, np.float32) for value in tape.inputs]
        np.testing.assert_allclose(tp.plan(tape).run(*inputs), plan.run(*inputs), rtol=1e-5)
    with pytest.raises(tp.ToposError, match="has inputs of its own"):
        tp.load(f"{tmp_path}/module.mlir", "f32[2]")


def test_an_onnx_file_is_read_with_an_extent_for_what_it_leaves_open(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])], "relu",
        [helper.make_tensor_value_info("x", kind, ["N", 3])], [helper.make_tensor_value_info("y", kind, ["N", 3])],
    )  # fmt: skip
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), tmp_path / "relu.onnx"
    )
    with pytest.raises(tp.ToposError) as caught:
        tp.load(f"{tmp_path}/relu.onnx")
    assert caught.value.code == "TP209"
    plan = tp.plan(tp.load(f"{tmp_path}/relu.onnx", N=2))
    np.testing.assert_array_equal(plan.run(np.float32([[-1, 0, 1]] * 2)), [[0, 0, 1]] * 2)


def test_two_files_of_one_name_are_two_modules(tmp_path: Path) -> None:
    for folder, op in (("one", "x + x"), ("two", "x * x")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same_name_model.py").write_text(f"def main(x):\n    return {op}\n", encoding="utf-8")
    tapes = [tp.load(f"{tmp_path}/{folder}/same_name_model.py:main", tp.f32[3]) for folder in ("one", "two")]
    assert [tape.ops[-1].name for tape in tapes] == ["add", "mul"]


@pytest.mark.parametrize(
    "empty", [{"x": "f32[0,3,8,8]"}, {"x": "f32[2,0,8,8]", "w": "f32[4,0,3,3]"}, {"w": "f32[0,3,3,3]"}]
)
def test_a_convolution_without_elements_plans_and_runs(empty):
    from topos_core import nn

    specs = {"x": "f32[2,3,8,8]", "w": "f32[4,3,3,3]", **empty}
    tape = tp.trace(lambda x, w: nn.relu(nn.conv2d(x, w, padding=1)), **specs)
    arrays = [np.ones(tape.type_of(value).shape, "f4") for value in tape.inputs]
    result = tp.plan(tape, cost="always").run(*arrays)
    assert result.shape == tape.type_of(tape.results[0]).shape
    assert not result.any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fidelity": "close"}, "no fidelity 'close'; use one of exact fast"),
        ({"cost": "never"}, "no cost 'never'; use one of model always"),
        ({"dialect": "tosa"}, "no dialect 'tosa'; use one of portable xla iree"),
        ({"observe": "nobody"}, "no value is named 'nobody'"),
        ({"parameters": {"nobody": np.ones(2, "f4")}}, "no parameter is named 'nobody'"),
        ({"parameters": {"weight": np.ones((100, 2), "f8")}}, "parameter weight is f64"),
    ],
)
def test_options_that_do_not_exist_are_told_when_the_plan_is_made(options, message):
    weight = np.ones((100, 2), np.float32)
    tape = tp.trace(lambda x: x @ weight, "f32[3,100]")
    with pytest.raises(ConfigurationError, match=message):
        tp.plan(tape, **options)


@pytest.mark.parametrize("threads", [0, -1])
def test_a_run_needs_a_thread(threads):
    with pytest.raises(ConfigurationError, match="give 1 or more"):
        tp.plan(tp.trace(lambda x: x + 1, "f32[3]")).run(np.ones(3, "f4"), threads=threads)


def test_plans_are_copied_by_name_and_not_pickled():
    plan = tp.plan(tp.trace(lambda x: x + 1, "f32[3]"))
    assert copy.copy(plan) is plan
    assert copy.deepcopy({"plan": plan})["plan"] is plan
    with pytest.raises(TypeError, match="a plan is not pickled; record and plan in the other process"):
        pickle.dumps(plan)
