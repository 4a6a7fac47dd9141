"""Linear layers over the last axis, weights [out, in] as torch keeps them, and embedding."""

from __future__ import annotations

from collections.abc import Callable

from topos_core.nn.activation import silu
from topos_core.nn.arguments import Array, described, refusal
from topos_core.recording.elementary import take


def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """Gives x @ weight.T + bias.

    Args:
        x: f32[..., in].
        weight: f32[out, in].
        bias: f32[out].

    Raises:
        RecordingError: Extents do not fit.
    """
    if weight.ndim != 2 or x.shape[-1] != weight.shape[1]:
        raise refusal(f"linear: weight {described(weight)} does not fit {described(x)}; it is [out, in]", x, weight)
    y = x @ weight.T
    return y if bias is None else y + bias


def embedding(x: Array, weight: Array) -> Array:
    """Looks rows of `weight`, f32[entries, width], up by the integers x: f32[*x.shape, width]."""
    return take(weight, x, axis=0)


def gated_mlp(x: Array, gate: Array, up: Array, down: Array, activation: Callable[[Array], Array] = silu) -> Array:
    """Gives (activation(x @ gate.T) * (x @ up.T)) @ down.T (Shazeer 2020, arXiv:2002.05202).

    Args:
        x: f32[..., width].
        gate, up: f32[inner, width].
        down: f32[width, inner].
        activation: Elementwise, on the gate.
    """
    return linear(activation(linear(x, gate)) * linear(x, up), down)
