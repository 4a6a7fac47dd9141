"""A match's facts in words: its title, and the short table that hovers and panels show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final

from topos_core.document.display import display
from topos_core.matching.expression import ExpressionFacts
from topos_core.matching.facts import (
    ConvolutionFacts,
    EpilogueFacts,
    NormFacts,
    SiblingFacts,
    Window,
    WindowReduceFacts,
)

_REDUCERS: Final = {"max": "max pool", "min": "min pool", "sum": "sum over windows"}
_ACTIVATIONS: Final = {
    "gelu_tanh": "gelu (tanh)", "gelu_erf": "gelu (erf)", "gelu_sigmoid": "gelu (sigmoid)",
    "gelu_sigmoid_of_exp": "gelu (sigmoid, e / (1 + e))", "silu_of_exp": "silu (e / (1 + e))",
    "sigmoid_of_exp": "sigmoid (e / (1 + e))", "relu_where_positive": "relu (x > 0, else 0)",
    "relu_where_not_negative": "relu (x >= 0, else 0)", "relu_unless_negative": "relu (0 where x < 0)",
}  # fmt: skip
SHOWN: Final = 12
"""Ops of an expression that a table names."""
_TITLES: Final = {
    "batch_norm_training": "batch norm (training)",
    "batch_norm_inference": "batch norm (inference)",
    "mse_loss": "mean squared error",
}


def title(pattern: str, facts: Any) -> str:
    """Names a match for people: `convolution 3x3, 16 -> 32 channels`."""
    match facts:
        case ConvolutionFacts():
            return _convolution(facts)
        case EpilogueFacts():
            return _epilogue(facts)
        case WindowReduceFacts():
            return _window_reduce(facts)
        case NormFacts():
            return f"{name(pattern)}, {facts.channels} channel{'s' if facts.channels != 1 else ''}"
        case ExpressionFacts():
            several = f" and {len(facts.results)} results" if len(facts.results) > 1 else ""
            return f"{name(pattern)} of {len(facts.steps)} ops{several}"
        case SiblingFacts():
            return f"{len(facts.columns)} sibling matmuls, {' + '.join(map(str, facts.columns))} columns"
    return name(pattern)


def name(pattern: str) -> str:
    """Writes an identifier as words."""
    return _TITLES.get(pattern, display(pattern).replace("_", " "))


def table(facts: Any) -> dict[str, str]:
    """Gives the facts that people ask for, as short texts."""
    match facts:
        case None:
            return {}
        case ConvolutionFacts():
            return _convolution_table(facts)
        case EpilogueFacts():
            rows = _convolution_table(facts.convolution)
            if facts.bias:
                rows["bias"] = "yes"
            if facts.norm is not None:
                rows["batch norm"] = f"inference, epsilon {facts.norm:g}"
            if facts.steps:
                rows["per channel"] = ", ".join(facts.steps)
            if facts.residual:
                rows["residual"] = "added last" if facts.residual_last else "added before the activation"
            if facts.activation != "none":
                rows["activation"] = _activation(facts.activation)
            return rows
        case WindowReduceFacts():
            sliding = [w for w in facts.windows if w != Window()]
            rows = {"reduction": facts.reducer, **(_windows(sliding) if sliding else {})}
            if facts.pad_fill is not None:
                rows["reads outside"] = f"{facts.pad_fill:g}"
            if facts.scale != 1.0:
                rows["scale"] = f"{facts.scale:g}"
            if facts.counted is not None:
                beside = any(any(sides) for sides in facts.counted)
                rows["divides by"] = "elements and some of the padding" if beside else "elements in the image"
            return rows
        case NormFacts():
            return {
                "channels": str(facts.channels),
                "elements per channel": str(facts.count),
                "epsilon": f"{facts.epsilon:g}",
            }
        case ExpressionFacts():
            return _expression_table(facts)
        case SiblingFacts():
            columns = " + ".join(map(str, facts.columns))
            return {"shared": f"{facts.rows}x{facts.steps}", "columns": columns}
    return _plain(facts)


def _expression_table(facts: ExpressionFacts) -> dict[str, str]:
    ops = [step.op for step in facts.steps]
    shown = ", ".join(ops[:SHOWN]) + (f" and {len(ops) - SHOWN} more" if len(ops) > SHOWN else "")
    rows = {"ops": shown, "positions": _extents(facts.extents) or "1"}
    if facts.reduced:
        rows["reduced axes"] = ", ".join(map(str, facts.reduced))
    return rows


def _plain(facts: Any) -> dict[str, str]:
    """Shows the scalars of a dataclass that no one else words; layouts and structures stay inside."""
    if not is_dataclass(facts):
        return {}
    rows = {}
    for entry in fields(facts):
        value = getattr(facts, entry.name)
        if isinstance(value, bool):
            rows[entry.name.replace("_", " ")] = "yes" if value else "no"
        elif isinstance(value, (int, str)):
            rows[entry.name.replace("_", " ")] = display(str(value))
        elif isinstance(value, float):
            rows[entry.name.replace("_", " ")] = f"{value:g}"
    return rows


def _convolution(facts: ConvolutionFacts) -> str:
    depthwise = facts.groups > 1 and facts.in_channels == 1
    kind = "depthwise convolution" if depthwise else "convolution"
    if any(w.base_dilation > 1 for w in facts.windows):
        kind = f"transposed {kind}"
    size = _extents(w.size for w in facts.windows)
    groups = f", {facts.groups} groups" if facts.groups > 1 and not depthwise else ""
    return f"{kind} {size}, {facts.in_channels * facts.groups} -> {facts.out_channels} channels{groups}"


def _epilogue(facts: EpilogueFacts) -> str:
    parts = [_convolution(facts.convolution)]
    if facts.bias:
        parts.append("bias")
    if facts.norm is not None:
        parts.append("batch norm")
    if facts.steps:
        parts.append("scale and shift")
    activation = [] if facts.activation == "none" else [_activation(facts.activation)]
    residual = ["residual"] if facts.residual else []
    parts += [*activation, *residual] if facts.residual_last else [*residual, *activation]
    return " + ".join(parts)


def _activation(activation: str) -> str:
    return _ACTIVATIONS.get(activation, display(activation))


def _window_reduce(facts: WindowReduceFacts) -> str:
    kind = "average pool" if facts.is_average else _REDUCERS[facts.reducer]
    sizes = [w.size for w in facts.windows if w != Window()] or [1]
    return f"{kind} {_extents(sizes)}"


def _convolution_table(facts: ConvolutionFacts) -> dict[str, str]:
    rows = _windows(facts.windows)
    rows["channels"] = f"{facts.in_channels * facts.groups} -> {facts.out_channels}"
    if facts.groups > 1:
        rows["groups"] = str(facts.groups)
    rows["batch"] = str(facts.batch)
    return rows


def _windows(windows: Sequence[Window]) -> dict[str, str]:
    rows = {"window": _extents(w.size for w in windows), "stride": _extents(w.stride for w in windows)}
    if any(w.dilation != 1 for w in windows):
        rows["dilation"] = _extents(w.dilation for w in windows)
    if any(w.low or w.high for w in windows):
        rows["padding"] = " ".join(f"{w.low},{w.high}" for w in windows)
    if any(w.base_dilation != 1 for w in windows):
        rows["base dilation"] = _extents(w.base_dilation for w in windows)
    if any(w.reversed for w in windows):
        rows["kernel"] = "runs backwards along " + ", ".join(str(k) for k, w in enumerate(windows) if w.reversed)
    return rows


def _extents(numbers: Any) -> str:
    return "x".join(map(str, numbers))
