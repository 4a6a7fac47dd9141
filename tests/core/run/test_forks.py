"""Forks while other threads multiply, and what BLAS is told by threads: in Pythons of their own, since neither is undone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PRELUDE = """if True:
    import os, signal, threading, time
    import numpy as np
    from threadpoolctl import ThreadpoolController
    from topos_core.ops.catalog import definitions
    from topos_core.run.blas import blas_threads
    from topos_core.tape.parse import parse_tape
    (blas,) = ThreadpoolController().select(user_api="blas").lib_controllers[:1]
    signal.alarm(20)  # whoever waits for ever is ended
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype("f4") for shape in ((200, 300), (300, 200)))
"""


def check(script: str) -> None:
    variables = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", PRELUDE + script], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_fork_while_another_thread_multiplies_has_a_child_that_multiplies(threads):
    """As recorded products of a run do: on one thread of BLAS's where the plan is exact, on several where it is fast."""
    check(f"""
    tape = parse_tape("%0 = input() : f32[200,300]\\n%1 = input() : f32[300,200]\\n"
        "%2 = matmul(%0, %1) accumulate=f32 : f32[200,200]\\nreturn %2")
    product, ended = tape.ops[2], []
    def run():
        with blas_threads({threads}):
            return [definitions()["matmul"].evaluate([x, w], product.attributes, product.type) for _ in range(4)][-1]
    def repeat():
        while not ended:
            run()
    expected = run()
    running = threading.Thread(target=repeat)
    running.start()
    for _ in range(10):
        child = os.fork()
        if child == 0:
            signal.alarm(10)
            os._exit(0 if np.allclose(run(), expected) and blas.get_num_threads() == 2 else 1)
        assert os.waitpid(child, 0)[1] == 0
    ended.append(True)
    running.join()
    """)


def test_a_run_of_any_thread_decides_how_many_threads_blas_has():
    check("""
    seen = []
    def run():
        with blas_threads(1):
            seen.append(blas.get_num_threads())
        seen.append(blas.get_num_threads())
    run()
    running = threading.Thread(target=run)
    running.start()
    running.join()
    assert seen == [1, 2, 1, 2], seen
    """)
