"""Microseconds per recorded op: `python -m benchmarks.recording`. Processor time; run on a quiet core, the least of several runs is shown.

The network is convolution, batch norm and relu with a residual, at about 400, 4,000 and 15,000 ops.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from topos_core import nn
from topos_core.recording.spec import f32
from topos_core.recording.trace import trace


def network(layers: int) -> Callable[..., Any]:
    def block(x: Any, w: Any, s: Any) -> Any:
        x = nn.conv2d(x, w, padding=1)
        x, _, _ = nn.batch_norm_training(x, s, s)
        return nn.relu(x)

    def model(x: Any, w: Any, s: Any) -> Any:
        for _ in range(layers):
            x = block(x, w, s) + x * 0.5
        return nn.max_pool(x, 2)

    return model


EXPRESSIONS: dict[str, Callable[[Any, Any], Any]] = {
    "x + y": lambda x, y: x + y,
    "x + y[0]": lambda x, y: x + y[0],
    "x * 2.0": lambda x, y: x * 2.0,
    "np.maximum(x, 0)": lambda x, y: np.maximum(x, 0),
    "np.exp(x)": lambda x, y: np.exp(x),
    "array + x": lambda x, y: SMALL + x,
    "x[1:, ::2]": lambda x, y: x[1:, ::2],
    "x.reshape(-1)": lambda x, y: x.reshape(-1),
    "x @ y": lambda x, y: x @ y,
    "np.einsum": lambda x, y: np.einsum("ij,kj->ik", x, y),
    "np.var": lambda x, y: np.var(x, axis=1),
}
SMALL = np.ones((8, 8), "f4")


def least(function: Callable[[], Any], repeat: int) -> float:
    times = []
    for _ in range(repeat):
        gc.collect()
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def per_op(function: Callable[..., Any], repeat: int = 5, **specs: Any) -> tuple[float, int]:
    count = len(trace(function, **specs).ops)
    return 1e6 * least(lambda: trace(function, **specs), repeat) / count, count


def main() -> None:
    print(f"python {sys.version.split()[0]}, numpy {np.__version__}")
    for layers in (10, 105, 395):
        microseconds, count = per_op(network(layers), x=f32[2, 8, 12, 12], w=f32[8, 8, 3, 3], s=f32[8])
        print(f"{count:6} ops: {microseconds:6.2f} us/op")
    for text, expression in EXPRESSIONS.items():

        def many(x: Any, y: Any, expression: Callable[[Any, Any], Any] = expression) -> Any:
            for _ in range(2000):
                z = expression(x, y)
            return z

        microseconds, count = per_op(many, x=f32[8, 8], y=f32[8, 8])
        print(f"   {text:18} {microseconds:6.2f} us/op, {(count - 2) / 2000:g} ops each")


if __name__ == "__main__":
    main()
