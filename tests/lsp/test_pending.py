"""What is shown while a trace runs, after one failed, and of a text that moved on."""

import time

from tests.lsp.client import at
from tests.lsp.models import NORM, marked

LOOP = marked("while True: pass", name="loop")


def test_results_move_with_edits_and_are_marked_stale_after_a_failure(shared, opened):
    observing = NORM.replace("    variance =", "    c = x - mean\n    tp.observe(c, 'c')\n    variance =").replace(
        "((x - mean) ** 2)", "(c * c)"
    ).replace("return (x - mean)", "return c")  # fmt: skip
    name = opened(observing)
    (before,) = shared.wait_for_diagnostics(name)
    hints = shared.wait_for_hints(name)
    shared.change(name, "# one\n# two\n" + observing, 2)
    (moved,) = shared.wait_for_diagnostics(name, lambda found: found and found[0]["range"] != before["range"])
    assert moved["range"]["start"]["line"] == before["range"]["start"]["line"] + 2
    assert shared.diagnostics(name)["version"] == 2
    assert shared.hints(name) == {line + 2: label for line, label in hints.items()}
    broken = observing.replace("(c * c)", "(c * d)")
    shared.change(name, broken, 3)
    found = shared.wait_for_diagnostics(name, lambda found: {each["code"] for each in found} == {"TP101", "TP402"})
    stale = next(each for each in found if each["code"] == "TP101")["message"].split("\n")[-1]
    assert stale.startswith("stale: this is the plan of ")
    assert stale.endswith("name 'd' is not defined")
    failed = next(each for each in found if each["code"] == "TP402")
    assert failed["message"].startswith("no plan: ")
    assert broken.split("\n")[failed["range"]["start"]["line"]].strip().startswith("variance")
    assert all(label.endswith("(stale)") for label in shared.hints(name).values())
    lens = shared.request("textDocument/codeLens", at(name))[0]["command"]
    assert "stale since" in lens["title"]
    assert lens["command"] == "topos.retrace"
    line = next(iter(shared.hints(name)))
    assert "**stale**" in shared.hover(name, line, 12)
    shared.change(name, observing, 4)
    shared.wait_for_diagnostics(name, lambda found: [each["code"] for each in found] == ["TP101"])
    assert "stale" not in shared.hints(name)[line]


def test_a_syntax_error_is_told_at_once_and_keeps_the_marks(shared, opened):
    name = opened(NORM)
    hints = shared.wait_for_hints(name)
    shared.change(name, NORM.replace("np.sqrt(", "np.sqrt(("), 2)
    (found,) = shared.wait_for_diagnostics(name)
    assert found["code"] == "TP403"
    assert set(shared.hints(name)) == set(hints)


def test_the_server_answers_while_a_trace_runs_and_a_newer_text_ends_it(shared, opened):
    name = opened(NORM)
    hints = shared.wait_for_hints(name)
    before = len(shared.requests)
    shared.change(name, NORM + "\nwhile True:\n    pass\n", 2)
    shared.wait(lambda: any(m == "window/workDoneProgress/create" for m, _ in shared.requests[before:]))
    waited = []
    for _ in range(20):
        asked = time.monotonic()
        assert shared.hints(name) == hints
        assert shared.hover(name, 8, 12).startswith("**taken**")
        waited.append(time.monotonic() - asked)
    assert sorted(waited)[10] < 0.5
    shared.change(name, NORM + "\n# done\n", 3)
    shared.wait(lambda: any(m == "$/progress" and p["value"]["kind"] == "end" for m, p in shared.notifications))
    lens = shared.request("textDocument/codeLens", at(name))[0]["command"]["title"]
    assert lens.endswith("open plan")


def test_the_user_can_cancel_a_trace_and_ask_again(shared, opened):
    before = len(shared.requests)
    name = opened(LOOP)
    shared.wait(lambda: any(m == "window/workDoneProgress/create" for m, _ in shared.requests[before:]))
    token = next(p["token"] for m, p in shared.requests[before:] if m == "window/workDoneProgress/create")
    assert shared.request("textDocument/codeLens", at(name))[0]["command"]["title"] == "tracing ..."
    assert shared.hover(name, 5, 5) == "tracing ..."
    shared.wait(lambda: any(m == "$/progress" and p["token"] == token for m, p in shared.notifications))
    shared.notify("window/workDoneProgress/cancel", {"token": token})
    shared.wait(
        lambda: any(
            m == "$/progress" and p["token"] == token and p["value"]["kind"] == "end" for m, p in shared.notifications
        )
    )
    assert shared.hover(name, 5, 5) == "**no plan**: the trace was cancelled"
    shared.change(name, NORM, 2)
    shared.wait_for_hints(name)


def test_undoing_an_edit_runs_nothing_again(shared, opened):
    runs = shared.folder / "undone"
    text = NORM + f"open({str(runs)!r}, 'a').write('1')\n"
    name = opened(text)
    shared.wait_for_hints(name)
    shared.change(name, text.replace("1e-5", "1e-6"), 2)
    shared.wait_for(lambda: len(runs.read_text()) == 2)
    shared.wait_for_lens(name, "open plan")
    emitted = shared.request("workspace/executeCommand", {"command": "topos.emit", "arguments": [name, "norm"]})["text"]
    shared.change(name, text, 3)
    shared.wait_for_lens(name, "open plan")
    time.sleep(1)
    assert len(runs.read_text()) == 2
    again = shared.request("workspace/executeCommand", {"command": "topos.emit", "arguments": [name, "norm"]})["text"]
    assert emitted != again


def test_closing_takes_everything_back(shared, opened):
    name = opened(marked("return y"))
    shared.wait_for_diagnostics(name)
    shared.notify("textDocument/didClose", at(name))
    shared.wait_for_diagnostics(name, lambda found: not found)
    assert shared.request("textDocument/codeLens", at(name)) == []


def test_files_without_a_mark_are_never_run(shared, opened):
    trap = shared.folder / "ran"
    name = opened(f"import topos_core\nopen({str(trap)!r}, 'w').close()\ndef f(x):\n    return x\n")
    again = opened(NORM, "marked")
    shared.wait_for_hints(again)
    assert shared.hints(name) == {}
    assert shared.diagnostics(name) is None
    assert not trap.exists()


def test_a_changed_module_on_disk_traces_what_imports_it(shared, opened):
    shared.wait(lambda: any(m == "client/registerCapability" for m, _ in shared.requests))
    module = shared.folder / "factor.py"
    module.write_text("eps = 1e-5\n")
    name = opened(NORM.replace("1e-5", "factor.eps").replace("import numpy", "import factor\nimport numpy"))
    shared.wait_for_hints(name, lambda found: any(label.startswith("taken") for label in found.values()))
    module.write_text("epsilon = 1e-5\n")
    shared.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": module.as_uri(), "type": 2}]})
    (found,) = shared.wait_for_diagnostics(name)
    assert found["code"] == "TP402"


def test_only_what_imports_a_changed_module_is_traced_again(shared, opened):
    runs = shared.folder / "runs"
    count = f"open({str(runs)!r}, 'a').write('1')\n"
    name = opened(count + "import used\n" + NORM)
    (found,) = shared.wait_for_diagnostics(name)
    assert found["code"] == "TP404"
    used = shared.folder / "used.py"
    used.write_text("import deeper\n")
    (shared.folder / "deeper.py").write_text("")
    shared.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": used.as_uri(), "type": 1}]})
    shared.wait_for_hints(name)
    (shared.folder / "other.py").write_text("")
    before = runs.read_text()
    for module, more in (("other", 0), ("deeper", 1), ("used", 2)):
        change = {"uri": (shared.folder / f"{module}.py").as_uri(), "type": 2}
        shared.notify("workspace/didChangeWatchedFiles", {"changes": [change]})
        if more:
            shared.wait_for(lambda more=more: len(runs.read_text()) == len(before) + more)
            shared.wait_for_lens(name, "open plan")
    assert len(runs.read_text()) == len(before) + 2
    (shared.folder / "deeper.py").write_text("x = (\n")
    change = {"uri": (shared.folder / "deeper.py").as_uri(), "type": 2}
    shared.notify("workspace/didChangeWatchedFiles", {"changes": [change]})
    shared.wait_for_diagnostics(name, lambda found: "TP403" in [each["code"] for each in found])
    (shared.folder / "deeper.py").write_text("")
    shared.notify("workspace/didChangeWatchedFiles", {"changes": [change]})
    shared.wait_for_diagnostics(name, lambda found: not found)
