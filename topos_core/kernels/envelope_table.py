"""Measured errors of home's kernels against float64; written by `benchmarks/measure_envelopes.py`."""

from __future__ import annotations

from typing import Final

PROBE: Final = "probe set 3; numpy 2.4.6, llvmlite 0.50.0; 128, 256 and 512-bit vectors"
"""What the errors were measured with: the largest of the probe set, over all vector widths, doubled."""

DRAWN: Final = 400
"""Drawn probes of every pattern and vector width that are among them, beside the fixed ones."""

RELATIVE: Final = {
    "add_norm": {"f32": 4.1e-07, "f64": 4.9e-15, "f16": 9.4e-04, "bf16": 7.8e-03},
    "attention": {"f32": 2.0e-06, "f64": 3.9e-15, "f16": 9.6e-04, "bf16": 7.1e-03},
    "batch_norm_inference": {"f32": 3.1e-07, "f64": 4.0e-15, "f16": 8.8e-04, "bf16": 7.3e-03},
    "batch_norm_training": {"f32": 2.8e-05, "f64": 1.1e-13, "f16": 8.8e-04, "bf16": 7.7e-03},
    "conv_bn_activation": {"f32": 1.6e-06, "f64": 3.6e-15, "f16": 9.2e-04, "bf16": 7.0e-03},
    "convolution": {"f32": 1.9e-06, "f64": 7.8e-15, "f16": 9.5e-04, "bf16": 7.6e-03},
    "cross_entropy": {"f32": 4.0e-07, "f64": 8.8e-16, "f16": 9.2e-04, "bf16": 7.2e-03},
    "depthwise_pointwise": {"f32": 1.5e-06, "f64": 2.3e-15, "f16": 9.6e-04, "bf16": 7.1e-03},
    "elementwise_chain": {"f32": 5.0e-06, "f64": 6.7e-15, "f16": 1.2e-02, "bf16": 9.2e-02},
    "elementwise_reduction": {"f32": 2.2e-07, "f64": 3.2e-14, "f16": 1.4e-03, "bf16": 9.9e-03},
    "gated_mlp": {"f32": 2.2e-06, "f64": 2.5e-15, "f16": 9.3e-04, "bf16": 6.8e-03},
    "gelu": {"f32": 1.1e-06, "f64": 7.0e-16, "f16": 8.6e-04, "bf16": 7.7e-03},
    "group_norm": {"f32": 2.7e-06, "f64": 1.3e-14},
    "instance_norm": {"f32": 8.8e-07, "f64": 2.1e-15},
    "layer_norm": {"f32": 2.9e-06, "f64": 9.0e-15, "f16": 8.7e-04, "bf16": 7.4e-03},
    "layer_norm_linear": {"f32": 3.3e-06, "f64": 9.0e-15, "f16": 1.3e-03, "bf16": 1.7e-02},
    "linear": {"f32": 1.6e-06, "f64": 5.1e-15, "f16": 9.3e-04, "bf16": 7.6e-03},
    "linear_bias_activation": {"f32": 1.8e-06, "f64": 3.4e-15, "f16": 8.8e-04, "bf16": 7.3e-03},
    "log_softmax": {"f32": 2.2e-07, "f64": 1.4e-15, "f16": 8.4e-04, "bf16": 7.3e-03},
    "matmul": {"f32": 1.7e-06, "f64": 2.8e-15, "f16": 8.9e-04, "bf16": 7.2e-03},
    "mse_loss": {"f32": 3.7e-07, "f64": 1.1e-15},
    "multi_head_attention": {"f32": 3.6e-05, "f64": 8.8e-14, "f16": 8.5e-04, "bf16": 7.1e-03},
    "reduction_elementwise": {"f32": 5.3e-07, "f64": 2.0e-14, "f16": 1.9e-03, "bf16": 1.2e-02},
    "rms_norm": {"f32": 5.5e-07, "f64": 1.3e-15, "f16": 9.3e-04, "bf16": 6.7e-03},
    "rotary_embedding": {"f32": 1.8e-07, "f64": 3.4e-16, "f16": 9.5e-04, "bf16": 7.2e-03},
    "sibling_elementwise": {"f32": 4.5e-07, "f64": 4.8e-16, "f16": 1.1e-03, "bf16": 8.1e-03},
    "sibling_matmul": {"f32": 2.3e-06, "f64": 3.0e-15, "f16": 9.8e-04, "bf16": 7.7e-03},
    "silu": {"f32": 2.2e-07, "f64": 4.8e-16, "f16": 9.1e-04, "bf16": 7.0e-03},
    "softmax": {"f32": 1.2e-06, "f64": 1.7e-14, "f16": 6.0e-04, "bf16": 7.5e-03},
    "window_reduce": {"f32": 2.7e-07, "f64": 8.8e-16, "f16": 8.6e-04, "bf16": 6.5e-03},
    "winograd": {"f32": 3.3e-05},
    "winograd_small": {"f32": 2.9e-06},
}
"""By pattern and dtype: max |got - f64| / max |f64|; of drawn probes, divided by their condition."""
