"""Formulas over ops, for recorded values and arrays alike. No op is made here that a user could not write."""

from topos_core.nn.activation import (
    elu,
    gelu,
    hardswish,
    leaky_relu,
    log_softmax,
    relu,
    relu6,
    sigmoid,
    silu,
    softmax,
    softplus,
    tanh,
)
from topos_core.nn.attention import attention, rotary_embedding, rotary_tables
from topos_core.nn.convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    convolution,
    convolution_transposed,
)
from topos_core.nn.linear import embedding, gated_mlp, linear
from topos_core.nn.loss import cross_entropy, mse_loss, nll_loss
from topos_core.nn.normalization import (
    batch_norm,
    batch_norm_inference,
    batch_norm_training,
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
)
from topos_core.nn.pooling import avg_pool, max_pool, min_pool, sum_pool

__all__ = [
    "attention", "avg_pool", "batch_norm", "batch_norm_inference", "batch_norm_training", "conv1d", "conv2d", "conv3d",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution", "convolution_transposed",
    "cross_entropy", "elu", "embedding", "gated_mlp", "gelu", "group_norm", "hardswish", "instance_norm", "layer_norm", "leaky_relu",
    "linear", "log_softmax", "max_pool", "min_pool", "mse_loss", "nll_loss", "relu", "relu6", "rms_norm", "rotary_embedding",
    "rotary_tables", "sigmoid", "silu", "softmax", "softplus", "sum_pool", "tanh",
]  # fmt: skip
