"""Contenders of the tests: makers that `run.bench` loads in their own processes."""

import os
import time
from pathlib import Path

import numpy as np

from topos_core.run.bench.contender import Runner, case_inputs


def doubling(folder: Path, threads: int, off: float = 0.0) -> Runner:
    (x,) = case_inputs(folder)
    return Runner(lambda: x * 2 + np.float32(off), lambda given: [given])


def printing(folder: Path, threads: int) -> Runner:
    print("what a library prints is no answer", flush=True)
    return doubling(folder, threads)


def ending(folder: Path, threads: int) -> Runner:
    os._exit(3)


def refusing(folder: Path, threads: int) -> Runner:
    raise ValueError("no such op here")


def sleeping(folder: Path, threads: int) -> Runner:
    time.sleep(60)
    return doubling(folder, threads)


def telling(folder: Path, threads: int) -> Runner:
    """Gives what the process was started with."""
    told = [float(os.environ["OMP_NUM_THREADS"]), float(len(os.sched_getaffinity(0))), float(threads)]
    told.append(float("OPENBLAS_CORETYPE" in os.environ))
    return Runner(lambda: np.array(told), lambda given: [given])
