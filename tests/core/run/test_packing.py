"""What depends on weights alone is made once, when a plan is made ready: no run packs or folds a weight again."""

import sys

import numpy as np

import topos_core as tp
from topos_core import nn
from topos_core.run.executor import execute, make_program

RANDOM = np.random.default_rng(0)
IMAGE = (1, 32, 56, 56)


def drawn(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32) * np.float32(0.1)


WEIGHTS = {
    "tiles": drawn(32, 32, 3, 3), "strided": drawn(48, 32, 3, 3), "scale": drawn(48), "shift": drawn(48),
    "mean": drawn(48), "variance": np.abs(drawn(48)), "layer": drawn(48, 100), "bias": drawn(100),
}  # fmt: skip


def program(x):
    w = WEIGHTS
    x = nn.relu(nn.conv2d(x, w["tiles"], padding=1))
    x = nn.relu(nn.batch_norm(nn.conv2d(x, w["strided"], stride=2), w["mean"], w["variance"], w["scale"], w["shift"]))
    return nn.gelu(x.mean((2, 3)) @ w["layer"] + w["bias"])


PACKERS = ("pack", "transformed", "kernel_rows", "weight_rows", "_snapshot")


def calls_of(action):
    """Counts the calls of the functions that pack, by name."""
    seen = []

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_name in (*PACKERS, "fold") and "topos_core" in frame.f_code.co_filename:
            seen.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return seen


def test_weights_are_packed_and_folded_once():
    tape = tp.trace(program, tp.f32[IMAGE])
    plan = tp.plan(tape, cost="always").data
    taken = {decision.match.pattern for decision in plan.taken}
    assert {"conv_bn_activation", "linear_bias_activation"} <= taken
    made = []
    packed = calls_of(lambda: made.append(make_program(plan)))
    assert {"pack", "transformed", "fold"} <= set(packed)
    (ready,) = made
    x = [drawn(*IMAGE)]
    runs = []
    assert calls_of(lambda: runs.extend(execute(ready, plan, x, 1) for _ in range(3))) == []
