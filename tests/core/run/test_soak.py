"""Plans that run again and again from several threads: memory stays flat (`tests/conformance/test_soak.py` has ten thousand runs)."""

import gc
import threading

import numpy as np
import psutil

import topos_core as tp
from topos_core import nn

WEIGHT = np.random.default_rng(0).standard_normal((16, 8, 3, 3)).astype(np.float32)
LAYER = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32)
SLACK = 4 << 20


def drawn(*shape):
    return np.random.default_rng(2).standard_normal(shape).astype(np.float32)


PROGRAMS = [
    (lambda x: nn.max_pool(nn.relu(nn.conv2d(x, WEIGHT, padding=1)), 2), [drawn(1, 8, 14, 14)]),
    (lambda x: nn.softmax(nn.gelu(x @ LAYER)), [drawn(30, 64)]),
    (lambda q, k, v: nn.attention(q, k, v, causal=True), [drawn(2, 17, 16)] * 3),
    (lambda x: nn.layer_norm(x + 1, LAYER[0], LAYER[1]).sum(-1), [drawn(40, 64)]),
]


def soak(runs):
    """Gives how much resident memory grew over so many runs, by the number of threads that ran plans."""
    plans = [
        tp.plan(tp.trace(program, *(tp.f32[x.shape] for x in given)), cost="always") for program, given in PROGRAMS
    ]
    expected = [plan.run(*given, threads=1) for plan, (_, given) in zip(plans, PROGRAMS, strict=True)]
    failures = []

    def work(count):
        for at in range(count):
            which = at % len(plans)
            found = plans[which].run(*PROGRAMS[which][1], threads=1 + at % 3)
            if at % 7 == 0 and not np.array_equal(found, expected[which]):
                failures.append(which)

    def together(count):
        workers = [threading.Thread(target=work, args=(count // 3,)) for _ in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    grown = []
    for run in (work, together):
        run(runs // 10)
        gc.collect()
        before = psutil.Process().memory_info().rss
        run(runs)
        gc.collect()
        grown.append(psutil.Process().memory_info().rss - before)
    assert not failures
    return grown


def test_hundreds_of_runs_take_no_more_memory_than_the_first():
    assert max(soak(400)) <= SLACK
