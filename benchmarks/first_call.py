"""Times the first call of ResNet-18, `python -m benchmarks.first_call [TURNS]`: with nothing on disk, and from the cache on disk.

Each call is one of a process of its own, with a cache folder of the turn's own. Wall seconds: the trace and the plan come before
the call and are told apart. Exits 1 where the least of the turns misses a bar.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BARS = {"nothing on disk": 6.0, "from the cache on disk": 0.5}
"""Seconds that the first call may take."""
FIGURES = ("trace and plan", "first call", "second call")


def call() -> list[float]:
    """Traces, plans and runs ResNet-18 twice in this process; gives the seconds of each of `FIGURES`."""
    import topos_core as tp
    from benchmarks.workloads.catalog import workloads
    from benchmarks.workloads.topos_form import traced

    moments = [time.perf_counter()]
    tape, inputs = traced(workloads()["resnet18"])
    plan = tp.plan(tape, parameters=dict(tape.defaults))
    moments.append(time.perf_counter())
    for _ in range(2):
        plan.run(*inputs)
        moments.append(time.perf_counter())
    return [after - before for before, after in itertools.pairwise(moments)]


def turn(folder: Path) -> list[float]:
    """Makes the call in a new process, its kernels kept in a folder."""
    command = [sys.executable, "-c", "import json; from benchmarks.first_call import call; print(json.dumps(call()))"]
    done = subprocess.run(
        command, env={**os.environ, "TOPOS_CACHE_DIR": str(folder)}, stdout=subprocess.PIPE, check=True
    )
    found: list[float] = json.loads(done.stdout)
    return found


def main(turns: int) -> int:
    """Prints a line for each call, and the least of the first calls beside its bar."""
    first: dict[str, list[float]] = {kind: [] for kind in BARS}
    for number in range(1, turns + 1):
        with tempfile.TemporaryDirectory() as folder:
            for kind, seconds in first.items():
                figures = turn(Path(folder))
                seconds.append(figures[1])
                told = ", ".join(f"{name} {figure:.3f} s" for name, figure in zip(FIGURES, figures, strict=True))
                print(f"turn {number}, {kind}: {told}", flush=True)
    for kind, bar in BARS.items():
        least = min(first[kind])
        print(f"first call, {kind}: {least:.2f} s at the least, bar {bar} s: {'reached' if least <= bar else 'missed'}")
    return int(any(min(first[kind]) > bar for kind, bar in BARS.items()))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3))
