"""The agent's client: cancelling, closing, waiting side by side, and interpreters that cannot serve."""

import os
import subprocess
import sys
import threading
import time

import pytest

from topos_core.errors import ConfigurationError, TraceError
from topos_core.session.client import Agent, Cancelled
from topos_core.session.limits import Limits
from topos_core.session.version import VERSION

MARK = "# topos: entry inputs=f32[2]\ndef entry(x):\n    return x\n"
LOOP = MARK + "print('looping', flush=True)\nwhile True: pass\n"


@pytest.fixture
def agent(tmp_path):
    with Agent(tmp_path, limits=Limits(seconds=20)) as agent:
        agent.hello()
        yield agent


def check(agent, cancel):
    """Starts an endless trace, calls `cancel`, and gives the seconds until the trace was over and its process gone."""
    caught = []

    def trace():
        try:
            agent.trace("loop.py", LOOP)
        except Cancelled as error:
            caught.append(error)

    supervisor = agent.hello()["process"]
    thread = threading.Thread(target=trace)
    thread.start()
    deadline = time.monotonic() + 10
    while not (children := _children(supervisor)) and time.monotonic() < deadline:
        time.sleep(0.005)
    assert children
    time.sleep(0.1)
    started = time.monotonic()
    cancel()
    while any(os.path.exists(f"/proc/{child}") for child in children) and time.monotonic() < deadline:
        time.sleep(0.001)
    seconds = time.monotonic() - started
    thread.join(10)
    assert len(caught) == 1
    return seconds


def test_the_warm_process_says_what_it_is(agent):
    hello = agent.hello()
    assert (hello["version"], hello["executable"]) == (VERSION, sys.executable)
    assert hello["network"] == (hello["network_reason"] is not None)


def test_a_cancelled_request_ends_at_once_with_its_process(agent):
    assert check(agent, lambda: agent.cancel("loop.py")) < 2
    assert check(agent, agent.cancel) < 2
    assert "error" not in agent.trace("loop.py", MARK)


def test_cancelling_another_file_or_nothing_does_nothing(agent):
    agent.cancel("other.py")
    agent.cancel()
    assert "error" not in agent.trace("loop.py", MARK)


def test_closing_ends_a_running_request_and_every_process(agent):
    supervisor = agent.hello()["process"]
    check(agent, agent.close)
    assert not os.path.exists(f"/proc/{supervisor}")
    with pytest.raises(Cancelled):
        agent.trace("loop.py", MARK)


def test_files_are_traced_side_by_side(agent):
    def endless():
        with pytest.raises(Cancelled):
            agent.trace("loop.py", LOOP)

    thread = threading.Thread(target=endless)
    thread.start()
    assert "error" not in agent.trace("other.py", MARK)
    agent.cancel("loop.py")
    thread.join(10)
    assert not thread.is_alive()


def test_a_warm_process_that_was_killed_is_started_again(agent):
    first = agent.hello()["process"]
    os.kill(first, 9)
    assert "error" not in agent.trace("loop.py", MARK)
    assert agent.hello()["process"] != first


def test_every_process_ends_when_the_client_is_killed(tmp_path):
    code = f"""
import os, sys, threading
from topos_core.session.client import Agent
agent = Agent({str(tmp_path)!r})
print(agent.hello()["process"], flush=True)
agent.trace("loop.py", {LOOP!r})
"""
    client = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    supervisor = int(client.stdout.readline())
    deadline = time.monotonic() + 10
    while not (children := _children(supervisor)) and time.monotonic() < deadline:
        time.sleep(0.005)
    client.kill()
    client.wait()
    client.stdout.close()
    while _alive(supervisor, *children) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _alive(supervisor, *children)


def test_a_target_that_was_never_traced_is_told(agent):
    with pytest.raises(ConfigurationError, match="trace its file first"):
        agent.replan("model.py:entry")


def test_an_interpreter_that_does_not_exist_is_told(tmp_path):
    with pytest.raises(ConfigurationError, match=r"/nowhere/python cannot be started"):
        Agent(tmp_path, interpreter="/nowhere/python")


def test_an_interpreter_that_ends_at_once_is_told_with_its_last_words(tmp_path):
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho no such thing >&2\nexit 3\n")
    script.chmod(0o755)
    with Agent(tmp_path, interpreter=str(script)) as agent, pytest.raises(ConfigurationError) as caught:
        agent.hello()
    assert "status 3" in caught.value.message
    assert "no such thing" in caught.value.message


def test_an_interpreter_without_numpy_is_told(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    with Agent(tmp_path, interpreter=str(tmp_path / "bare/bin/python")) as agent, pytest.raises(TraceError) as caught:
        agent.trace("model.py", MARK)
    assert caught.value.code == "TP409"
    assert "has no numpy" in caught.value.message


def test_a_foreign_interpreter_needs_nothing_of_topos_but_its_code(tmp_path):
    import numpy

    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    packages = next((tmp_path / "bare/lib").iterdir()) / "site-packages"
    folder = os.path.dirname(numpy.__file__)
    (packages / "numpy").symlink_to(folder)
    if os.path.isdir(f"{folder}.libs"):
        (packages / "numpy.libs").symlink_to(f"{folder}.libs")
    with Agent(tmp_path, interpreter=str(tmp_path / "bare/bin/python")) as agent:
        code = "import topos_core, sys\nassert not [p for p in sys.path if 'session' in p or 'topos_core' in p], sys.path\n"
        assert "error" not in agent.trace("model.py", MARK + code)
        error = agent.trace("model.py", MARK + "import networkx\n")["error"]
    assert (error["code"], str(tmp_path) in error["message"]) == ("TP404", True)


def _children(process):
    listing = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True).stdout
    return [int(word) for word in listing.split()]


def _alive(*processes):
    return [each for each in processes if os.path.exists(f"/proc/{each}") and _state(each) != "Z"]


def _state(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"
