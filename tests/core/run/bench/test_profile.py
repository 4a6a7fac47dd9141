"""The profile of a run has every step once, and every op that the interpreter runs."""

import numpy as np

import topos_core as tp
from topos_core import nn
from topos_core.run.bench.profile import profile
from topos_core.run.program import make_program


def test_every_step_and_every_recorded_op_that_runs_is_timed():
    tape = tp.trace(lambda x: nn.softmax(x + 1) * 2, tp.f32[8, 64])
    plan = tp.plan(tape, cost="always").data
    program = make_program(plan)
    found = profile(plan, program, [np.ones((8, 64), np.float32)], runs=3)
    assert set(found.steps) == {step.value for step in program.steps}
    computing = {value for value, op in enumerate(tape.ops) if op.operands}
    assert computing <= set(found.recorded)
    assert found.runs == 3


def test_a_process_clock_that_ticks_coarsely_is_not_asked(monkeypatch):
    """Under a limit on processor time, which the process with user code has, some kernels count it in steps of 4 ms."""
    monkeypatch.setattr("time.process_time", lambda: 0.0)
    tape = tp.trace(lambda x: nn.softmax(x + 1) * 2, tp.f32[64, 256])
    plan = tp.plan(tape, cost="always").data
    found = profile(plan, make_program(plan), [np.ones((64, 256), np.float32)], runs=3)
    assert all(seconds > 0 for seconds in found.steps.values())
