"""Whatever user code does, the answer is the right code, the place where it happened, and an agent that goes on working."""

import os
import subprocess
import time

import pytest

from topos_core.session.client import Agent
from topos_core.session.limits import MIB, Limits

MARK = "# topos: entry inputs=f32[2]\ndef entry(x):\n    return x\n"


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    with Agent(tmp_path_factory.mktemp("project"), limits=Limits(seconds=10, memory=600 * MIB, output=4096)) as agent:
        yield agent


def check(agent, body, code, *, line=None, words="", output="", timeout=None):
    """Traces `MARK` and then `body`, whose first line is line 4 of the file."""
    reply = agent.trace("model.py", MARK + body, timeout=timeout)
    error = reply["error"]
    assert (error["code"], error["line"]) == (code, line), error
    assert error["path"] == ("model.py" if line else None)
    assert words in error["message"]
    assert output in reply["output"]
    return reply


RAISES = {
    "an exception of its own": ("a = 1\nb = a / 0\n", "TP402", 5, "ZeroDivisionError: division by zero"),
    "an exception in a helper": ("def f(x):\n    return {}[x]\nf(3)\n", "TP402", 5, "KeyError: 3"),
    "too deep a recursion": ("def f():\n    f()\nf()\n", "TP402", 5, "RecursionError"),
    "an interrupt": ("raise KeyboardInterrupt\n", "TP402", 4, "KeyboardInterrupt"),
    "reading standard input": ("input()\n", "TP402", 4, "standard input, which is empty here"),
    "a module that is not there": ("x = 1\nimport no_such_module\n", "TP404", 5, "no module named 'no_such_module'"),
    "a name that a module lacks": ("from os import no_such_name\n", "TP404", 4, "no_such_name"),
    "a framework that is not there": ("import tensorflow\n", "TP409", 4, "has no tensorflow"),
    "an allocation that is refused": ("import numpy\nx = numpy.ones(10**15)\n", "TP406", 5, "refused"),
    "asking to exit": ("import sys\nsys.exit(3)\n", "TP407", 5, "status 3"),
    "raising SystemExit": ("raise SystemExit\n", "TP407", 4, "status 0"),
    "the network": (
        "import socket\nsocket.create_connection(('192.0.2.1', 80), 3)\n",
        "TP402",
        5,
        "no network here",
    ),
}


@pytest.mark.parametrize(("body", "code", "line", "words"), RAISES.values(), ids=RAISES.keys())
def test_what_user_code_raises_is_told_at_its_line(agent, body, code, line, words):
    if "network" in words and agent.hello()["network"]:
        pytest.skip(f"the network cannot be taken away here: {agent.hello()['network_reason']}")
    check(agent, body, code, line=line, words=words)


ENDS = {
    "os._exit": ("import os\nos._exit(0)\n", "status 0"),
    "os._exit with a status": ("import os\nos._exit(9)\n", "status 9"),
    "a builtin that topos needs": ("import builtins\nbuiltins.isinstance = None\n", "or a builtin that it replaced"),
    "a crash": ("import ctypes\nctypes.string_at(0)\n", "SIGSEGV"),
    "an abort": ("import os\nos.abort()\n", "SIGABRT"),
    "killing itself": ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", "SIGKILL"),
    "closing every descriptor": ("import os\nos.closerange(3, 1000)\n", "closed a descriptor"),
    "closing every descriptor, then opening files": (
        "import os\nos.closerange(3, 1000)\nkept = [open('/dev/null', 'w') for _ in range(64)]\n",
        "closed a descriptor",
    ),
    "closing every descriptor, then waiting": (
        "import os, time\nos.closerange(3, 1000)\ntime.sleep(60)\n",
        "closed a descriptor",
    ),
}


@pytest.mark.parametrize(("body", "words"), ENDS.values(), ids=ENDS.keys())
def test_a_process_that_ends_is_told_with_how_it_ended(agent, body, words):
    check(agent, "print('so far')\n" + body, "TP407", words=words, output="so far")


LOOPS = {
    "in Python": "def loop():\n    while True:\n        x = 1\nloop()\n",
    "asleep": "import time\n\ntime.sleep(60)\n",
    "in one long call of C code": "import itertools\n\nsum(itertools.repeat(1))\n",
    "while ignoring signals": (
        "import signal\nfor number in (1, 2, 3, 15): signal.signal(number, signal.SIG_IGN)\nwhile True: x = 1\n"
    ),
}


@pytest.mark.parametrize("body", LOOPS.values(), ids=LOOPS.keys())
def test_an_endless_loop_ends_at_the_time_limit_with_its_line(agent, body):
    reply = agent.trace("model.py", MARK + body, timeout=0.5)
    assert reply["error"]["code"] == "TP405"
    assert reply["error"]["line"] in (5, 6)
    assert "longer than 0.5 s" in reply["error"]["message"]


def test_an_allocation_past_the_limit_is_told_with_its_line(agent):
    body = "import numpy\nkept = []\nfor i in range(30_000):\n    kept.append(numpy.ones(2**17))\n"
    error = check(agent, body, "TP406", line=7)["error"]
    assert "the limit is 600 MiB" in error["message"]


def test_memory_of_children_counts(agent):
    child = "import time; x = bytearray(2**30); x[::4096] = bytes(2**18); time.sleep(60)"
    body = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])\n"
    check(agent, body, "TP406", line=5, timeout=20)


def test_a_flood_of_prints_neither_blocks_nor_eats_memory(agent):
    reply = check(agent, "for i in range(200_000):\n    print('line', i)\n1 / 0\n", "TP402", line=6)
    assert reply["output"].startswith("line 0\n")
    assert reply["output"].endswith("line 199999\n")
    assert "bytes left out" in reply["output"]
    assert len(reply["output"]) < 5000


def test_an_endless_flood_ends_at_the_time_limit(agent):
    check(agent, "while True: print('x' * 1000)\n", "TP405", line=4, timeout=0.5)


def test_output_without_a_line_end_and_from_other_streams_is_kept(agent):
    body = "import os, sys\nprint('a')\nsys.stderr.write('b\\n')\nos.write(1, b'c')\nos.system('printf d')\n1 / 0\n"
    assert check(agent, body, "TP402", line=9)["output"] == "a\nb\ncd"


def test_closed_streams_do_no_harm(agent):
    check(agent, "import sys, os\nsys.stdout.close()\nos.close(1)\nos.close(2)\n1 / 0\n", "TP402", line=8)


FINE = {
    "starting threads": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\n",
    "changing the directory": "import os\nos.chdir('/')\n",
    "waiting for a child": "import subprocess\nsubprocess.run(['true'], check=True)\n",
    "forking a child that comes back": "import os\nos.fork()\n",
    "forking a child that exits": "import os\nif os.fork() == 0:\n    os._exit(3)\n",
    "replacing the streams": "import sys\nsys.stdout = sys.stderr = None\n",
    "clearing the path": "import sys\nsys.path.clear()\n",
    "changing the recursion limit": "import sys\nsys.setrecursionlimit(100)\n",
}


@pytest.mark.parametrize("body", FINE.values(), ids=FINE.keys())
def test_what_does_no_harm_is_let_be(agent, body):
    reply = agent.trace("model.py", MARK + body)
    assert "error" not in reply, reply["error"]
    assert [entry["target"] for entry in reply["entries"]] == ["model.py:entry"]


def test_children_end_with_the_process_even_if_they_leave_its_session(agent, tmp_path):
    mark = tmp_path / "pids"
    body = f"""
import os, subprocess, sys, time
for detached in (False, True):
    subprocess.Popen(["sleep", "1000"], start_new_session=detached)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open({str(mark)!r}, "w").write(str(os.getpid()))
        time.sleep(1000)
    os._exit(0)
while not os.path.exists({str(mark)!r}) or not open({str(mark)!r}).read():
    time.sleep(0.01)
time.sleep(1000)
"""
    reply = agent.trace("model.py", MARK + body, timeout=2)
    assert reply["error"]["code"] == "TP405"
    deadline = time.monotonic() + 5
    while (left := _left_over(agent)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert left == []
    assert not os.path.exists(f"/proc/{mark.read_text()}")


def test_after_all_that_the_agent_still_answers(agent):
    first = agent.hello()["process"]
    assert "error" not in agent.trace("model.py", MARK)
    assert agent.hello()["process"] == first


def _left_over(agent):
    listing = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(agent.hello()["process"])], capture_output=True, text=True
    )
    return [line for line in listing.stdout.splitlines() if "sleep" in line]
