"""What a worker does to itself."""

import os
import signal
import subprocess
import sys


def test_code_that_keeps_a_processor_busy_after_the_answer_is_ended():
    code = "from topos_core.session.worker import _limit_processor\n_limit_processor(0)\nwhile True: pass\n"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, timeout=60)
    assert done.returncode == -signal.SIGXCPU


def test_the_limit_is_lifted_for_the_next_request():
    code = """
import resource
from topos_core.session.worker import _limit_processor
_limit_processor(5)
soft = resource.getrlimit(resource.RLIMIT_CPU)[0]
_limit_processor(None)
print(5 < soft < 60, resource.getrlimit(resource.RLIMIT_CPU)[0] == resource.getrlimit(resource.RLIMIT_CPU)[1])
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout == "True True\n"
