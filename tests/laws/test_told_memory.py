"""What a plan tells of a kernel's memory is what the kernel takes: over all patterns, and operands that lie in odd orders."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import topos_core as tp
from topos_core import nn
from topos_core.kernels.home.manifest import Home
from topos_core.kernels.watching import watching
from topos_core.matching.catalog import patterns
from topos_core.plan.plan import PlanData
from topos_core.run.interpreter import bind_inputs
from topos_core.run.program import Program, RecordedStep, make_program

RANDOM = np.random.default_rng(0)


def drawn(*shape: int) -> np.ndarray:
    return (RANDOM.standard_normal(shape) * 0.05).astype(np.float32)


class Case(NamedTuple):
    """A program of one match.

    Args:
        function, shapes: The program.
        odd: How many operands, the first ones, come in another order.
        workers: Bytes of one worker's blocks, of vectors and tables: the machine's, and not told.
        off: Patterns that the plan must not take.
    """

    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    odd: int = 1
    workers: int = 160 << 10
    off: tuple[str, ...] = ()


TILES = 1500 << 10
"""Bytes of a worker's blocks of Winograd's tiles."""
ROWS, IMAGE, LAST = (1024, 512), (2, 32, 96, 96), (2, 96, 96, 32)
WEIGHT, KERNEL, TURNED, DEEP, POINT = (
    drawn(512, 64),
    drawn(32, 32, 3, 3),
    drawn(32, 16, 2, 2),
    drawn(32, 1, 3, 3),
    drawn(32, 32, 1, 1),
)
SCALE, SIDE = drawn(512), drawn(32, 8)
SIDES = [drawn(64, 512) for _ in range(2)]
MIXING = [drawn(256, 256) for _ in range(4)]
ALONE = ("linear", "elementwise_chain", "sibling_elementwise")
COSINES, SINES = np.cos(drawn(256, 32)), np.sin(drawn(256, 32))


def separate(x: Any) -> Any:
    return nn.conv2d(nn.relu(nn.conv2d(x, DEEP, padding=1, groups=32)), POINT)


def batch_norm(x: Any) -> Any:
    return (x - x.mean((0, 2, 3), keepdims=True)) / np.sqrt(x.var((0, 2, 3), keepdims=True) + 1e-5)


def batch_norm_rows(x: Any) -> Any:
    return (x - x.mean(0, keepdims=True)) / np.sqrt(x.var(0, keepdims=True) + 1e-5)


def known_norm(x: Any, *vectors: Any) -> Any:
    mean, variance, scale, shift = (vector.reshape(1, -1, 1, 1) for vector in vectors)
    return (x - mean) / np.sqrt(variance + np.float32(1e-5)) * scale + shift


def block(x: Any) -> Any:
    heads = [(x @ weight).reshape(8, 128, 4, 64).transpose(0, 2, 1, 3) for weight in MIXING[:3]]
    return nn.attention(*heads).transpose(0, 2, 1, 3).reshape(8, 128, 256) @ MIXING[3]


def rotary(x: Any) -> Any:
    first, second = x[..., :32], x[..., 32:]
    return np.concatenate([first * COSINES - second * SINES, second * COSINES + first * SINES], axis=-1)


def folded(x: Any) -> list[Any]:
    """Gives right operands that are computed once, before a run."""
    return [side * np.full_like(x[:1, :1], number) for number, side in enumerate(SIDES, 2)]


def instance_norm(x: Any, scale: Any) -> Any:
    y = (x - x.mean((2, 3), keepdims=True)) / np.sqrt(x.var((2, 3), keepdims=True) + 1e-5)
    return y * scale.reshape(1, -1, 1, 1)


def gated(x: Any, up: Any, gate: Any) -> Any:
    return nn.silu(x @ gate) * (x @ up)


CASES = {
    "matmul": Case(lambda x, w: np.matmul(x, w), ((8, 256, 64), (8, 64, 256)), 2),
    "linear": Case(lambda x, w: x @ w, ((2048, 128), (128, 512)), 2),
    "linear, known": Case(lambda x: x @ WEIGHT, (ROWS,)),
    "linear_bias_activation": Case(lambda x, w: nn.relu(x @ w + SCALE), ((2048, 128), (128, 512)), 2),
    "sibling_matmul": Case(lambda x, *sides: tuple(x @ side for side in sides), ((8192, 64), *[(64, 32)] * 3), off=("linear",)),
    "sibling_matmul, folded": Case(lambda x: tuple(x @ side for side in folded(x)), ((512, 64),), off=ALONE),
    "sibling_matmul, one folded": Case(
        lambda x, *given: tuple(x @ side for side in (folded(x)[0], *given)), ((512, 64), (64, 512)), off=ALONE
    ),
    "gated_mlp": Case(gated, ((2048, 128), (128, 512), (128, 512)), 3),
    "layer_norm_linear": Case(lambda x: nn.layer_norm(x, SCALE, SCALE) @ WEIGHT, (ROWS,)),
    "softmax": Case(lambda x: nn.softmax(x), (ROWS,)),
    "log_softmax": Case(lambda x: nn.log_softmax(x), (ROWS,)),
    "layer_norm": Case(lambda x: nn.layer_norm(x, SCALE, SCALE), (ROWS,)),
    "rms_norm": Case(lambda x: nn.rms_norm(x, SCALE), (ROWS,)),
    "add_norm": Case(lambda x, y: nn.layer_norm(x + y, SCALE, SCALE), (ROWS, ROWS), 2),
    "group_norm": Case(lambda x, *affine: nn.group_norm(x, 4, *affine), (IMAGE, (32,), (32,))),
    "gelu": Case(lambda x: nn.gelu(x), (ROWS,)),
    "silu": Case(lambda x: nn.silu(x), (ROWS,)),
    "mse_loss": Case(lambda x, y: ((x - y) ** 2).mean(), (ROWS, ROWS), 2),
    "convolution": Case(lambda x: nn.conv2d(x, KERNEL, padding=1), (IMAGE,), 1, TILES),
    "convolution, channels last": Case(
        lambda x: nn.conv2d(x.transpose(0, 3, 1, 2), KERNEL, padding=1).transpose(0, 2, 3, 1) @ SIDE, (LAST,), 1, TILES
    ),
    "conv_bn_activation, channels last": Case(
        lambda x, y: nn.relu(nn.conv2d(x.transpose(0, 3, 1, 2), KERNEL, padding=1).transpose(0, 2, 3, 1) + y),
        (LAST, LAST), 2, TILES,
    ),
    "convolution, stride": Case(lambda x: nn.conv2d(x, KERNEL, padding=1, stride=2), (IMAGE,)),
    "convolution, point": Case(lambda x: nn.conv2d(x, POINT), (IMAGE,)),
    "convolution, unknown": Case(lambda x, w: nn.conv2d(x, w, padding=1), (IMAGE, KERNEL.shape)),
    "conv_bn_activation": Case(lambda x, y: nn.relu(nn.conv2d(x, KERNEL, padding=1) + y), (IMAGE, IMAGE), 2, TILES),
    "conv_bn_activation, stride": Case(
        lambda x, y: nn.relu(nn.conv2d(x, KERNEL, padding=1, stride=2) + y), (IMAGE, (2, 32, 48, 48)), 2
    ),
    "convolution, transposed": Case(lambda x: nn.conv_transpose2d(x, TURNED, stride=2), (IMAGE,)),
    "depthwise_pointwise": Case(separate, (IMAGE,), 1, 320 << 10),
    "window_reduce": Case(lambda x: nn.max_pool(x, 3, stride=2, padding=1), (IMAGE,)),
    "batch_norm_training": Case(batch_norm, (IMAGE,)),
    "batch_norm_training, rows": Case(batch_norm_rows, ((2048, 256),)),
    "batch_norm_inference": Case(known_norm, (IMAGE, *[(32,)] * 4)),
    "attention": Case(lambda q, k, v: nn.attention(q, k, v), ((8, 4, 256, 64),) * 3, 3, 400 << 10),
    "attention, few queries": Case(
        lambda q, k, v: nn.attention(q, k, v), ((8, 4, 63, 64), *[(8, 4, 256, 64)] * 2), 3, 400 << 10
    ),
    "multi_head_attention": Case(block, ((8, 128, 256),), 1, 400 << 10),
    "rotary_embedding": Case(rotary, ((4, 8, 256, 64),)),
    "cross_entropy": Case(lambda x, y: nn.cross_entropy(x, y), (ROWS, ROWS), 2),
    "instance_norm": Case(instance_norm, (IMAGE, (32,))),
    "sibling_elementwise": Case(lambda x: (np.exp(x), np.abs(x)), (ROWS,)),
    "reduction_elementwise": Case(lambda x: np.sqrt((x * x).sum(1)), (ROWS,)),
    "elementwise_chain": Case(lambda x, y: np.tanh(x * 2 + 1) * y, (ROWS, ROWS), 2),
    "elementwise_reduction": Case(lambda x: (np.abs(x) * 2).sum(1), (ROWS,)),
}  # fmt: skip


def view(kind: str, shape: tuple[int, ...]) -> tuple[tuple[int, ...], Callable[[Any], Any]]:
    """Gives the shape of an input of which an operand of `shape` is such a view."""
    *lead, rows, columns = shape if len(shape) > 1 else (1, *shape)
    match kind:
        case "transposed":
            return (*lead, columns, rows), lambda x: np.swapaxes(x, -1, -2)
        case "turned":
            axes = tuple(range(len(shape)))[::-1]
            return shape[::-1], lambda x: np.transpose(x, axes)
        case "sliced":
            return (*lead, rows, columns + 3), lambda x: x[..., 1:-2]
        case "stepped":
            return (*lead, rows, 2 * columns), lambda x: x[..., ::2]
        case "reversed":
            return shape, lambda x: x[..., ::-1]
        case "broadcast":
            return (*lead, 1, columns), lambda x: np.broadcast_to(x, shape)
        case _:
            return shape, lambda x: x


KINDS = ("plain", "transposed", "turned", "sliced", "stepped", "reversed", "broadcast")


@pytest.mark.parametrize("kind", [*KINDS, "f16"])
@pytest.mark.parametrize("name", CASES)
def test_a_kernel_takes_what_its_plan_tells(name: str, kind: str) -> None:
    case = CASES[name]
    views = [view(kind if place < case.odd else "plain", shape) for place, shape in enumerate(case.shapes)]
    dtype = tp.f16 if kind == "f16" else tp.f32

    def program(*given: Any) -> Any:
        return case.function(*(seen(x) for (_, seen), x in zip(views, given, strict=True)))

    tape = tp.trace(program, *(dtype[shape] for shape, _ in views))
    plan = tp.plan(tape, cost="always", off=case.off).data
    made = make_program(plan)
    arrays = [drawn(*shape).astype(np.float16 if kind == "f16" else np.float32) for shape, _ in views]
    given = bind_inputs(tape, arrays)
    taken = check(plan, made, given, case)
    assert taken or kind != "plain", "a case of no match"
    if kind == "plain":
        assert name.partition(",")[0] in taken


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("shape", [IMAGE, (5, 32, 40, 40), (40, 32, 13, 13)], ids=str)
def test_tiles_that_meet_what_is_not_finite_take_no_more(shape: tuple[int, ...], value: float) -> None:
    tape = tp.trace(CASES["convolution"].function, tp.f32[shape])
    plan = tp.plan(tape, cost="always").data
    x = drawn(*shape)
    x[-1, 3, 5, 7] = value
    made = make_program(plan)
    with watching() as seen:
        made.run(bind_inputs(tape, [x]), 1, 1)
    assert {"winograd", "contraction"} <= {start.name for start in seen.started}
    check(plan, made, bind_inputs(tape, [x]), CASES["convolution"])


def stepped(x: Any, scale: Any) -> Any:
    return nn.silu(nn.conv2d(x, KERNEL, padding=1) * scale.reshape(-1, 1, 1) + 1e-3 * x)


def separate_stepped(x: Any, scale: Any) -> Any:
    y = nn.relu(nn.conv2d(x, DEEP, padding=1, groups=32) * scale.reshape(-1, 1, 1))
    return nn.silu(nn.conv2d(y, POINT) / scale.reshape(-1, 1, 1))


UNFOLDED = {
    "conv_bn_activation": Case(stepped, (IMAGE, (32,)), 1, TILES),
    "conv_bn_activation, direct": Case(stepped, (IMAGE, (32,)), off=("winograd",)),
    "depthwise_pointwise": Case(separate_stepped, (IMAGE, (32,)), 1, 320 << 10),
    "batch_norm_inference": CASES["batch_norm_inference"]._replace(off=("elementwise_chain",)),
    "batch_norm_training, rows": Case(lambda x, s: nn.batch_norm_training(x, s)[0], ((2048, 256), (256,))),
}


@pytest.mark.parametrize("name", UNFOLDED)
def test_factors_that_cannot_be_folded_take_no_more(name: str) -> None:
    case = UNFOLDED[name]
    tape = tp.trace(case.function, *(tp.f32[shape] for shape in case.shapes))
    plan = tp.plan(tape, cost="always", off=case.off).data
    arrays = [drawn(*shape) for shape in case.shapes]
    for vector in arrays[1:]:
        vector[3] = np.inf
    with np.errstate(all="ignore"):
        taken = check(plan, make_program(plan), bind_inputs(tape, arrays), case)
    assert name.partition(",")[0] in taken


def check(plan: PlanData, made: Program, given: Any, case: Case) -> set[str]:
    """Compares what each kernel takes with what is told; gives the patterns that ran."""
    made.run(given, 1, 1)  # what is imported, compiled and cut once
    told = {step.value: size for step, size in zip(plan.schedule.steps, plan.liveness.scratch, strict=True)}
    values, arena = dict(made.known) | given, made.pool.memory(made.arena_bytes)
    taken = set()
    for step in made.steps:
        if isinstance(step, RecordedStep):
            made._record(step, values, arena)
            continue
        out = {"result": step.target.array(values, arena, made.pool)}
        out |= {name: target.array(values, arena, made.pool) for name, target, _ in step.named}
        bindings = {name: values[value] for name, value in step.bindings}
        tracemalloc.start()
        try:
            step.prepared.run(bindings, out, 1)
            _, took = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        values[step.value] = out["result"]
        for name_, _, producers in step.named:
            values |= {value: out[name_].reshape(shape) for value, shape in producers}
        taken.add(next(decision.match.pattern for decision in plan.taken if decision.match.root == step.value))
        assert -0.05 * took - 1024 <= took - told[step.value] <= case.workers, (told[step.value] >> 10, took >> 10)
    return taken


def test_every_kernel_has_a_case() -> None:
    assert {name.partition(",")[0] for name in CASES} >= {name for name in patterns() if Home().concerns(name)}
