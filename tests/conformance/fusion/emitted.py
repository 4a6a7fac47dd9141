"""Modules run by a real compiler, on ordinary and on special values, against the interpreter."""

from __future__ import annotations

import numpy as np

import topos_core as tp
from topos_core import nn
from topos_core.emission.backend import run_xla
from topos_core.run.interpreter import interpret

SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 88.8, -88.8, 1e-30, 3e38, 0.5], np.float32)


def programs():
    def elementwise(x, y):
        return x / y, np.maximum(x, y), np.minimum(x, y), x * 0.0

    def pooled(x, y):
        return nn.max_pool((x + y).reshape(1, 1, 12, 12), 2)

    def normalised(x, y):
        return nn.layer_norm(x, y[0]), nn.softmax(x)

    def convolved(x, y):
        return nn.relu(nn.conv2d(x.reshape(1, 1, 12, 12), y[:3, :3].reshape(1, 1, 3, 3), padding=1))

    def several(x, y):
        z = np.tanh(x) * y
        return z, z.sum(0), z.max(1), np.where(z > 0, z, -z)

    return {f.__name__: f for f in (elementwise, pooled, normalised, convolved, several)}


def differences() -> dict[str, tuple[float, int]]:
    """Gives, by program and kind of input, the largest relative difference and how many special values stand elsewhere."""
    rng = np.random.default_rng(0)
    ordinary = [rng.standard_normal((12, 12)).astype(np.float32) for _ in range(2)]
    special = [np.tile(SPECIAL, (12, 1)), np.tile(SPECIAL[:, None], (1, 12))]
    found = {}
    for name, function in programs().items():
        tape = tp.trace(function, x="f32[12,12]", y="f32[12,12]")
        text = tp.plan(tape, consumer="stablehlo", dialect="xla", machine="reference", cost="always").emit_stablehlo()
        for kind, inputs in (("ordinary", ordinary), ("special", special)):
            with np.errstate(all="ignore"):
                want = interpret(tape, inputs)
            got = run_xla(text, inputs)
            found[f"{name}, {kind}"] = _difference(got, want)
    return found


def _difference(got, want) -> tuple[float, int]:
    worst, elsewhere = 0.0, 0
    for mine, theirs in zip(got, want, strict=True):
        mine, theirs = np.asarray(mine).reshape(theirs.shape).astype(np.float64), theirs.astype(np.float64)
        fine = np.isfinite(theirs)
        elsewhere += int((np.isfinite(mine) != fine).sum())
        elsewhere += int((~fine & ~((mine == theirs) | (np.isnan(mine) & np.isnan(theirs)))).sum())
        both = fine & np.isfinite(mine)
        scale = np.abs(theirs[both]).max(initial=1e-30)
        worst = max(worst, float(np.abs(mine[both] - theirs[both]).max(initial=0.0) / scale))
    return worst, elsewhere
