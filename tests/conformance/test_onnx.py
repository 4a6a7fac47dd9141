import collections
from functools import cache

import pytest

pytest.importorskip("onnx")

from tests.conformance import onnx_corpus, onnx_fusion, onnx_light, onnx_suite
from tests.conformance.drawn import drawn

SHARE_OF_CI = 12  # one case in so many
ALWAYS = (
    "test_argmax_default_axis_random", "test_attention_4d_causal", "test_attention_3d", "test_averagepool_2d_ceil",
    "test_averagepool_2d_same_upper", "test_basic_conv_with_padding", "test_batchnorm_epsilon", "test_bitshift_left_uint8",
    "test_batchnorm_example_training_mode", "test_celu", "test_clip_example", "test_col2im_strides", "test_conv_with_autopad_same",
    "test_convtranspose_output_shape", "test_convtranspose_dilations", "test_cumsum_2d_axis_0", "test_depthtospace_example",
    "test_div_int32_trunc", "test_dynamicquantizelinear", "test_einsum_batch_diagonal", "test_gather_elements_1", "test_gathernd_example_float32",
    "test_gelu_tanh_1", "test_gemm_all_attributes", "test_group_normalization_example", "test_gru_with_initial_bias",
    "test_hardmax_axis_1", "test_instancenorm_example", "test_layer_normalization_2d_axis0", "test_logsoftmax_axis_1",
    "test_lrn", "test_lstm_with_peepholes", "test_maxpool_2d_dilations", "test_mod_mixed_sign_float32",
    "test_nllloss_NCd1d2", "test_onehot_with_axis", "test_prelu_broadcast", "test_qlinearmatmul_2D_uint8_float32",
    "test_quantizelinear_axis", "test_reflect_pad", "test_reshape_negative_dim", "test_resize_upsample_sizes_cubic",
    "test_rms_normalization_2d_axis1", "test_rotary_embedding", "test_scatter_elements_with_duplicate_indices",
    "test_sce_mean", "test_simple_rnn_with_initial_bias", "test_slice_negative_axes", "test_softmax_axis_1",
    "test_split_variable_parts_2d_opset18", "test_transpose_all_permutations_0", "test_triu", "test_where_example",
)  # fmt: skip


@cache
def node_cases():
    return {case.name: case for case in onnx_suite.cases("node")}


@pytest.mark.parametrize("name", ALWAYS)
def test_an_operator_of_each_family_computes_what_onnx_says(name):
    case = node_cases().get(name)
    if case is None:
        pytest.skip(f"the installed onnx has no case {name}")
    outcome = onnx_suite.run("node", case)
    assert outcome.verdict in ("passes", "bound"), outcome


def test_cases_drawn_by_the_commit_are_never_wrong():
    outcomes = [onnx_suite.run("node", node_cases()[name]) for name in drawn(node_cases(), SHARE_OF_CI)]
    assert [outcome for outcome in outcomes if outcome.verdict in ("wrong", "refused")] == []


@pytest.mark.conformance
def test_the_backend_suite_is_never_wrong_and_mostly_passes():
    outcomes = [onnx_suite.run(kind, case) for kind in onnx_suite.KINDS for case in onnx_suite.cases(kind)]
    print(onnx_suite.table(outcomes))
    assert [outcome for outcome in outcomes if outcome.verdict in ("wrong", "refused")] == []
    nodes = collections.Counter(outcome.verdict for outcome in outcomes if outcome.kind == "node")
    assert nodes["passes"] + nodes["bound"] >= 0.6 * sum(nodes.values())


@pytest.mark.conformance
def test_the_corpus_of_graph_transforms_agrees_with_onnxruntime():
    pytest.importorskip("onnxruntime")
    folder = onnx_corpus.corpus()
    if not folder.is_dir():
        pytest.skip("there is no corpus; set TOPOS_CORPUS to a folder that holds onnx-transform")
    outcomes = [onnx_corpus.run(path, folder) for path in onnx_corpus.models(folder)]
    print(onnx_corpus.table(outcomes))
    assert [outcome for outcome in outcomes if outcome.verdict in ("wrong", "refused")] == []


@pytest.mark.conformance
def test_whatever_onnxruntime_fuses_and_topos_does_not_has_its_reason():
    pytest.importorskip("onnxruntime")
    folder = onnx_corpus.corpus()
    if not folder.is_dir():
        pytest.skip("there is no corpus; set TOPOS_CORPUS to a folder that holds onnx-transform")
    compared = [onnx_fusion.compare(path, folder) for path in onnx_corpus.models(folder)]
    print(onnx_fusion.table(compared))
    assert [one for one in compared if onnx_fusion.UNTOLD in one.missing.values()] == []


@pytest.mark.conformance
def test_the_light_models_with_seeded_weights_agree_with_onnxruntime():
    pytest.importorskip("onnxruntime")
    outcomes = dict(onnx_light.outcomes([]))
    print(*(f"{name:28} {outcome}" for name, outcome in outcomes.items()), sep="\n")
    assert set(outcomes.values()) == {"agrees"}
