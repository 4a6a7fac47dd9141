"""Kernels compiled side by side: who compiles what, what happens when a process fails, and that nothing else is asked for."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import topos_core as tp
from topos_core import nn
from topos_core.kernels import compiling
from topos_core.kernels.compiling import Compiler, Job, reporting
from topos_core.kernels.host import host
from topos_core.kernels.library import compile_kernel
from topos_core.kernels.watching import watching
from topos_core.run.program import make_program

SHAPES = ("1x1", "4x1", "8x1", "1x4")


def jobs(compiler, kept):
    return [compiler.submit(Job("tile", ("f32", shape), host(), kept.append)) for shape in SHAPES]


def test_a_process_compiles_what_nobody_waits_for_yet():
    others = threading.Event()

    def here(name, variant, target):
        assert variant == ("f32", SHAPES[0])
        assert others.wait(60)  # the process has done all others meanwhile
        return compile_kernel(name, variant, target)

    kept = []
    compiler = Compiler(here, processes=1)
    compiler.helpers = 1  # no process yet: the first job is this thread's
    first, *rest = jobs(compiler, kept)
    with compiler.changed:
        compiler.waiting.remove(first)
        compiler.waiting.appendleft(first)
    found = []
    waiter = threading.Thread(target=lambda: found.append(compiler.result(first)))
    waiter.start()
    while first in compiler.waiting:
        pass
    compiler._help()
    others.set()
    waiter.join()
    assert [job.code for job in rest] == [compile_kernel("tile", ("f32", shape), host()) for shape in SHAPES[1:]]
    assert found == [first.code]
    assert sorted(kept) == sorted(job.code for job in (first, *rest))
    assert (compiler.done, compiler.total, compiler.helpers) == (4, 4, 0)


@pytest.mark.parametrize("executable", ["/nowhere/python", "/bin/false"])
def test_what_a_process_does_not_do_is_compiled_here(monkeypatch, executable):
    monkeypatch.setattr(sys, "executable", executable)
    done, kept = [], []

    def here(name, variant, target):
        done.append(variant)
        return b"code"

    compiler = Compiler(here, processes=1)
    asked = jobs(compiler, kept)
    assert [compiler.result(job) for job in asked] == [b"code"] * 4
    assert sorted(done) == sorted(job.variant for job in asked)
    assert kept == [b"code"] * 4


def test_a_process_that_stands_still_holds_nobody_up(monkeypatch):
    monkeypatch.setattr(compiling, "PATIENCE_SECONDS", 0.3)
    compiler = Compiler(lambda name, variant, target: b"code", processes=0)
    job = compiler.submit(Job("tile", ("f32", "1x1"), host(), [].append))
    compiler.waiting.clear()  # as if a process had taken it
    assert compiler.result(job) == b"code"


def test_who_needs_a_kernel_that_cannot_be_compiled_is_told_and_nobody_else():
    def here(name, variant, target):
        if variant == ("f32", "4x1"):
            raise ValueError("no such tile")
        return b"code"

    compiler = Compiler(here, processes=0)
    asked = jobs(compiler, [])
    assert compiler.result(asked[0]) == compiler.result(asked[3]) == b"code"
    with pytest.raises(ValueError, match="no such tile"):
        compiler.result(asked[1])


def test_waiting_is_told():
    told = []
    compiler = Compiler(lambda name, variant, target: b"code", processes=0)
    asked = jobs(compiler, [])
    with reporting(lambda *each: told.append(each)):
        for job in asked:
            compiler.result(job)
    assert told[0] == ("compiling kernels", 0, 4)
    assert told[-1] == ("compiling kernels", 4, 4)


def test_a_program_that_embeds_python_is_not_started_again(monkeypatch):
    for executable in ("/opt/editor/bin/editor", "", None):
        monkeypatch.setattr(sys, "executable", executable)
        assert compiling.processors() == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_waits_for_nobody_elses_process():
    compiler = Compiler(lambda name, variant, target: b"code", processes=0)
    job = compiler.submit(Job("tile", ("f32", "1x1"), host(), [].append))
    compiler.waiting.clear()
    child = os.fork()
    if child == 0:
        os._exit(0 if compiler.result(job) == b"code" else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_nothing_is_compiled_that_the_plan_does_not_take():
    weight = np.ones((64, 64), np.float32)

    def program(x):
        return nn.softmax(nn.relu(x @ weight))

    tape = tp.trace(program, tp.f32[64, 64])
    x = [np.ones((64, 64), np.float32)]
    for off, kinds in (((), {"contraction", "softmax_rows"}), (("softmax",), {"contraction"})):
        plan = tp.plan(tape, cost="always", off=off)
        taken = {decision.match.pattern for decision in plan.taken}
        with watching() as seen:
            make_program(plan.data)
        asked = {name for name, _ in seen.asked}
        assert kinds <= asked, (taken, asked)
        assert ("softmax" in taken) == ("softmax_rows" in asked)
    from topos_core.matching.catalog import patterns

    with watching() as seen:
        plan = tp.plan(tape, off=tuple(patterns()))
        plan.run(*x)
    assert not plan.taken
    assert not seen.asked


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_waits_for_a_compilation_and_its_child_compiles_for_itself(tmp_path):
    """One thread imports numba and compiles, another one forks meanwhile, and the children run a plan."""
    script = """if True:
        import os, signal, threading, time
        import numpy as np
        import topos_core as tp
        from topos_core import nn
        from topos_core.kernels.library import kernel
        plan = tp.plan(tp.trace(lambda x: nn.softmax(x), tp.f32[64, 64]), cost="always")
        compiling = threading.Thread(target=lambda: [kernel("tile", "f32", s).address for s in ("1x1", "4x1")])
        compiling.start()
        children = []
        for pause in (0.0, 0.1):
            time.sleep(pause)
            child = os.fork()
            if child == 0:
                signal.alarm(100)
                rows = plan.run(np.ones((64, 64), np.float32), threads=2)
                os._exit(0 if np.allclose(rows, 1 / 64) else 1)
            children.append(child)
        compiling.join()
        assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
        """
    variables = {**os.environ, "TOPOS_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run([sys.executable, "-c", script], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
