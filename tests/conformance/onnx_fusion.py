"""Where onnxruntime's optimiser fuses and topos does not, and the other way round.

    python -m tests.conformance.onnx_fusion [--verbose]

onnxruntime rewrites every model of `$TOPOS_CORPUS/onnx-transform` at its extended level; operators of which the rewritten model
has more are what it made. topos plans the model as it was given, and a pattern that stands for such an operator says whether
it recognised the same. Where it did not, its own near miss, opaque op or declared limit is the reason.
"""

from __future__ import annotations

import argparse
import collections
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import topos_core as tp
from tests.conformance.onnx_corpus import Extents, corpus, models
from topos_core.errors import ToposError
from topos_core.importers.onnx_model.record import record_onnx

CONVOLUTIONS: Final = ("convolution", "conv_bn_activation")
LINEARS: Final = ("linear", "linear_bias_activation", "gated_mlp")
ATTENTIONS: Final = ("attention", "multi_head_attention")

SAME: Final[Mapping[str, tuple[str, ...]]] = {
    "FusedConv": CONVOLUTIONS, "FusedGemm": LINEARS, "Gemm": LINEARS, "FusedMatMul": (*LINEARS, *ATTENTIONS),
    "Gelu": ("gelu", *LINEARS, *CONVOLUTIONS), "FastGelu": ("gelu", *LINEARS, *CONVOLUTIONS), "BiasGelu": ("gelu", *LINEARS),
    "QuickGelu": ("silu", *LINEARS), "BiasSoftmax": ("softmax", *ATTENTIONS), "LayerNormalization": ("layer_norm", "add_norm"),
    "SimplifiedLayerNormalization": ("rms_norm", "add_norm", "layer_norm"), "RMSNormalization": ("rms_norm", "add_norm"),
    "SkipLayerNormalization": ("add_norm", "layer_norm"), "SkipSimplifiedLayerNormalization": ("add_norm", "rms_norm"),
    "EmbedLayerNormalization": ("layer_norm", "add_norm"), "Attention": ATTENTIONS, "MultiHeadAttention": ATTENTIONS,
    "GroupQueryAttention": ATTENTIONS, "RotaryEmbedding": ("rotary_embedding",),
}  # fmt: skip
"""Operators that onnxruntime makes, and the patterns that stand for the same computation, or for all of it and its centring."""

GIVEN: Final[Mapping[str, tuple[str, ...]]] = {
    "Conv": ("convolution", "linear"), "ConvTranspose": ("convolution",), "MaxPool": ("window_reduce",), "AveragePool": ("window_reduce",),
    "LpPool": ("window_reduce",), "GlobalAveragePool": ("window_reduce",), "MatMul": ("linear",), "Gemm": ("linear",), "Softmax": ("softmax",),
    "LogSoftmax": ("log_softmax",), "LayerNormalization": ("layer_norm",), "BatchNormalization": ("batch_norm_inference",),
    "InstanceNormalization": ("instance_norm",), "GroupNormalization": ("group_norm",), "Gelu": ("gelu",), "Attention": ("attention",),
    "SoftmaxCrossEntropyLoss": ("cross_entropy", "log_softmax"), "RotaryEmbedding": ("rotary_embedding",), "Swish": ("silu",),
}  # fmt: skip
"""Operators of a model as it was given, and the patterns that each is by itself: finding them is no fusion."""

FOLDED: Final = frozenset(
    ("BatchNormalization", "Add", "Mul", "Relu", "Clip", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "Pad")
)
"""What onnxruntime folds into a convolution without giving it another name."""

LIMITS: Final[Mapping[str, str]] = {
    "FusedMatMul": "no pattern: a product of two batches is one recorded op, and transposes and scales of its operands are seen"
    " through by the patterns above it",
}
"""What topos has no pattern for on purpose, where a model gives no nearer reason."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One model.

    Args:
        name: Its path in the corpus.
        both: Operators that onnxruntime made and a region of topos stands for.
        missing: Operators that no region stands for, with topos's reason.
        only: Patterns that topos recognised over several operators which onnxruntime left as they were.
        failed: Why it could not be compared.
    """

    name: str
    both: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    failed: str = ""


def compare(path: Path, folder: Path) -> Compared:
    """Optimises a model with onnxruntime, plans it with topos, and compares."""
    import onnx

    name = str(path.relative_to(folder))
    model = onnx.load(str(path), load_external_data=False)
    try:
        tape = record_onnx(str(path.resolve()), dims=Extents())
    except ToposError as error:
        return Compared(name, failed=f"topos: {error.message}"[:160])
    try:
        after = _rewritten(path)
    except Exception as error:  # onnxruntime's own kinds, which say why it does not load the model
        return Compared(name, failed=f"onnxruntime: {str(error).splitlines()[0]}"[:160])
    before = _operators(model)
    made = [operator for operator in after - before if operator in SAME]
    removed = before - after
    plan = tp.plan(tape, machine="reference")
    found = {decision.match.pattern for decision in plan.data.decisions}
    found |= {each.partition("@")[0] for decision in plan.data.decisions for each in decision.contains}
    both = tuple(operator for operator in made if found.intersection(SAME[operator]))
    missing = {operator: _reason(operator, plan) for operator in made if operator not in both}
    known = {pattern for operator in before for pattern in GIVEN.get(operator, ())}
    known |= {pattern for operator in made for pattern in SAME[operator]}
    if FOLDED & removed.keys():
        known |= set(CONVOLUTIONS)
    return Compared(name, both, missing, tuple(sorted(found - known)))


def _rewritten(path: Path) -> collections.Counter[str]:
    """Gives the operators of a model as onnxruntime rewrites it, where they would run on any machine."""
    import onnx
    import onnxruntime as ort

    with tempfile.TemporaryDirectory() as folder:
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        options.optimized_model_filepath = f"{folder}/optimised.onnx"
        ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return _operators(onnx.load(options.optimized_model_filepath, load_external_data=False))


def _operators(model: Any) -> collections.Counter[str]:
    return collections.Counter(node.op_type for node in model.graph.node)


def _reason(operator: str, plan: Any) -> str:
    """Says why topos has no region for what onnxruntime made: a near miss, an opaque op, or a declared limit."""
    wanted = SAME[operator]
    near = [miss for miss in plan.near_misses if miss.pattern in wanted]
    near += [miss for each in plan.data.decisions for miss in each.match.stopped if miss.pattern in wanted]
    if near:
        best = max(near, key=lambda miss: miss.steps_held / max(miss.steps, 1))
        return f"near miss of {best.pattern}: {best.sentence}"
    opaque = [op for op in plan.tape.ops if op.name == "opaque"]
    if opaque:
        note = opaque[0].attributes["note"]
        return f"holds opaque {opaque[0].attributes['foreign']}" + (f": {note}" if note else "")
    return LIMITS.get(operator, UNTOLD)


UNTOLD = "no region and no near miss"


def table(rows: Iterable[Compared], *, verbose: bool = False) -> str:
    """Renders the operators that onnxruntime made, then the patterns that topos alone found."""
    rows = list(rows)
    compared = [row for row in rows if not row.failed]
    lines = [f"{len(compared)} of {len(rows)} models compared", ""]
    lines.append(f"{'onnxruntime made':32} {'models':>7} {'topos too':>10}  {'reasons of the others (models)'}")
    for operator in SAME:
        both = [row for row in compared if operator in row.both]
        missing = [row for row in compared if operator in row.missing]
        if both or missing:
            reasons = collections.Counter(row.missing[operator] for row in missing)
            told = "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common())
            lines.append(f"{operator:32} {len(both) + len(missing):7} {len(both):10}  {told}")
    lines += ["", f"{'topos alone recognised':32} {'models':>7}"]
    alone = collections.Counter(pattern for row in compared for pattern in row.only)
    lines += [f"{pattern:32} {count:7}" for pattern, count in alone.most_common()]
    if verbose:
        lines.append("")
        for row in rows:
            lines += [f"failed   {row.name}: {row.failed}"] if row.failed else []
            lines += [f"missing  {row.name}: {operator}: {reason}" for operator, reason in row.missing.items()]
            lines += [f"alone    {row.name}: {', '.join(row.only)}"] if row.only else []
    return "\n".join(lines)


def main() -> None:
    """Compares the whole corpus and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verbose", action="store_true", help="lists every model that differs")
    arguments = parser.parse_args()
    folder = corpus()
    print(table([compare(path, folder) for path in models(folder)], verbose=arguments.verbose))


if __name__ == "__main__":
    main()
