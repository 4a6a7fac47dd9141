"""What readers of the examples are promised, asked of the plans and documents themselves."""

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import topos_core as tp

EXAMPLES = Path(__file__).parents[2] / "examples"
SPELLINGS = (
    "library",
    "windows_einsum",
    "windows_tensordot",
    "slices_stacked",
    "shifted_sum",
    "strided",
    "tables",
)


@cache
def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(EXAMPLES))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(EXAMPLES))
    return module


def planned(name: str, entry: str, **options) -> tp.Plan:
    return tp.plan(tp.trace(getattr(example(name), entry)), machine="reference", **options)


def line_of(name: str, text: str) -> int:
    lines = (EXAMPLES / f"{name}.py").read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if text in line)


def regions(plan: tp.Plan, verdict: str) -> list[dict]:
    return [region for region in plan.document()["regions"] if region["verdict"] == verdict]


@pytest.mark.parametrize("consumer", ["home", "stablehlo"])
def test_seven_spellings_of_one_convolution_are_one_match(consumer):
    found = {}
    for spelling in SPELLINGS:
        (region,) = planned("spellings", spelling, consumer=consumer).document()["regions"]
        found[spelling] = (region["pattern"], region["verdict"], region["fingerprint"], str(region["facts"]))
    assert len(set(found.values())) == 1, found
    assert found["library"][:2] == ("convolution", "taken")


def test_seven_spellings_give_one_result():
    generator = np.random.default_rng(0)
    image = generator.standard_normal((2, 3, 9, 10), np.float32)
    weight = generator.standard_normal((5, 3, 3, 3), np.float32)
    results = [planned("spellings", spelling).run(image, weight) for spelling in SPELLINGS]
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], rtol=1e-5, atol=1e-5)


def test_an_observed_inner_value_blocks_and_names_both_lines():
    plan = planned("observed", "hidden_observed")
    assert {decision.match.pattern for decision in plan.taken} == {"elementwise_chain"}  # bias and relu, on their own
    (finding,) = [f for f in plan.document()["findings"] if f["code"] == "TP101"]
    assert finding["line"] == line_of("observed", 'tp.observe(columns, "columns")')
    assert line_of("observed", "columns = windows.transpose") in [related["line"] for related in finding["related"]]


def test_without_the_observation_it_is_taken():
    plan = planned("observed", "hidden_observed")
    row = next(n for n, o in enumerate(plan.document()["observations"]) if o["kind"] == "observe")
    assert [region["pattern"] for region in regions(plan.what_if(ignore=[row]), "taken")] == ["conv_bn_activation"]


def test_observing_a_batch_norms_statistics_keeps_it_and_gives_them_back():
    plan = planned("observed", "statistics_observed")
    document = plan.document()
    assert [f["code"] for f in document["findings"] if f["code"] == "TP101"] == []
    (region,) = regions(plan, "taken")
    assert region["pattern"] == "batch_norm_training"
    assert set(region["named"]) == {"mean", "variance"}
    generator = np.random.default_rng(1)
    x = generator.standard_normal((64, 32, 28, 28), np.float32)
    scale, shift = generator.standard_normal((2, 32), np.float32)
    _, observed = plan.run(x, scale, shift, observed=True)
    np.testing.assert_allclose(observed["mean"].ravel(), x.mean((0, 2, 3)), atol=1e-5)
    np.testing.assert_allclose(observed["variance"].ravel(), x.var((0, 2, 3)), rtol=1e-5)


def test_the_seed_example_emits_one_convolution_and_one_reduce_window():
    text = planned("seed_convolution", "main", consumer="stablehlo").emit_stablehlo()
    assert text.count("stablehlo.convolution") == 1
    assert text.count("stablehlo.reduce_window") == 1
    assert not any(f"stablehlo.{op}" in text for op in ("gather", "slice", "concatenate", "dot_general"))
    for attributes in (
        "dim_numbers = [b, f, 0, 1]x[i, 0, 1, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]]} "
        "{batch_group_count = 1 : i64, feature_group_count = 1 : i64}",
        "{window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>}",
    ):
        assert attributes in text


def test_a_residual_block_is_two_kernels():
    plan = planned("residual_block", "block")
    assert [region["pattern"] for region in regions(plan, "taken")] == ["conv_bn_activation"] * 2
    assert plan.document()["totals"]["planned"]["calls"]["value"] == 2


def test_the_digits_network_is_right_on_more_than_97_of_100_held_out_images():
    pytest.importorskip("sklearn", reason="needs scikit-learn (the dev extra)")
    digits = example("digits_cnn")
    plan = planned("digits_cnn", "classify")
    assert "conv_bn_activation" in [match.pattern for match in plan.patterns]
    assert digits.accuracy(plan.run(*digits.example(0))) > 0.97
    assert (EXAMPLES / "digits_weights.npz").stat().st_size < 300_000


def test_a_transformer_block_is_attention_norms_and_gelu():
    block = example("transformer_block")
    plan = planned("transformer_block", "block")
    assert [match.pattern for match in plan.patterns] == ["layer_norm", "attention", "add_norm", "gelu"]
    inputs = block.example(0)
    np.testing.assert_allclose(plan.run(*inputs), block.block(*inputs), atol=1e-4)
