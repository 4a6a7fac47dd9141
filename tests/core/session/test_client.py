"""The agent's client: cancelling, closing, waiting side by side, and interpreters that cannot serve."""

import os
import subprocess
import sys
import threading
import time
import types

import pytest

from topos_core.document.changes import changes
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


def test_closing_before_the_first_words_ends_the_process_at_once_and_blames_nobody(tmp_path):
    agent, caught = Agent(tmp_path), []

    def trace():
        try:
            agent.trace("loop.py", MARK)
        except (Cancelled, ConfigurationError) as error:
            caught.append(error)

    thread = threading.Thread(target=trace)
    warm = agent._warm
    warm._errors = types.SimpleNamespace(
        seek=warm._errors.seek, read=warm._errors.read, close=lambda: thread.join(10)
    )  # closed only once whoever waited for the first words has looked
    thread.start()
    time.sleep(0.1)
    agent.close()
    assert [type(error) for error in caught] == [Cancelled]
    assert warm._process.returncode == -9  # it was not waited for: an import may take seconds


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


OBSERVED = """\
import numpy as np
import topos_core as tp

@tp.model(x=tp.f32[1, 2, 6, 6], w=tp.f32[3, 2, 3, 3])
def entry(x, w):
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    tp.observe(windows, "windows")
    return np.einsum("bchwij,ocij->bohw", windows, w)
"""


def test_what_if_plans_again_on_the_same_tape(agent):
    options = {"cost": "always"}
    document = agent.trace("model.py", OBSERVED, options=options)["entries"][0]["document"]
    assert document["counts"]["blocked"] == 1
    row = next(k for k, each in enumerate(document["observations"]) if each["name"] == "windows")
    again = agent.replan("model.py:entry", {**options, "ignore": [row]})["document"]
    assert (again["counts"]["blocked"], again["counts"]["taken"], again["digest"]) == (0, 1, document["digest"])
    off = agent.replan("model.py:entry", {**options, "ignore": [row], "off": ["convolution"]})["document"]
    assert off["counts"]["taken"] == 0
    assert "convolution" in agent.emit("model.py:entry", {"ignore": [row]})["text"]


def test_what_if_may_give_only_what_changes(agent):
    options = {"cost": "always"}
    document = agent.trace("model.py", OBSERVED, options=options)["entries"][0]["document"]
    row = next(k for k, each in enumerate(document["observations"]) if each["name"] == "windows")
    whole = agent.replan("model.py:entry", {**options, "ignore": [row]})["document"]
    found = agent.replan("model.py:entry", {**options, "ignore": [row]}, changes=True)["changes"]
    assert found == {**changes(document, whole), "liveness": None}
    with_curve = agent.replan("model.py:entry", {**options, "ignore": [row], "liveness": True}, changes=True)["changes"]
    assert with_curve["liveness"] == whole["liveness"]
    assert [region["verdict"] for region in found["changed"]] == ["taken"]
    assert agent.replan("model.py:entry", options, changes=True)["changes"]["changed"] == []


def test_kernels_are_listed_for_what_is_taken_and_for_nothing_else(agent):
    options = {"cost": "always"}
    document = agent.trace("model.py", OBSERVED, options=options)["entries"][0]["document"]
    row = next(k for k, each in enumerate(document["observations"]) if each["name"] == "windows")
    (blocked,) = [region["id"] for region in document["regions"] if region["verdict"] == "blocked"]
    assert agent.kernels("model.py:entry", blocked, options)["error"]["code"] == "TP505"
    free = {**options, "ignore": [row]}
    listed = agent.kernels("model.py:entry", blocked, free)["listing"]
    assert listed["ran"]
    assert "contraction" in [kernel["name"] for kernel in listed["kernels"]]
    assert agent.kernels("model.py:entry", blocked, {**free, "consumer": "stablehlo"})["error"]["code"] == "TP507"


def test_what_is_taken_has_a_certificate_and_nothing_else_has(agent):
    options = {"cost": "always"}
    document = agent.trace("model.py", OBSERVED, options=options)["entries"][0]["document"]
    row = next(k for k, each in enumerate(document["observations"]) if each["name"] == "windows")
    (blocked,) = [region["id"] for region in document["regions"] if region["verdict"] == "blocked"]
    assert agent.certificate("model.py:entry", blocked, options)["error"]["code"] == "TP505"
    for consumer in ("home", "stablehlo"):
        asked = {**options, "ignore": [row], "consumer": consumer}
        said = agent.certificate("model.py:entry", blocked, asked)["certificate"]
        assert said["answer"] == "true"
        assert said["text"].startswith("its formula is what was recorded: equal by algebra in ")


def test_an_option_that_is_none_is_told(agent):
    agent.trace("model.py", OBSERVED)
    for options, words in (
        ({"speed": 1}, "'speed'"),
        ({"observe": ["nope"]}, "'nope'"),
        ({"consumer": "gpu"}, "'gpu'"),
    ):
        error = agent.replan("model.py:entry", options)["error"]
        assert error["code"] == "TP504"
        assert words in error["message"]


def test_a_failed_trace_leaves_the_last_good_plan_to_ask(agent):
    agent.trace("model.py", OBSERVED)
    assert agent.trace("model.py", OBSERVED + "1 / 0\n")["error"]["code"] == "TP402"
    assert "document" in agent.replan("model.py:entry")


def test_a_new_trace_replaces_the_old_one_and_its_process(agent):
    agent.trace("model.py", OBSERVED)
    (first,) = _children(agent.hello()["process"])
    assert "error" not in agent.trace("model.py", OBSERVED + "# later\n")
    deadline = time.monotonic() + 5
    while first in _children(agent.hello()["process"]) and time.monotonic() < deadline:
        time.sleep(0.005)
    (second,) = _children(agent.hello()["process"])
    assert second != first
    agent.release("model.py")
    while _children(agent.hello()["process"]) and time.monotonic() < deadline:
        time.sleep(0.005)
    assert _children(agent.hello()["process"]) == []


def test_a_process_that_is_ready_runs_nothing_until_its_file_is_traced(agent, tmp_path):
    noisy = MARK + "open('ran', 'w').close()\n"
    supervisor = agent.hello()["process"]
    for text in ("def broken(:\n", "# a text before\n", noisy):
        agent.prepare("noisy.py", text)
        (ready,) = _children(supervisor)
    assert not (tmp_path / "ran").exists()
    assert "document" in agent.trace("noisy.py", noisy)["entries"][0]
    assert (tmp_path / "ran").exists()
    assert _children(supervisor) == [ready]
    agent.prepare("noisy.py", noisy)
    assert agent.trace("noisy.py", MARK + "def broken(:\n")["error"]["code"] == "TP403"
    agent.prepare("noisy.py", noisy)
    assert len(_children(supervisor)) == 2
    agent.release("noisy.py")
    deadline = time.monotonic() + 10
    while _children(supervisor) and time.monotonic() < deadline:
        time.sleep(0.005)
    assert not _children(supervisor)


def test_a_warning_of_the_parser_is_told_although_the_text_was_compiled_ahead(agent):
    warned = MARK + "print(1 is 1)\n"
    agent.prepare("warned.py", warned)
    assert '"is" with a literal' in agent.trace("warned.py", warned)["output"]


def test_an_owner_that_died_is_made_again_from_what_was_traced_last(agent, tmp_path):
    (tmp_path / "model.py").write_text(OBSERVED)
    document = agent.trace("model.py")["entries"][0]["document"]
    (tmp_path / "model.py").write_text("1 / 0\n")
    (owner,) = _children(agent.hello()["process"])
    os.kill(owner, 9)
    deadline = time.monotonic() + 5
    while owner in _children(agent.hello()["process"]) and time.monotonic() < deadline:
        time.sleep(0.005)
    assert agent.replan("model.py:entry")["document"]["digest"] == document["digest"]


def test_threads_that_code_leaves_behind_do_not_hold_up_questions(agent):
    code = "import threading, time\nthreading.Thread(target=lambda: time.sleep(60)).start()\n"
    agent.trace("model.py", OBSERVED + code)
    assert "document" in agent.replan("model.py:entry")


def test_progress_is_told_while_a_request_runs(agent):
    seen = []
    agent.trace("model.py", OBSERVED, progress=lambda *step: seen.append(step))
    assert seen == [("importing", 0, 2), ("entry", 1, 2)]


def test_what_is_traced_is_the_text_that_was_given(agent, tmp_path):
    (tmp_path / "model.py").write_text(MARK + "1 / 0\n")
    document = agent.trace("model.py", OBSERVED.replace("import numpy as np", "import numpy as np  # unsaved é"))[
        "entries"
    ][0]["document"]
    assert document["paths"] == ["model.py"]
    assert document["sources"][0].startswith("import numpy as np  # unsaved é\n")
    assert agent.trace("untitled-1", OBSERVED)["entries"][0]["target"] == "untitled-1:entry"
    assert agent.trace("model.py")["error"]["code"] == "TP402"


def test_a_trace_starts_no_kernel_compiler_and_no_thread(agent):
    code = "import sys, threading\nprint([m for m in ('numba', 'jax', 'torch', 'scipy') if m in sys.modules], threading.active_count())\n"
    assert agent.trace("model.py", OBSERVED + code)["output"] == "[] 1\n"


def test_several_files_have_an_owner_each(agent):
    for name in "abc":
        agent.trace(f"{name}.py", OBSERVED)
    assert all("document" in agent.replan(f"{name}.py:entry") for name in "abc")


def test_code_that_forges_a_reply_is_found_out(agent):
    code = """
import gc, json, socket, struct
for each in gc.get_objects():
    if isinstance(each, socket.socket):
        body = json.dumps({"id": 1, "entries": [{"target": "x", "document": {"schema": "topos.plan/1"}, "off": [], "off_unknown": {}}]}).encode()
        each.sendall(struct.pack(">I", len(body)) + body)
"""
    error = agent.trace("model.py", OBSERVED + code)["error"]
    assert error["code"] == "TP407"
    assert "no reply of topos" in error["message"]


def test_a_target_that_was_never_traced_is_told(agent):
    with pytest.raises(ConfigurationError, match="trace its file first"):
        agent.replan("model.py:entry")


def test_a_root_that_is_gone_is_told(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    with Agent(root) as agent:
        agent.hello()
        root.rmdir()
        assert agent.trace("a.py", MARK)["error"]["code"] == "TP505"
    with pytest.raises(ConfigurationError, match=r"/root is gone, renamed or deleted") as caught:
        Agent(root)
    assert caught.value.code == "TP505"
    root.write_text("")
    with pytest.raises(ConfigurationError, match=r"/root cannot be entered: not a directory"):
        Agent(root)


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
