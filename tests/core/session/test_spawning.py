"""Where nothing can be forked each trace runs in a new Python, under the same rules."""

import os
import threading
import time

import pytest

from topos_core.session.client import Agent, Cancelled
from topos_core.session.limits import MIB, Limits

MARK = "import topos_core as tp\n@tp.model(x=tp.f32[2])\ndef f(x):\n    return x + 1\n"
REFUSED = """
import os
def fork():
    raise OSError(12, "Cannot allocate memory")
os.fork = fork
"""


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    limits = Limits(seconds=30, memory=600 * MIB, fork=False)
    with Agent(tmp_path_factory.mktemp("project"), limits=limits, warming=True) as agent:
        yield agent


def test_a_trace_is_planned_again_and_emitted_by_the_same_new_python(agent):
    marked = MARK + "import os, sys\nprint(os.getpid(), os.getppid())\n"
    reply = agent.trace("model.py", marked)
    process, parent = map(int, reply["output"].split())
    assert parent == agent.hello()["process"]
    (entry,) = reply["entries"]
    assert agent.replan(entry["target"])["document"]["ops"] == entry["document"]["ops"]
    assert "stablehlo.add" in agent.emit(entry["target"])["text"]
    with open(f"/proc/{process}/cmdline") as file:
        assert '"worker"' in file.read()


def test_streams_are_captured_and_nothing_of_ours_is_open_in_it(agent):
    body = "import os, sys\nassert sys.stdin.read() == ''\nos.write(1, b'one ')\nos.write(2, b'two ')\n"
    reply = agent.trace("streams.py", MARK + body + "fds = os.listdir('/proc/self/fd')\nprint(len(fds) < 8)\n")
    assert "error" not in reply, reply
    assert reply["output"] == "one two True\n"


ENDS = {
    "a loop": ("while True:\n    pass\n", "TP405", 1.5),
    "memory": ("import numpy\nkept = [numpy.ones(2**17) for _ in range(30_000)]\n", "TP406", None),
    "an exit": ("import os\nos._exit(4)\n", "TP407", None),
    "a failing import": ("import no_such_module\n", "TP404", None),
}


@pytest.mark.parametrize(("body", "code", "seconds"), ENDS.values(), ids=ENDS.keys())
def test_limits_and_endings_are_told_as_of_a_fork(agent, body, code, seconds):
    assert agent.trace("bad.py", MARK + body, timeout=seconds)["error"]["code"] == code
    assert "error" not in agent.trace("bad.py", MARK)


def test_a_cancelled_one_ends_with_its_children(agent, tmp_path):
    mark = tmp_path / "pids"
    body = f"import os, time\nchild = os.fork()\nif child:\n    open({str(mark)!r}, 'w').write(f'{{os.getpid()}} {{child}} ')\ntime.sleep(60)\n"
    caught = []

    def trace():
        try:
            agent.trace("slow.py", MARK + body)
        except Cancelled as error:
            caught.append(error)

    thread = threading.Thread(target=trace)
    thread.start()
    _until(lambda: mark.exists() and mark.read_text().endswith(" "))
    agent.cancel("slow.py")
    thread.join(10)
    assert len(caught) == 1
    _until(lambda: not any(os.path.exists(f"/proc/{each}") for each in mark.read_text().split()))


def test_a_system_that_refuses_to_fork_is_answered_with_a_new_python(tmp_path, monkeypatch):
    site, root = tmp_path / "site", tmp_path / "root"
    site.mkdir()
    root.mkdir()
    (site / "sitecustomize.py").write_text(REFUSED)
    monkeypatch.setenv("PYTHONPATH", str(site))
    with Agent(root) as agent:
        assert "refuses to fork" in agent.hello()["network_reason"]
        reply = agent.trace("model.py", MARK)
        assert [entry["target"] for entry in reply["entries"]] == ["model.py:f"]


def test_a_system_that_starts_nothing_is_told_so(tmp_path, monkeypatch):
    site, root = tmp_path / "site", tmp_path / "root"
    site.mkdir()
    root.mkdir()
    (site / "sitecustomize.py").write_text(REFUSED + "os.posix_spawn = lambda *_, **__: fork()\n")
    monkeypatch.setenv("PYTHONPATH", str(site))
    with Agent(root) as agent:
        error = agent.trace("model.py", MARK)["error"]
        assert error["code"] == "TP407"
        assert "no further process (Cannot allocate memory)" in error["message"]


def _until(test):
    deadline = time.monotonic() + 20
    while not test():
        assert time.monotonic() < deadline
        time.sleep(0.01)
