"""Models that do their worst: each is told as a failure of its own, and the server goes on."""

import pytest

from tests.lsp.models import NORM, marked

FORK = """
import os, time
if os.fork() == 0:
    time.sleep(600)
"""
THREADS = """
import threading, time
for _ in range(4):
    threading.Thread(target=lambda: time.sleep(600)).start()
"""
BAD = {
    "loop": ("while True: pass\n", "TP405"),
    "exit": ("import os; os._exit(3)\n", "TP407"),
    "leave": ("import sys; sys.exit(0)\n", "TP407"),
    "abort": ("import os; os.abort()\n", "TP407"),
    "memory": ("x = b'0' * (400 << 20); x += x\n", "TP406"),
    "raising": ("raise ValueError('no \\x1b[31m')\n", "TP402"),
    "missing": ("import no_such_module\n", "TP404"),
    "syntax": ("def (\n", "TP403"),
    "emptying": ("import sys; sys.modules.clear(); import topos_core\n", "TP402"),
    "closing": ("import os; os.closerange(3, 256)\n", "TP407"),
}
GOOD = {
    "flood": "print('x' * 5_000_000)\n",
    "descriptor": "import os; os.write(1, b'Content-Length: 2\\r\\n\\r\\n{}')\n",
    "moving": "import os; os.chdir('/')\n",
    "fork": FORK,
    "threads": THREADS,
    "reading": "import sys; sys.stdin.read()\n",
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    from tests.lsp.client import Client
    from tests.lsp.conftest import VOUCHED

    home = tmp_path_factory.mktemp("home")
    folder = home / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[tool.topos]\nseconds = 5\nmemory = "300 MiB"\n')
    client = Client(home)
    client.initialize(folder, options=VOUCHED)
    client.folder = folder
    yield client
    assert client.shutdown() == 0
    client.close()


def test_what_code_does_to_its_process_stays_there(shared, opened):
    """All of them at once, side by side, as when a folder of old scripts is open."""
    names = {key: opened(text + marked("return x"), key) for key, (text, _) in BAD.items()}
    good = {key: opened(text + NORM, f"good_{key}") for key, text in GOOD.items()}
    for key, (_, code) in BAD.items():
        (found,) = shared.wait_for_diagnostics(names[key])
        assert found["code"] == code, (key, found["message"])
        assert "\x1b" not in found["message"]
    for name in good.values():
        assert list(shared.wait_for_hints(name).values()) == ["taken: batch_norm_training"]


def test_a_text_that_killed_its_process_is_not_run_again_unless_asked(shared, opened):
    counter = shared.folder / "count"
    text = f"import os; open({str(counter)!r}, 'a').write('1'); os._exit(1)\n" + marked("return x")
    name = opened(text)
    shared.wait_for_diagnostics(name)
    shared.change(name, text + "\n", 2)
    shared.wait_for_diagnostics(name, lambda found: counter.read_text() == "11")
    shared.change(name, text, 3)
    shared.hints(name)
    shared.wait(lambda: shared.diagnostics(name)["version"] == 3)
    shared.wait_for_diagnostics(name)
    assert counter.read_text() == "11"
    shared.request("workspace/executeCommand", {"command": "topos.retrace", "arguments": [name]})
    shared.wait_for_diagnostics(name, lambda found: counter.read_text() == "111")


def test_a_text_that_killed_its_process_is_not_run_again_when_its_buffer_is_reopened(shared, opened):
    counter = shared.folder / "count_reopened"
    text = f"import os; open({str(counter)!r}, 'a').write('1'); os._exit(1)\n" + marked("return x")
    name = opened(text)
    shared.wait_for_diagnostics(name)
    path = shared.folder / f"{name.rpartition('/')[2]}"
    for _ in range(2):
        shared.notify("textDocument/didClose", {"textDocument": {"uri": name}})
        shared.open(path, text)
        (found,) = shared.wait_for_diagnostics(name)
        assert found["code"] == "TP407"
    assert counter.read_text() == "1"
    shared.request("workspace/executeCommand", {"command": "topos.retrace", "arguments": [name]})
    shared.wait_for_diagnostics(name, lambda found: counter.read_text() == "11")


def test_a_reopened_buffer_is_traced_again_where_its_module_changed_meanwhile(shared, opened):
    counter, helper = shared.folder / "count_good", shared.folder / "reopened_helper.py"
    helper.write_text("GAIN = 1.0\n")
    text = f"import reopened_helper; open({str(counter)!r}, 'a').write('1')\n" + NORM
    name = opened(text)
    shared.wait_for_hints(name)
    path = shared.folder / f"{name.rpartition('/')[2]}"

    def reopen():
        shared.notify("textDocument/didClose", {"textDocument": {"uri": name}})
        shared.open(path, text)
        shared.wait_for_hints(name)

    reopen()
    assert counter.read_text() == "1"
    helper.write_text("GAIN = 10.0\n")
    reopen()
    assert counter.read_text() == "11"
