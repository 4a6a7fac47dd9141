"""What recognition makes of every layer of every model: `python -m tests.conformance.torch_models.recall [--verbose] [NAME...]`.

The truth is the module tree and the graph that torch exports, never what topos found: every call of a convolution, a batch, layer or
RMS norm, GELU or SiLU, a linear layer (once more with the activation that reads it) and every softmax between two products. Each has
an op that makes it what it is (its product, its square root, its exp). A layer is `taken`, `declined` or `blocked` where a region of
a pattern of its kind computes that op, `near` where only a near miss stands in it, which says why, and `lost` where nothing does. A
region of a pattern that computes no layer of its kind is `false`.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from tests.conformance.torch_models.zoo import Model, models

_ACTED: Final = ("linear_bias_activation", "conv_bn_activation", "depthwise_pointwise")

KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "convolution": (
        "convolution",
        "conv_bn_activation",
        "depthwise_pointwise",
        "linear",
        "linear_bias_activation",
    ),  # 1x1 over one pixel
    "batch norm": ("batch_norm_inference", "batch_norm_training", "conv_bn_activation", "depthwise_pointwise"),
    "layer norm": ("layer_norm", "add_norm", "layer_norm_linear"),
    "RMS norm": ("rms_norm", "add_norm"),
    "attention": ("attention", "multi_head_attention"),
    "GELU": ("gelu", *_ACTED, "layer_norm_linear", "gated_mlp"),
    "SiLU": ("silu", *_ACTED, "layer_norm_linear", "gated_mlp"),
    "linear": ("linear", "linear_bias_activation", "layer_norm_linear", "gated_mlp", "multi_head_attention"),
    "linear + activation": ("linear_bias_activation", "layer_norm_linear", "gated_mlp"),
}
"""The patterns that a layer of a kind may be found as."""

NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "convolution": ("convolution",), "conv_bn_activation": ("convolution",), "depthwise_pointwise": ("convolution",),
    "batch_norm_inference": ("batch norm",), "layer_norm_linear": ("layer norm", "group norm"),
    "batch_norm_training": ("batch norm", "group norm"), "layer_norm": ("layer norm", "group norm"),
    "instance_norm": ("group norm",), "group_norm": ("group norm",), "rms_norm": ("RMS norm",), "attention": ("attention",),
    "multi_head_attention": ("attention",), "gelu": ("GELU",), "silu": ("SiLU",), "add_norm": ("layer norm", "RMS norm"),
}  # fmt: skip
"""The kinds of which a region of a pattern holds one. Of one group a channel, or one for all, a group norm is those norms."""

UNCOUNTED: Final = frozenset((
    "softmax", "log_softmax", "cross_entropy", "mse_loss", "window_reduce", "rotary_embedding", "matmul", "linear",
    "linear_bias_activation", "gated_mlp", "elementwise_chain", "elementwise_reduction", "reduction_elementwise", "sibling_matmul",
    "sibling_elementwise",
))  # fmt: skip
"""Patterns whose regions need no layer of the truth: plain products are linear layers too, and loops are anything."""

CALLS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    **{f"conv{each}d": ("convolution", ("matmul", "einsum")) for each in (1, 2, 3)},
    **{f"conv_transpose{each}d": ("convolution", ("matmul", "einsum")) for each in (1, 2, 3)},
    "batch_norm": ("batch norm", ("sqrt", "rsqrt")),
    "layer_norm": ("layer norm", ("sqrt", "rsqrt")),
    "group_norm": ("group norm", ("sqrt", "rsqrt")),
    "rms_norm": ("RMS norm", ("sqrt", "rsqrt")),
    "gelu": ("GELU", ("erf", "tanh")),
    "silu": ("SiLU", ("exp",)),
    "linear": ("linear", ("matmul", "einsum")),
    "addmm": ("linear", ("matmul", "einsum")),
    "scaled_dot_product_attention": ("attention", ("exp",)),
}
"""ATen calls that are a layer: its kind, and the ops that make it one."""

CLASSES: Final = (
    ("RMSNorm", "RMS norm", ("sqrt", "rsqrt")), ("T5LayerNorm", "RMS norm", ("sqrt", "rsqrt")),
    ("NewGELUActivation", "GELU", ("tanh",)), ("SiLUActivation", "SiLU", ("exp",)),
)  # fmt: skip
"""Modules that write a layer out in several calls, by the end of their class's name."""

ACTING: Final = frozenset(("relu", "gelu", "silu", "tanh", "sigmoid", "hardswish", "hardtanh", "leaky_relu", "elu"))
PASSING: Final = frozenset(
    ("view", "reshape", "dropout", "clone", "contiguous", "to", "expand", "type_as", "transpose", "flatten")
)
PRODUCTS: Final = frozenset(("matmul", "bmm", "einsum", "mm", "baddbmm"))
VERDICTS: Final = ("taken", "declined", "blocked", "near", "lost")


@dataclass(frozen=True, slots=True)
class Layer:
    """One call of one layer.

    Args:
        kind: A key of `KINDS`, or `group norm`, which is only looked at to tell what is false.
        path: The module that it ran in.
        keys: The ops that make it what it is.
        first, last: The range of the ops that were recorded for it.
    """

    kind: str
    path: str
    keys: frozenset[int]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Called:
    """One call of the exported graph, and the ops `first` up to `last` that were recorded for it."""

    node: Any
    name: str
    path: str
    owner: str
    first: int
    last: int


@contextmanager
def calls_noted() -> Iterator[list[Called]]:
    """Notes which ops are recorded for which call while modules are imported inside."""
    from topos_core.importers.torch_export import record
    from topos_core.importers.torch_export.places import scope_of

    noted: list[Called] = []

    class Noting(record.Translator):
        def _operator(self, node: Any, name: str) -> None:
            first = len(self.recorder.ops)
            super()._operator(node, name)
            stack = list((node.meta.get("nn_module_stack") or {}).values())
            owner = stack[-1][1] if stack else ""
            title = owner if isinstance(owner, str) else owner.__qualname__
            path = ".".join(scope_of(node))
            noted.append(
                Called(node, name.removesuffix("_"), path, title.rpartition(".")[2], first, len(self.recorder.ops))
            )

    original = record.Translator
    record.Translator = Noting  # type: ignore[misc]
    try:
        yield noted
    finally:
        record.Translator = original  # type: ignore[misc]


def layers(called: list[Called], tape: Any) -> list[Layer]:
    """Lists the layers of a graph, in order."""
    by_node = {each.node: each for each in called}
    found = [*_calls(called, by_node, tape), *_written_out(called, tape)]
    acting = {each.node for each in called if each.name in ACTING or _class(each.owner)[0] in ("GELU", "SiLU")}
    for each in called:
        if CALLS.get(each.name, ("",))[0] == "linear":
            reader = _sole_reader(each.node)
            if reader in acting:
                keys = _ops(tape, each.first, each.last, CALLS[each.name][1])
                found.append(Layer("linear + activation", each.path, keys, each.first, by_node[reader].last))
    return sorted(found, key=lambda layer: (layer.first, layer.kind))


def _calls(called: list[Called], by_node: Mapping[Any, Called], tape: Any) -> Iterator[Layer]:
    for each in called:
        if _class(each.owner)[0]:
            continue  # a class that is written out counts once
        if each.name in CALLS:
            kind, ops = CALLS[each.name]
            yield Layer(kind, each.path, _ops(tape, each.first, each.last, ops), each.first, each.last)
        elif each.name in ("softmax", "_softmax", "_safe_softmax"):
            reader = _sole_reader(each.node)
            if reader in by_node and by_node[reader].name in PRODUCTS:
                yield Layer("attention", each.path, _ops(tape, each.first, each.last, ("exp",)), each.first, each.last)


def _written_out(called: list[Called], tape: Any) -> Iterator[Layer]:
    run: list[Called] = []
    for each in [*called, None]:
        if run and (each is None or (each.path, each.owner) != (run[0].path, run[0].owner)):
            kind, ops = _class(run[0].owner)
            yield Layer(kind, run[0].path, _ops(tape, run[0].first, run[-1].last, ops), run[0].first, run[-1].last)
            run = []
        if each is not None and _class(each.owner)[0]:
            run.append(each)


def _class(owner: str) -> tuple[str, tuple[str, ...]]:
    return next(((kind, ops) for end, kind, ops in CLASSES if owner.endswith(end)), ("", ()))


def _ops(tape: Any, first: int, last: int, names: Iterable[str]) -> frozenset[int]:
    return frozenset(value for value in range(first, last) if tape.ops[value].name in names)


def _sole_reader(node: Any) -> Any:
    """Gives the only reader of a node's result, looking through what passes it on; None where there are several."""
    while True:
        readers = [each for each in node.users if not _name(each).startswith("_assert")]
        if len(readers) != 1:
            return None
        node = readers[0]
        if _name(node) not in PASSING:
            return node


def _name(node: Any) -> str:
    schema = getattr(node.target, "_schema", None)
    return str(getattr(schema, "name", "")).partition("::")[2].removesuffix("_")


def verdict_of(layer: Layer, plan: Any) -> tuple[str, str]:
    """Gives the verdict on a layer, and its reason."""
    found: dict[str, str] = {}
    stopped = []
    for decision in plan.data.decisions:
        match = decision.match
        inside = match.interior | match.computing | match.produced
        if layer.keys <= inside:
            if match.pattern in KINDS[layer.kind]:
                found.setdefault(
                    decision.verdict, f"{match.pattern}: {decision.word or decision.kernel}: {decision.reason}"
                )
            stopped += match.stopped
    for verdict in ("taken", "blocked", "declined"):
        if verdict in found:
            return verdict, found[verdict]
    for miss in (*plan.near_misses, *stopped):
        here = layer.first <= miss.root < layer.last or layer.first <= miss.at < layer.last or miss in stopped
        if miss.pattern in KINDS[layer.kind] and here:
            return "near", f"{miss.pattern}: {miss.code}: {miss.sentence}"
    return "lost", ""


def recall(model: Model) -> dict[str, Any]:
    """Plans one model and compares; gives counts by kind and verdict, the names of the lost and of the false."""
    import topos_core as tp
    from topos_core.importers.torch_export.record import record_torch
    from topos_core.importers.torch_export.target import Target

    positional, named = (model.specs, {}) if isinstance(model.specs, tuple) else ((), model.specs)
    with calls_noted() as called:
        tape = record_torch(Target(model.build, "factory"), tuple(positional), dict(named))
    plan = tp.plan(tape, machine="reference")
    truth = layers(called, tape)
    counts: dict[str, Counter[str]] = {}
    reasons: Counter[str] = Counter()
    lost: list[str] = []
    for layer in truth:
        if layer.kind not in KINDS:
            continue
        verdict, reason = verdict_of(layer, plan) if layer.keys else ("lost", "")
        counts.setdefault(layer.kind, Counter())[verdict] += 1
        if verdict == "lost":
            lost.append(f"{layer.kind} {layer.path}")
        elif verdict != "taken":
            reasons[f"{layer.kind}: {verdict}: {reason}"] += 1
    return {
        "model": model.name,
        "counts": {kind: dict(counts[kind]) for kind in KINDS if kind in counts},
        "lost": lost,
        "false": sorted(_false(plan, truth)),
        "reasons": dict(reasons),
    }


def _false(plan: Any, truth: list[Layer]) -> Iterator[str]:
    for decision in plan.data.decisions:
        match = decision.match
        inside = match.interior | match.computing | match.produced
        needed = NEEDED.get(match.pattern, ())
        if needed and not any(layer.kind in needed and layer.keys & inside for layer in truth):
            place = plan.tape.location_of(match.root)
            yield f"{match.pattern} at {'.'.join(place.scope) or place.span.line} ({decision.verdict})"


def table(rows: Iterable[Mapping[str, Any]], *, verbose: bool = False) -> str:
    """Renders one line a model and kind, then what is lost or false."""
    rows = list(rows)
    lines = [f"{'model':24} {'layer':20} {'calls':>6} " + " ".join(f"{verdict:>8}" for verdict in VERDICTS)]
    total: dict[str, Counter[str]] = {}
    for row in rows:
        for kind, counts in row["counts"].items():
            total.setdefault(kind, Counter()).update(counts)
            lines.append(_line(row["model"], kind, counts))
    lines += ["", *(_line("all", kind, total[kind]) for kind in KINDS if kind in total), ""]
    for row in rows:
        lines += [f"error    {row['model']}: {row['error']}"] if "error" in row else []
        lines += [f"lost     {row['model']}: {each}" for each in row["lost"]]
        lines += [f"false    {row['model']}: {each}" for each in row["false"]]
        if verbose:
            lines += [f"{count:8} {row['model']}: {reason}" for reason, count in row["reasons"].items()]
    return "\n".join(lines)


def _line(model: str, kind: str, counts: Mapping[str, int]) -> str:
    numbers = " ".join(f"{counts.get(verdict, 0):8}" for verdict in VERDICTS)
    return f"{model:24} {kind:20} {sum(counts.values()):6} {numbers}"


def main() -> None:
    """Prints the table for the models whose names hold one of the words, all without any."""
    from tests.conformance.torch_models.measure import in_a_child

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--verbose", action="store_true", help="lists the reason of everything that is not taken")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    rows = []
    for model in models():
        if not arguments.names or any(each.lower() in model.name.lower() for each in arguments.names):
            row = in_a_child(recall, model)
            rows.append({"counts": {}, "lost": [], "false": [], "reasons": {}, **row})
            print(f"{model.name}", file=sys.stderr, flush=True)
    print(table(rows, verbose=arguments.verbose))


if __name__ == "__main__":
    main()
