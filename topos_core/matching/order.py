"""The order of topos's own patterns, by identifier: for whoever tells of them without loading them."""

from __future__ import annotations

from typing import Final

ORDER: Final = (
    "convolution", "conv_bn_activation", "depthwise_pointwise", "window_reduce", "batch_norm_training",
    "batch_norm_inference", "linear", "linear_bias_activation", "gated_mlp", "matmul", "attention",
    "multi_head_attention", "softmax", "log_softmax", "cross_entropy", "mse_loss", "layer_norm", "rms_norm",
    "group_norm", "instance_norm", "layer_norm_linear", "add_norm", "gelu", "silu", "rotary_embedding",
    "elementwise_chain", "elementwise_reduction", "reduction_elementwise", "sibling_matmul", "sibling_elementwise",
)  # fmt: skip
"""On equal claims the identifier listed earlier wins; patterns from outside come after all of these."""

LAST: Final = frozenset((
    "matmul", "elementwise_chain", "elementwise_reduction", "reduction_elementwise", "sibling_matmul",
    "sibling_elementwise",
))  # fmt: skip
"""Searched and elected last, on what the others leave."""
