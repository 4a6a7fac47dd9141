"""Microseconds per op of keys, terms and the whole search on growing tapes without repeated results.

python benchmarks/matching.py [OPS...]
"""

from __future__ import annotations

import gc
import math
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from topos_core.matching.catalog import patterns
from topos_core.matching.core import Keys
from topos_core.matching.search import search
from topos_core.matching.template import templates
from topos_core.matching.term import Index, Named, recognise
from topos_core.recording.recorder import Recorder, recording
from topos_core.recording.value import Value
from topos_core.tape.span import Location
from topos_core.tape.tape import Observation, Structure, Tape
from topos_core.tape.type import TensorType


def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * scale + shift


def transformer_block(given: Callable[..., Any], x: Any, width: int, heads: int, mask: Any) -> Any:
    batch, length = x.shape[:2]
    h = layer_norm(x, given(width), given(width))
    q, k, v = (
        (h @ given(width, width) + given(width)).reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)
        for _ in range(3)
    )
    scores = q @ k.swapaxes(-1, -2) * (width // heads) ** -0.5 + mask
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    seen = (powers / powers.sum(-1, keepdims=True)) @ v
    x = x + (seen.transpose(0, 2, 1, 3).reshape(batch, length, width) @ given(width, width) + given(width))
    h = layer_norm(x, given(width), given(width))
    u = h @ given(width, 4 * width) + given(4 * width)
    u = 0.5 * u * (1 + np.tanh(math.sqrt(2 / math.pi) * (u + 0.044715 * u**3)))
    return x + (u @ given(4 * width, width) + given(width))


def transformer(given: Callable[..., Any], more: Callable[[], bool]) -> Any:
    x, mask = given(2, 128, 768), given(128, 128)
    while more():
        x = transformer_block(given, x, 768, 12, mask)
    return x


def convolution(given: Callable[..., Any], x: Any, out: int) -> Any:
    batch, channels, height, width = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    rows = windows.transpose(0, 2, 3, 1, 4, 5).reshape(batch * height * width, channels * 9)
    y = rows @ given(out, channels, 3, 3).reshape(out, channels * 9).T
    return y.reshape(batch, height, width, out).transpose(0, 3, 1, 2)


def batch_norm(given: Callable[..., Any], x: Any) -> Any:
    column = (1, x.shape[1], 1, 1)
    centred = x - x.mean((0, 2, 3), keepdims=True)
    variance = (centred * centred).mean((0, 2, 3), keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * given(*column) + given(*column)


def resnet(given: Callable[..., Any], more: Callable[[], bool]) -> Any:
    x = given(8, 64, 14, 14)
    while more():
        y = np.maximum(batch_norm(given, convolution(given, x, 64)), 0)
        y = batch_norm(given, convolution(given, y, 64))
        x = np.maximum(x + y, 0)
    return x


def recorded(network: Callable[..., Any], least: int) -> Tape:
    recorder = Recorder()

    def given(*shape: int) -> Value:
        return recorder.source("input", TensorType("f32", shape))

    with recording(recorder), recorder.at(Location(())):
        result = network(given, lambda: len(recorder.ops) < least)
    inputs = tuple(value for value, op in enumerate(recorder.ops) if op.name == "input")
    observed = (Observation(result.index, "output", None, 0),)
    return Tape(
        tuple(recorder.ops), inputs, (), (result.index,), Structure("leaf", index=0), {}, observed, (Location(()),), {}
    )  # fmt: skip


def measured(name: str, network: Callable[..., Any], least: int) -> None:
    tape = recorded(network, least)
    known = list(patterns().values())
    index = Index([Named(p.identifier, p.term) for p in known if p.term is not None])
    count = len(tape.ops)
    best = [math.inf] * 3
    for _ in range(3):
        gc.collect()
        gc.disable()
        marks = [time.process_time()]
        keys = Keys(tape)
        marks.append(time.process_time())
        recognised = recognise(keys, index)
        marks.append(time.process_time())
        pool = search(tape, known)
        marks.append(time.process_time())
        gc.enable()
        best = [min(least, after - before) for least, before, after in zip(best, marks, marks[1:], strict=False)]
    each = lambda seconds: f"{seconds / count * 1e6:6.1f}"  # noqa: E731
    print(
        f"{name:12s} {count:6d} ops  keys {each(best[0])} us/op  terms {each(best[1])}  "
        f"whole search {each(best[2])}  tries/op {recognised.tries / count:.2f}  "
        f"functions/op {len(keys.table.funcs) / count:.2f}  near misses {len(pool.near_misses)}  "
        f"{dict(Counter(match.pattern for match in pool.matches))}",
        flush=True,
    )


def main(sizes: list[int]) -> None:
    start = time.process_time()
    count = sum(len(templates(p.term)) for p in patterns().values() if p.term is not None)
    print(f"{count} templates traced in {(time.process_time() - start) * 1e3:.0f} ms")
    for name, network in (("transformer", transformer), ("resnet", resnet)):
        for least in sizes:
            measured(name, network, least)


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [3000, 12000])
