"""Prints what NumPy reaches on this host: the figures behind `topos_core/cost/profiles.py`.

Run it on a quiet machine with `OPENBLAS_NUM_THREADS=1` and no other OPENBLAS variable: `python benchmarks/numpy_rates.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np


def seconds(function: Callable[[], Any]) -> float:
    """Gives the least CPU seconds of one call, over seven rounds of about 20 ms."""
    function()
    start = time.process_time_ns()
    function()
    once = max(time.process_time_ns() - start, 1000)
    calls = max(1, 20_000_000 // once)
    best = float("inf")
    for _ in range(7):
        start = time.process_time_ns()
        for _ in range(calls):
            function()
        best = min(best, (time.process_time_ns() - start) / calls)
    return best * 1e-9


def row(name: str, value: float, unit: str) -> None:
    """Prints one figure."""
    print(f"{name:<44} {value:10.3f} {unit}")


def elementwise(rng: np.random.Generator) -> None:
    """Prints nanoseconds per element in the cache and beyond it."""
    functions: dict[str, Callable[[Any, Any], Any]] = {
        "add": np.add, "div": np.divide, "maximum": np.maximum, "sqrt": lambda a, b: np.sqrt(a),
        "exp": lambda a, b: np.exp(a), "expm1": lambda a, b: np.expm1(a), "log": lambda a, b: np.log(a),
        "tanh": lambda a, b: np.tanh(a), "sin": lambda a, b: np.sin(a), "pow": np.power,
        "select": lambda a, b: np.where(a < b, a, b), "sum": lambda a, b: a.sum(), "max": lambda a, b: a.max(),
        "cumsum": lambda a, b: a.cumsum(), "copy": lambda a, b: a.copy(),
    }  # fmt: skip
    for dtype in (np.float32, np.float64, np.float16):
        for size in (8, 1 << 18, 1 << 24):
            a = (rng.random(size) + 0.5).astype(dtype)
            b = a.copy()
            for name, function in functions.items():
                took = seconds(lambda function=function, a=a, b=b: function(a, b))  # type: ignore[misc]
                row(f"{name} {np.dtype(dtype).name}[{size}]", took / size * 1e9, "ns/element")


def movement(rng: np.random.Generator) -> None:
    """Prints copies by the length of their innermost run, and reductions over short rows."""
    x = rng.random((8, 64, 58, 58)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    y = rng.random((512, 1024)).astype(np.float32)
    row("copy, run of 1 (transpose)", seconds(lambda: np.ascontiguousarray(y.T)) / y.size * 1e9, "ns/element")
    row("copy, run of 3 (windows)", seconds(lambda: np.ascontiguousarray(windows)) / windows.size * 1e9, "ns/element")
    inner = x[:, :, 1:-1, 1:-1]
    row("copy, run of 56 (crop)", seconds(lambda: np.ascontiguousarray(inner)) / inner.size * 1e9, "ns/element")
    row("max over 3x3 windows", seconds(lambda: windows.max(axis=(-1, -2))) / windows.size * 3 * 1e9, "ns/row")
    blocks = x[:, :, :56, :56].reshape(8, 64, 28, 2, 28, 2)
    row("max over 2x2 blocks", seconds(lambda: blocks.max(axis=(3, 5))) / blocks.size * 2 * 1e9, "ns/row")
    index = rng.integers(0, y.size, 4096)
    flat = y.reshape(-1)
    row("gather", seconds(lambda: np.take(flat, index)) / index.size * 1e9, "ns/element")
    into, updates = np.zeros_like(y), rng.random((256, 1024)).astype(np.float32)
    where = rng.integers(0, 512, 256)
    row("scatter_add", seconds(lambda: np.add.at(into, where, updates)) / updates.size * 1e9, "ns/element")


def products(rng: np.random.Generator) -> None:
    """Prints matmul rates by the smallest extent and by dtype."""
    for m, k, n in ((512, 512, 512), (3136, 576, 64), (64, 64, 64), (23040, 9, 16), (3136, 9, 1), (16, 9, 2)):
        a, b = rng.random((m, k)).astype(np.float32), rng.random((k, n)).astype(np.float32)
        row(f"matmul f32 {m}x{k}x{n}", 2 * m * k * n / seconds(lambda a=a, b=b: a @ b) * 1e-9, "Gflop/s")  # type: ignore[misc]
    for dtype in (np.float64, np.int64, np.float16):
        a = rng.random((256, 256)).astype(dtype)
        row(f"matmul {np.dtype(dtype).name} 256^3", 2 * 256**3 / seconds(lambda a=a: a @ a) * 1e-9, "Gflop/s")  # type: ignore[misc]


def calls() -> None:
    """Prints what the calls of a small example's ops take, through the interpreter's own evaluation."""
    import topos_core as tp
    from topos_core import nn
    from topos_core.ops.catalog import definitions

    tape = tp.trace(
        lambda x, w, b: nn.max_pool(nn.relu(nn.conv2d(x, w, b, padding=1)), 2).sum(),
        tp.f32[1, 1, 6, 6], tp.f32[2, 1, 3, 3], tp.f32[2],
    )  # fmt: skip
    values: list[np.ndarray] = []
    for op in tape.ops:
        if op.name == "input":
            values.append(np.ones(op.type.shape, np.float32))
            continue
        evaluate, operands = definitions()[op.name].evaluate, [values[o] for o in op.operands]
        took = seconds(lambda f=evaluate, a=operands, op=op: f(a, op.attributes, op.type))  # type: ignore[misc]
        row(f"call of {op.name} {op.type}", took * 1e6, "us")
        values.append(evaluate(operands, op.attributes, op.type))


if __name__ == "__main__":
    calls()
    generator = np.random.default_rng(0)
    elementwise(generator)
    movement(generator)
    products(generator)
