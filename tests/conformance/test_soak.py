"""Long runs: memory stays flat over ten thousand runs, and a run takes what its plan predicts."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest

import topos_core as tp
from topos_core import nn

pytestmark = pytest.mark.conformance

ROOT = Path(__file__).parents[2]
RANDOM = np.random.default_rng(0)
WEIGHT = RANDOM.standard_normal((32, 32, 3, 3)).astype(np.float32)
HEAD = RANDOM.standard_normal((32, 100)).astype(np.float32)


def program(x):
    """Takes kernels of several kinds, recorded ops between them, results of the pool's sizes and smaller ones."""
    hidden = nn.relu(nn.conv2d(x, WEIGHT, padding=1))
    hidden = nn.max_pool(hidden, 2)
    logits = hidden.mean((2, 3)) @ HEAD
    return nn.softmax(logits), hidden * 2


def test_ten_thousand_runs_leave_no_memory_behind():
    tape = tp.trace(program, tp.f32[1, 32, 48, 48])
    plan = tp.plan(tape)
    x = RANDOM.standard_normal((1, 32, 48, 48)).astype(np.float32)
    process = psutil.Process()
    kept, seen = [], []
    for number in range(10_000):
        result = plan.run(x, threads=1 + number % 2)
        kept = [*kept[-3:], result]  # callers hold some results while others go back
        if number % 1000 == 999:
            seen.append(process.memory_info().rss)
    assert max(seen[1:]) - seen[0] < 4 << 20, [each >> 20 for each in seen]


CHILD = """
import numpy as np, psutil, resource, sys
import topos_core as tp
from tests.conformance.resident import told
from topos_core import nn

random = np.random.default_rng(0)
weights = [random.standard_normal((48, 48, 3, 3)).astype(np.float32) * 0.05 for _ in range(4)]

def program(x):
    for weight in weights:
        x = nn.relu(nn.conv2d(x, weight, padding=1)) + 1
    return nn.softmax(x, axis=1)

def run(extent):
    tape = tp.trace(program, tp.f32[2, 48, extent, extent])
    plan = tp.plan(tape)
    x = np.zeros((2, 48, extent, extent), np.float32)
    before = psutil.Process().memory_info().rss
    plan.run(x, threads=1)
    return told(plan.data), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before

run(16)  # what is loaded and compiled once
print(*run(512))
"""


def test_the_memory_of_a_run_is_what_its_plan_predicts():
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True, cwd=ROOT)
    predicted, resident = map(int, done.stdout.split())
    assert predicted > 250 << 20
    assert abs(resident - predicted) <= 0.10 * predicted + (16 << 20), (predicted >> 20, resident >> 20)
