"""The catalogue's order: on equal claims the identifier listed earlier wins; some are elected last."""

from __future__ import annotations

from typing import Final

ORDER: Final = (
    "convolution", "conv_bn_activation", "depthwise_pointwise", "window_reduce", "batch_norm_training",
    "batch_norm_inference", "linear", "linear_bias_activation", "gated_mlp", "matmul", "attention",
    "multi_head_attention", "softmax", "log_softmax", "cross_entropy", "mse_loss", "layer_norm", "rms_norm",
    "group_norm", "instance_norm", "layer_norm_linear", "add_norm", "gelu", "silu", "rotary_embedding",
    "elementwise_chain", "elementwise_reduction", "reduction_elementwise", "sibling_matmul", "sibling_elementwise",
)  # fmt: skip
_RANK: Final = {identifier: rank for rank, identifier in enumerate(ORDER)}
_LAST_PREFIXES: Final = ("elementwise_", "sibling_")
_LAST: Final = frozenset(("matmul", "reduction_elementwise"))


def rank(identifier: str) -> tuple[int, str]:
    """Gives a pattern's place; patterns from outside stand behind the catalogue, by name."""
    return _RANK.get(identifier, len(ORDER)), identifier


def is_last(identifier: str) -> bool:
    """Tells whether a pattern of the catalogue is elected on what the others leave."""
    return identifier in _LAST or identifier.startswith(_LAST_PREFIXES)
