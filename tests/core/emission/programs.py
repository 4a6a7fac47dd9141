"""Recorded convolutions, window reductions and batch norms with the matches that recognition gives them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from tests.support.tapes import TapeBuilder
from topos_core.matching.counting import divisors
from topos_core.matching.facts import (
    ConvolutionFacts,
    EpilogueFacts,
    Layout,
    NormFacts,
    Window,
    WindowReduceFacts,
)
from topos_core.matching.match import Match
from topos_core.tape.type import numpy_dtype


def layout(shape: tuple[int, ...], roles: str) -> Layout:
    """Roles are one letter an axis; axes of one role are significant in the order in which they stand."""
    return Layout(shape, tuple(roles), tuple(range(len(shape))))


@dataclass(slots=True)
class Program:
    """One tape under construction and the matches on it."""

    tape: TapeBuilder = field(default_factory=TapeBuilder)
    matches: list[Match] = field(default_factory=list)
    results: list[int] = field(default_factory=list)

    def match(
        self, pattern: str, root: int, bindings: dict[str, int], facts: Any, first: int, **named: tuple[int, ...]
    ) -> int:
        """Takes every value from `first` to the root as interior but bindings, named results and inputs."""
        outside = {*bindings.values(), root, *(value for values in named.values() for value in values)}
        sources = {"input", "parameter"}
        inside = frozenset(v for v in range(first, root) if v not in outside and self.tape.ops[v].name not in sources)
        self.matches.append(Match(pattern, root, bindings, inside, inside | {root}, named, facts))
        return root


def convolution(
    program: Program,
    *,
    batch: int = 2,
    channels: int = 3,
    out: int = 4,
    groups: int = 1,
    extents: tuple[int, ...] = (7, 8),
    windows: tuple[Window, ...] = (Window(3), Window(3)),
    image: str = "bf01",
    kernel_first: bool = False,
    dtype: str = "f32",
) -> int:
    """Records pad, reverse, unfold, permute, reshape, matmul; `kernel_first` multiplies kernel @ columns.

    `image` is the order in which x is recorded. Channels are per group, `out` in all.
    """
    tape, rank, share = program.tape, len(extents), out // groups
    sizes = {"b": batch, "f": groups * channels, **{str(k): extent for k, extent in enumerate(extents)}}
    shape = tuple(sizes[letter] for letter in image)
    x = tape.input(f"x{len(tape.ops)}", f"{dtype}{list(shape)}".replace(" ", ""))
    taps = tuple(window.size for window in windows)
    kernel_shape = (groups, *taps, channels, share)
    weights = tape.input(f"w{len(tape.ops)}", f"{dtype}{list(kernel_shape)}".replace(" ", ""))
    first = len(tape.ops)
    value = tape.op("permute", x, order=tuple(image.index(letter) for letter in ("b", "f", *map(str, range(rank)))))
    low, high = ((0, 0, *(getattr(window, side) for window in windows)) for side in ("low", "high"))
    interior = (0, 0, *(window.base_dilation - 1 for window in windows))
    fill = numpy_dtype(dtype).type(0)
    value = tape.op("pad", value, fill=fill, low=low, high=high, interior=interior)
    for k, window in enumerate(windows):
        value = tape.op("unfold", value, axis=2 + k, size=window.size, step=window.stride, dilation=window.dilation)
    positions = tape.ops[value].type.shape[2 : 2 + rank]
    value = tape.op("reshape", value, shape=(batch, groups, channels, *positions, *taps))
    spatial, window_axes = range(3, 3 + rank), range(3 + rank, 3 + 2 * rank)
    value = tape.op("permute", value, order=(1, 0, *spatial, *window_axes, 2))
    rows, depth = batch * math.prod(positions), math.prod(taps) * channels
    columns = tape.op("reshape", value, shape=(groups, rows, depth))
    flipped = tuple(1 + k for k, window in enumerate(windows) if window.reversed)
    source = tape.op("reverse", weights, axes=flipped) if flipped else weights
    matrix = tape.op("reshape", source, shape=(groups, depth, share))
    if kernel_first:
        left, right = tape.op("permute", matrix, order=(0, 2, 1)), tape.op("permute", columns, order=(0, 2, 1))
        root = tape.op("matmul", left, right, accumulate=dtype)
        result = layout((groups, share, batch, *positions), "gfb" + "012"[:rank])
    else:
        root = tape.op("matmul", columns, matrix, accumulate=dtype)
        result = layout((groups, batch, *positions, share), "gb" + "012"[:rank] + "f")
    facts = ConvolutionFacts(
        image=layout(shape, image),
        kernel=layout(kernel_shape, "g" + "012"[:rank] + "io"),
        result=result,
        windows=windows,
        groups=groups,
        batch=batch,
        in_channels=channels,
        out_channels=out,
    )
    return program.match("convolution", root, {"x": x, "kernel": weights}, facts, first)


def window_reduce(
    program: Program,
    *,
    shape: tuple[int, ...] = (2, 3, 8, 7),
    windows: tuple[Window, ...] = (Window(), Window(), Window(2, 2), Window(3, 2)),
    reducer: str = "max",
    fill: float | None = None,
    average: bool = False,
    counted: bool = False,
    order: tuple[int, ...] | None = None,
    dtype: str = "f32",
) -> int:
    """Records pad, unfold, reduction, a division by the count where it is an average (`counted`: of elements in the image), and a permute."""
    tape, rank = program.tape, len(shape)
    x = tape.input(f"x{len(tape.ops)}", f"{dtype}{list(shape)}".replace(" ", ""))
    first = len(tape.ops)
    value = x
    if fill is not None:
        low, high = (tuple(getattr(window, side) for window in windows) for side in ("low", "high"))
        interior = tuple(window.base_dilation - 1 for window in windows)
        value = tape.op("pad", value, fill=numpy_dtype(dtype).type(fill), low=low, high=high, interior=interior)
    for k, window in enumerate(windows):
        value = tape.op("unfold", value, axis=k, size=window.size, step=window.stride, dilation=window.dilation)
    attributes = {"accumulate": "f32" if dtype in ("f16", "bf16") else dtype} if reducer == "sum" else {}
    value = tape.op(reducer, value, axes=tuple(range(rank, 2 * rank)), **attributes)
    positions, scale = tape.ops[value].type.shape, 1.0
    if average:
        count = math.prod(window.size for window in windows)
        kind = f"{dtype}{list(positions)}".replace(" ", "")
        value, scale = tape.op("div", value, tape.constant(count, kind)), 1 / count
    inside = ((0, 0),) * rank if counted else None
    if inside is not None:
        table = tape.table(divisors(windows, inside, shape).astype(numpy_dtype(dtype)))
        value = tape.op("div", value, tape.op("broadcast", table, shape=positions))
    order = order or tuple(range(rank))
    root = tape.op("permute", value, order=order)
    result = Layout(tape.ops[root].type.shape, tuple(map(str, order)), (0,) * rank)
    facts = WindowReduceFacts(reducer, windows, result, fill, scale, inside)  # type: ignore[arg-type]
    return program.match("window_reduce", root, {"x": x}, facts, first)


def batch_norm(
    program: Program,
    *,
    shape: tuple[int, ...] = (4, 3, 5),
    roles: str = "ncn",
    training: bool = True,
    affine: bool = True,
    order: tuple[int, ...] | None = None,
    epsilon: float = 1e-5,
    early: bool = False,
    dtype: str = "f32",
) -> tuple[int, ...]:
    """Records the two-pass formula; gives the root, mean and variance (training) or the root.

    `early` doubles the mean before the root is recorded, and gives that too.
    """
    tape = program.tape
    full = f"{dtype}{list(shape)}".replace(" ", "")
    axes = tuple(k for k, role in enumerate(roles) if role == "n")
    vector = tuple(extent for extent, role in zip(shape, roles, strict=True) if role == "c")
    spread = tuple(extent if role == "c" else 1 for extent, role in zip(shape, roles, strict=True))
    count, channels = math.prod(shape[k] for k in axes), math.prod(vector)

    def given(name: str) -> int:
        return tape.input(f"{name}{len(tape.ops)}", f"{dtype}{list(vector)}".replace(" ", ""))

    def along(value: int) -> int:
        return tape.op("broadcast", tape.op("reshape", value, shape=spread), shape=shape)

    def mean_of(value: int) -> int:
        total = tape.op("sum", value, axes=axes, accumulate=dtype)
        return tape.op("div", total, tape.constant(count, f"{dtype}{list(vector)}".replace(" ", "")))

    x = tape.input(f"x{len(tape.ops)}", full)
    names = (("scale", "shift") if affine else ()) + (() if training else ("mean", "variance"))
    bindings = {"x": x, **{name: given(name) for name in names}}
    first = len(tape.ops)
    mean = mean_of(x) if training else bindings["mean"]
    centred = tape.op("sub", x, along(mean))
    variance = mean_of(tape.op("mul", centred, centred)) if training else bindings["variance"]
    doubled = (tape.op("add", mean, mean),) if early else ()
    shifted = tape.op("add", variance, tape.constant(epsilon, f"{dtype}{list(vector)}".replace(" ", "")))
    value = tape.op("div", centred, along(tape.op("sqrt", shifted)))
    if affine:
        value = tape.op("add", tape.op("mul", value, along(bindings["scale"])), along(bindings["shift"]))
    order = order or tuple(range(len(shape)))
    root = tape.op("permute", value, order=order)
    result = Layout(tape.ops[root].type.shape, tuple(roles[k] for k in order), order)
    facts = NormFacts(layout(shape, roles), result, channels, count, epsilon)
    if not training:
        program.match("batch_norm_inference", root, bindings, facts, first)
        return (root,)
    program.match("batch_norm_training", root, bindings, facts, first, mean=(mean,), variance=(variance,))
    return root, mean, variance, *doubled


def epilogue(
    program: Program,
    *,
    bias: bool = False,
    norm: bool = False,
    residual: bool = False,
    residual_last: bool = False,
    activation: str = "none",
    order: tuple[int, ...] = (1, 0, 4, 2, 3),
    dtype: str = "f32",
) -> int:
    """Records a convolution, then bias, batch norm, residual and activation over its axes (g, b, 0, 1, f), reordered."""
    tape = program.tape
    product = convolution(program, dtype=dtype)
    inner = program.matches.pop()
    facts: ConvolutionFacts = inner.facts
    shape, out = facts.result.shape, facts.out_channels
    bindings = dict(inner.bindings)
    names = (("bias",) if bias else ()) + (("bn_mean", "bn_variance", "bn_scale", "bn_shift") if norm else ())
    value = tape.op("reshape", product, shape=shape)
    for name in names:
        bindings[name] = tape.input(f"{name}{len(tape.ops)}", f"{dtype}[{out}]")
    spread = {name: tape.op("broadcast", bindings[name], shape=shape) for name in names}
    if bias:
        value = tape.op("add", value, spread["bias"])
    if norm:
        kind = f"{dtype}[{out}]"
        safe = tape.op("sqrt", tape.op("add", bindings["bn_variance"], tape.constant(1e-5, kind)))
        value = tape.op("div", tape.op("sub", value, spread["bn_mean"]), tape.op("broadcast", safe, shape=shape))
        value = tape.op("add", tape.op("mul", value, spread["bn_scale"]), spread["bn_shift"])
    value = tape.op("permute", value, order=order)
    if residual:
        kind = f"{dtype}{list(tape.ops[value].type.shape)}".replace(" ", "")
        bindings["residual"] = tape.input(f"residual{len(tape.ops)}", kind)
    if residual and not residual_last:
        value = tape.op("add", value, bindings["residual"])
    value = activate(tape, value, activation)
    if residual and residual_last:
        value = tape.op("add", value, bindings["residual"])
    roles = "".join(facts.result.roles[axis] for axis in order)
    result = layout(tuple(shape[axis] for axis in order), roles)
    chain = EpilogueFacts(facts, result, bias, 1e-5 if norm else None, residual, activation, residual_last)
    return program.match("conv_bn_activation", value, bindings, chain, min(inner.interior))


def activate(tape: TapeBuilder, x: int, name: str) -> int:
    """Records an activation."""
    kind = str(tape.ops[x].type)

    def constant(number: float) -> int:
        return tape.constant(number, kind)

    def times(value: int, factor: float) -> int:
        return tape.op("mul", value, constant(factor))

    def sigmoid(value: int) -> int:
        return tape.op("div", constant(1), tape.op("add", constant(1), tape.op("exp", tape.op("neg", value))))

    def halved(gate: int) -> int:
        return tape.op("mul", times(x, 0.5), tape.op("add", constant(1), gate))

    def relu6(value: int) -> int:
        return tape.op("minimum", tape.op("maximum", value, constant(0)), constant(6))

    def of_exp(value: int) -> int:
        power = tape.op("exp", value)
        return tape.op("div", power, tape.op("add", constant(1), power))

    def chosen(kind: str, yes: int, no: int) -> int:
        return tape.op("select", tape.op("compare", x, constant(0), kind=kind), yes, no)

    match name:
        case "none":
            return x
        case "relu_where_positive":
            return chosen("gt", x, constant(0))
        case "relu_where_not_negative":
            return chosen("ge", x, constant(0))
        case "relu_unless_negative":
            return chosen("lt", constant(0), x)
        case "sigmoid_of_exp":
            return of_exp(x)
        case "silu_of_exp":
            return tape.op("mul", x, of_exp(x))
        case "gelu_sigmoid_of_exp":
            return tape.op("mul", x, of_exp(times(x, 1.702)))
        case "relu":
            return tape.op("maximum", x, constant(0))
        case "relu6":
            return relu6(x)
        case "tanh":
            return tape.op("tanh", x)
        case "sigmoid":
            return sigmoid(x)
        case "silu":
            return tape.op("mul", x, sigmoid(x))
        case "gelu_sigmoid":
            return tape.op("mul", x, sigmoid(times(x, 1.702)))
        case "gelu_erf":
            return halved(tape.op("erf", times(x, math.sqrt(0.5))))
        case "gelu_tanh":
            cubic = times(tape.op("mul", tape.op("mul", x, x), x), 0.044715)
            return halved(tape.op("tanh", times(tape.op("add", x, cubic), math.sqrt(2 / math.pi))))
        case "hardswish":
            return tape.op("div", tape.op("mul", x, relu6(tape.op("add", x, constant(3)))), constant(6))
    raise ValueError(name)
