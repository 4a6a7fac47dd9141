import ctypes
import os
import threading
import time
from array import array
from pathlib import Path

import pytest

from topos_core.kernels import bodies, workers
from topos_core.kernels.library import SIGNATURE, Kernel, Loaded
from topos_core.kernels.processors import apart, current_processor
from topos_core.kernels.workers import MOST, run_on
from topos_core.run import blas


def job(function):
    """Makes a kernel of a Python function (block, slot)."""
    call = SIGNATURE(function)
    return Kernel("job", (), lambda: Loaded(ctypes.cast(call, ctypes.c_void_p).value, call, None))


def block():
    """Makes an argument block for a job that looks at nothing in it."""
    return array("q", [0])


@pytest.mark.parametrize("threads", [2, 3, 8, MOST])
def test_every_slot_of_every_job_runs_exactly_once(threads):
    for _ in range(200):
        slots = []
        given = block()
        run_on(threads, job(lambda block, slot, slots=slots: slots.append((block, slot))), given)
        assert sorted(slots) == [(given.buffer_info()[0], slot) for slot in range(threads)]


def test_more_threads_than_a_ticket_has_bits_for():
    slots = []
    run_on(MOST + 9, job(lambda block, slot: slots.append(slot)), block())
    assert sorted(slots) == list(range(MOST))


def test_a_worker_has_the_same_part_of_every_job():
    """Slot 0 is the caller's; with all workers awake, each takes its own, so that its items are in its caches."""
    seen = []
    for _ in range(20):
        meeting = threading.Barrier(3)

        def work(block, slot, meeting=meeting):
            seen.append((slot, threading.get_ident()))
            meeting.wait(60)

        run_on(3, job(work), block())
    assert (0, threading.get_ident()) in seen
    assert len({thread for slot, thread in seen if slot == 0}) == 1


def test_callers_that_meet_finish_each_by_itself():
    failures = []

    def call(number):
        for _ in range(100):
            slots, given = [], block()
            run_on(3, job(lambda block, slot, slots=slots: slots.append(block)), given)
            # a busy crew leaves the whole job to its caller, which runs it as slot 0
            address = given.buffer_info()[0]
            if slots not in ([address], [address] * 3):
                failures.append((number, slots))

    callers = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert failures == []


def met(call, threads=4):
    """Calls something from several threads at once and gives what each got."""
    start, found = threading.Barrier(threads), []

    def work():
        start.wait(10)
        found.append(call())

    callers = [threading.Thread(target=work) for _ in range(threads)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    return found


def test_callers_that_meet_at_an_unloaded_kernel_get_the_same_code():
    """The code of what is loaded once too often is freed, whoever has its address."""
    loading = threading.Barrier(4)
    real = job(lambda block, slot: None)

    def load():
        loading.wait(10)
        return Loaded(*real.loaded[:2], object())

    shared = Kernel("job", (), load)
    engines = met(lambda: shared.loaded.engine)
    assert {id(engine) for engine in engines} == {id(shared.loaded.engine)}


@pytest.mark.parametrize(("module", "name", "made"), [(workers, "_hired", "_Crew"), (blas, "_setting", "_Setting")])
def test_callers_that_meet_first_share_one(monkeypatch, module, name, made):
    both, nobody = threading.Barrier(2, timeout=10), -1

    class Slow(getattr(module, made)):
        def __init__(self):
            both.wait()

    monkeypatch.setattr(module, made, Slow)
    first, second = met(lambda: getattr(module, name)(nobody), 2)
    assert first is second


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_hires_its_own_crew():
    run_on(2, job(lambda block, slot: None), block())
    child = os.fork()
    if child == 0:
        slots = []
        try:
            run_on(2, job(lambda block, slot: slots.append(slot)), block())
        finally:
            os._exit(0 if sorted(slots) == [0, 1] else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_job_always_wakes_the_workers_it_asks_for():
    """Each slot waits for the other one, after a pause of about as long as a worker stays awake."""
    for attempt in range(300):
        meeting = threading.Barrier(2)
        run_on(2, job(lambda block, slot, meeting=meeting: meeting.wait(60)), block())
        assert not meeting.broken
        time.sleep(attempt % 30 * 1e-5)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs a system that tells where threads may run")
def test_workers_stay_off_their_callers_processor():
    usable = os.sched_getaffinity(0)
    if len(usable) < 2:
        pytest.skip("needs two processors")
    try:
        for here in sorted(usable)[:2] * 2:
            os.sched_setaffinity(0, {here})  # the caller is here for sure; its workers may go where they could before
            assert current_processor() == here
            os.sched_setaffinity(0, usable)
            seen = {}
            meeting = threading.Barrier(2)

            def look(block, slot, seen=seen, meeting=meeting):
                seen[threading.get_native_id()] = os.sched_getaffinity(0)
                meeting.wait(60)

            run_on(2, job(look), block())
            own = seen.pop(threading.get_native_id())
            (workers,) = seen.values()
            assert own == usable
            assert len(workers) == len(usable) - 1
    finally:
        os.sched_setaffinity(0, usable)


def test_a_thread_without_another_processor_stays():
    thread = threading.current_thread()
    apart(thread, -1)
    if hasattr(os, "sched_setaffinity"):
        usable = os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, {min(usable)})
            apart(thread, min(usable))
            assert os.sched_getaffinity(0) == {min(usable)}
        finally:
            os.sched_setaffinity(0, usable)


def test_every_kernel_takes_its_items_through_the_parts_of_workers():
    """A kernel that counted by itself in the counters' first word would miss items or do them twice."""
    folder = Path(bodies.__path__[0])
    for path in folder.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert 'get(args, "counter")' not in text, path.name
        assert 'word("counter")' not in text, path.name
        assert "atomic_rmw" not in text, path.name
