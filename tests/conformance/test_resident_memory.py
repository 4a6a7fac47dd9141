"""The memory that a run makes resident is what its plan tells, within a tenth and 16 MiB: each program in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.workloads.catalog import workloads
from tests.conformance.resident import DTYPES, EXAMPLES

SLACK = 16 << 20
QUICK = [("residual_block", "f32"), ("conv3_28", "f64")]
CASES = [*((name, "f32") for name in EXAMPLES), *((name, dtype) for name in workloads() for dtype in DTYPES)]


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux forgets the peak of a process")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("name", "dtype"), [pytest.param(*case, marks=[] if case in QUICK else pytest.mark.conformance) for case in CASES]
)
def test_a_run_makes_resident_what_its_plan_tells(name: str, dtype: str, threads: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.conformance.resident", name, dtype, str(threads)],
        capture_output=True, text=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert abs(found["resident"] - found["told"]) <= 0.1 * found["told"] + SLACK, found
