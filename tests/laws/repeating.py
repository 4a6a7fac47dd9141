"""Random programs of layers: mostly one block again and again, with whatever may make one of them, or their context, unlike."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import topos_core as tp
from topos_core.matching.shortened import LEVELS
from topos_core.recording.trace import trace
from topos_core.tape.tape import Tape

ROWS, WIDTH = 4, 8
STEPS = (
    "linear", "linear", "biased", "layer_norm", "rms_norm", "eps_outside", "softmax", "attention", "gelu", "silu", "relu",
    "gated", "scaled", "shared_scale", "masked", "turned", "table", "gathered_sum", "flipped", "cast",
    "scaled_queries",
)  # fmt: skip
CHAINED = ("gelu", "silu", "silu", "scaled", "shared_scale", "masked", "table", "cast")
"""Steps that hold no product."""
ODDITIES = (
    "odd_block", "observed", "all_observed", "total", "stacked", "two_back", "tied", "own_weights", "reordered",
    "reads_first", "dead", "window",
)  # fmt: skip


def layered(seed: int) -> Tape:
    """Records one program: blocks of 2 to 4 steps, as many as a run needs and a few more, and up to two oddities."""
    rng = random.Random(seed)
    steps = [rng.choice(STEPS) for _ in range(rng.randint(2, 4))]
    odd = set(rng.sample(ODDITIES, rng.choice((0, 0, 1, 1, 1, 2))))
    residual = rng.choice(("none", "once", "each"))
    deep = {"none": 2, "once": 1, "each": len(steps)}[residual]
    count = 2 * -(-LEVELS // deep) + rng.randint(3, 6)
    special = rng.randrange(count)
    needed = 4 * len(steps) + 4
    own = "own_weights" in odd
    specs = {"x": f"f32[{ROWS},{WIDTH}]", "mask": f"f32[{ROWS},{WIDTH}]", "vector": f"f32[{WIDTH}]"}
    for block in range(count if own else 1):
        places = list(range(needed))
        if "reordered" in odd and block == special:
            places.reverse()
        for k in places:
            shape = f"{WIDTH}" if k % 4 == 3 else f"{WIDTH},{WIDTH}"
            specs[f"w{block}_{k}"] = f"f32[{shape}]"

    def program(**given: Any) -> Any:
        x, before, total = given["x"], given["x"], 0.0
        first, outputs = None, []
        for block in range(count):
            weights = [given[f"w{block if own else 0}_{k}"] for k in range(needed)]
            y = _block(x, given, weights, steps, residual, 0.25 if "odd_block" in odd and block == special else 0.5)
            if "two_back" in odd:
                y = y + before * 0.125
            if "reads_first" in odd and first is not None:
                y = y * first
            if ("observed" in odd and block == special) or "all_observed" in odd:
                tp.observe(y, f"y{block}")
            if "dead" in odd:
                np.exp(y)
            if "total" in odd:
                total = total + y
            outputs.append(y)
            first = y if first is None else first
            before, x = x, y
        if "tied" in odd:
            x = x @ given["w0_0"]
        if "window" in odd:
            x = np.lib.stride_tricks.sliding_window_view(x, 2, axis=0).sum(-1)
        results = [x]
        if "total" in odd:
            results.append(total)
        if "stacked" in odd:
            results.append(np.stack(outputs))
        return results

    return trace(program, **specs)


def joined(seed: int) -> Tape:
    """Records one program whose blocks no product keeps apart: one elementwise chain through all, or blocks side by side."""
    rng = random.Random(seed)
    steps = [rng.choice(CHAINED) for _ in range(rng.randint(1, 4))]
    beside = rng.random() < 0.4
    steps[:0] = [rng.choice(("linear", "biased"))] * beside
    residual = rng.choice(("none", "once", "each"))
    count = rng.randint(12, 24)
    special = rng.randrange(count)
    watched = rng.choice(("returned", "shown", "both"))
    specs = {"x": f"f32[{ROWS},{WIDTH}]", "mask": f"f32[{ROWS},{WIDTH}]", "vector": f"f32[{WIDTH}]"}
    for block in range(count):
        specs |= {f"w{block}_{k}": f"f32[{WIDTH}]" if k == 3 else f"f32[{WIDTH},{WIDTH}]" for k in range(4)}

    def program(**given: Any) -> Any:
        x, results = given["x"], []
        for block in range(count):
            weights = [given[f"w{block}_{k}"] for k in range(4)] * len(steps)
            y = _block(x, given, weights, steps, residual, 0.5)
            if beside and (watched == "returned" or (watched == "both" and block == special)):
                results.append(y)
            elif beside:
                format(y), format(y)
            else:
                x = y
        return [x, *results]

    return trace(program, **specs)


def _block(x: Any, given: dict[str, Any], weights: list[Any], steps: list[str], residual: str, scale: float) -> Any:
    y = x
    for k, step in enumerate(steps):
        z = _STEPS[step](y, given, weights[4 * k : 4 * k + 4], scale)
        y = y + z if residual == "each" else z
    return x + y if residual == "once" else y


def _mean(x: Any) -> Any:
    return x.mean(-1, keepdims=True)


def _softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _layer_norm(x: Any, given: Any, w: Any, scale: float) -> Any:
    d = x - _mean(x)
    return d / np.sqrt(_mean(d * d) + 1e-5) * w[3] + given["vector"]


def _eps_outside(x: Any, given: Any, w: Any, scale: float) -> Any:
    d = x - _mean(x)
    return d / (np.sqrt(_mean(d * d)) + 1e-5) * w[3]


def _attention(x: Any, given: Any, w: Any, scale: float) -> Any:
    return _softmax((x @ w[0]) @ (x @ w[1]).T * scale) @ (x @ w[2])


def _scaled_queries(x: Any, given: Any, w: Any, scale: float) -> Any:
    q = x @ w[0] * scale
    return (_softmax(q @ (x @ w[1]).T) @ (x @ w[2])) @ w[0] + np.tanh(q)


def _gelu(x: Any, given: Any, w: Any, scale: float) -> Any:
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def _table(x: Any, given: Any, w: Any, scale: float) -> Any:
    return x * np.exp(given["mask"])  # computed anew, and the same in every block


_STEPS: dict[str, Callable[[Any, Any, Any, float], Any]] = {
    "linear": lambda x, given, w, scale: x @ w[0],
    "biased": lambda x, given, w, scale: x @ w[0] + w[3],
    "layer_norm": _layer_norm,
    "rms_norm": lambda x, given, w, scale: x / np.sqrt(_mean(x * x) + 1e-6) * w[3],
    "eps_outside": _eps_outside,
    "softmax": lambda x, given, w, scale: _softmax(x * scale),
    "attention": _attention,
    "scaled_queries": _scaled_queries,
    "gelu": _gelu,
    "silu": lambda x, given, w, scale: x / (1 + np.exp(-x)),
    "relu": lambda x, given, w, scale: np.maximum(x @ w[0] + w[3], 0),
    "gated": lambda x, given, w, scale: ((x @ w[0]) / (1 + np.exp(-(x @ w[0]))) * (x @ w[1])) @ w[2],
    "scaled": lambda x, given, w, scale: x * scale,
    "shared_scale": lambda x, given, w, scale: given["vector"] * x,
    "masked": lambda x, given, w, scale: x + given["mask"],
    "turned": lambda x, given, w, scale: (x.T @ np.tanh(x)) @ (x.T) @ w[0][:ROWS] if x.shape[0] == WIDTH else x * w[3],
    "table": _table,
    "gathered_sum": lambda x, given, w, scale: x + x.sum(0, keepdims=True),
    "flipped": lambda x, given, w, scale: x[:, ::-1],
    "cast": lambda x, given, w, scale: x.astype("float16").astype("float32"),
}
