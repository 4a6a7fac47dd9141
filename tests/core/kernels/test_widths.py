"""The kernels' own tests on narrower vectors, each width in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TESTS = (
    "test_convolution.py::test_tails_of_lanes_and_rows",
    "test_convolution.py::test_channels_last_images_kernels_and_results",
    "test_convolution.py::test_any_memory_order_of_the_image_is_read_through_its_strides",
    "test_window_reduce.py::test_tails_of_lanes",
    "test_batch_norm.py::test_planes_around_the_thresholds",
    "test_batch_norm.py::test_row_blocks_around_their_size",
    "test_transcendental.py::test_special_values",
    "test_expressions.py::test_tails_of_lanes",
    "test_expressions.py::test_reductions_along_any_axes",
    "test_winograd.py::test_tails_of_registers_of_tiles",
    "test_winograd.py::test_every_epilogue_in_the_recorded_order",
    "test_depthwise_pointwise.py::test_tails_of_positions_and_rows",
    "test_depthwise_pointwise.py::test_biases_and_activations",
    "test_special_parameters.py::test_a_depthwise_and_a_pointwise_convolution",
    "test_special_parameters.py::test_both_sides_of_a_pair_take_steps",
    "test_special_parameters.py::test_norms_of_rows",
    "test_cores.py::test_norms_along_columns",
    "test_losses.py::test_add_norm_normalises_the_sum_before_it_was_rounded",
    "test_attention.py::test_few_queries_and_many",
    "test_attention.py::test_causal",
    "test_multi_head_attention.py::test_biases_and_a_mask",
    "test_gated_mlp.py::test_both_sides_in_one_product",
    "test_rotary_embedding.py::test_pairs_beside_each_other",
    "test_rotary_embedding.py::test_tables_of_half_the_width",
    "../../laws/test_margins.py::test_a_chain_of_convolutions_keeps_its_bits",
    "../../laws/test_margins.py::test_blocks_with_residuals_behind_a_pool",
    "../../laws/test_margins.py::test_no_kernel_of_the_chain_but_the_first_copies_its_image",
    *(
        f"../../laws/test_told_memory.py::test_a_kernel_takes_what_its_plan_tells[{case}]"
        for case in (
            "convolution-plain",
            "conv_bn_activation-plain",
            "conv_bn_activation-turned",
            "depthwise_pointwise-plain",
        )
    ),
    "test_winograd.py::test_tiles_run_wherever_they_are_told_to",
)
WIDTHS = {
    "avx2": {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2,+fma,-avx512f"},
    "sse": {"NUMBA_CPU_NAME": "generic"},
}


@pytest.mark.timeout(
    600
)  # it compiles all of these kernels anew where a generator has changed: minutes beside other work
@pytest.mark.parametrize("width", WIDTHS)
def test_narrower_vectors(width):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(str(HERE / test) for test in TESTS)]
    done = subprocess.run(
        command, env={**os.environ, **WIDTHS[width]}, cwd=HERE.parents[2], capture_output=True, text=True
    )
    assert done.returncode == 0, f"status {done.returncode}: {done.stdout[-3000:]}{done.stderr[-1000:]}"
