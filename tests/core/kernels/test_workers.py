import ctypes
import os
import threading

import pytest

from topos_core.kernels.library import SIGNATURE, Kernel, Loaded
from topos_core.kernels.workers import run_on


def job(function):
    """Makes a kernel of a Python function (block, slot)."""
    call = SIGNATURE(function)
    return Kernel("job", (), lambda: Loaded(ctypes.cast(call, ctypes.c_void_p).value, call, None))


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_every_slot_of_every_job_runs_exactly_once(threads):
    for _ in range(200):
        slots = []
        run_on(threads, job(lambda block, slot, slots=slots: slots.append((block, slot))), 7)
        assert sorted(slots) == [(7, slot) for slot in range(threads)]


def test_callers_that_meet_finish_each_by_itself():
    failures = []

    def call(number):
        for _ in range(100):
            slots = []
            run_on(3, job(lambda block, slot, slots=slots: slots.append(block)), number)
            # a busy crew leaves the whole job to its caller, which runs it as slot 0
            if slots not in ([number], [number] * 3):
                failures.append(slots)

    callers = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert failures == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_hires_its_own_crew():
    run_on(2, job(lambda block, slot: None), 0)
    child = os.fork()
    if child == 0:
        slots = []
        try:
            run_on(2, job(lambda block, slot: slots.append(slot)), 0)
        finally:
            os._exit(0 if sorted(slots) == [0, 1] else 1)
    assert os.waitpid(child, 0)[1] == 0
