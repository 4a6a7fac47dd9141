"""Nothing of an untrusted folder is run; settings that cannot be used fall back and say so."""

import pytest

from tests.lsp.client import FULL, at, span
from tests.lsp.conftest import VOUCHED
from tests.lsp.models import NORM, marked


def trap(project):
    file = project / "ran"
    return file, f"open({str(file)!r}, 'w').close()\n{NORM}"


@pytest.mark.parametrize(
    ("option", "offers_trust"), [({"untrustedWorkspace": True}, False), ({"inlayHints": True}, True)]
)
def test_untrusted_code_is_not_run_and_that_is_said(start, project, option, offers_trust):
    ran, text = trap(project)
    client = start()
    client.initialize(project, options=option)
    name = client.open(project / "model.py", text)
    (found,) = client.wait_for_diagnostics(name)
    assert (found["code"], found["severity"]) == ("TP410", 3)
    assert found["message"] == "not traced: this folder is not trusted, so its code is not run"
    assert client.hints(name) == {}
    line = found["range"]["start"]["line"]
    assert client.hover(name, line, 5).startswith("**not traced**")
    assert [symbol["name"] for symbol in client.request("textDocument/documentSymbol", at(name))] == ["norm"]
    (lens,) = client.request("textDocument/codeLens", at(name))
    where = {"range": span(line, 4, line, 5), "context": {"diagnostics": [found]}}
    actions = client.request("textDocument/codeAction", {**at(name), **where})
    if not offers_trust:
        assert (lens["command"]["title"], lens["command"]["command"]) == (found["message"], "")
        assert actions == []
        refused = client.reply(
            client.start_request("workspace/executeCommand", {"command": "topos.trust", "arguments": [name]})
        )
        assert "trust it there" in refused["error"]["message"]
        assert not ran.exists()
        return
    assert lens["command"]["title"] == actions[0]["title"] == f"trust {project} and trace"
    assert not ran.exists()
    client.request("workspace/executeCommand", actions[0]["command"])
    assert list(client.wait_for_hints(name).values()) == ["taken: batch_norm_training"]
    client.wait_for_diagnostics(name, lambda found: not found)
    assert ran.exists()
    ran.unlink()
    client.request("workspace/executeCommand", {"command": "topos.distrust", "arguments": [name]})
    client.wait_for_diagnostics(name)
    assert not ran.exists()


def test_the_editors_own_trust_dialog_is_offered_where_it_has_one(start, project):
    client = start()
    client.initialize(project, options={"untrustedWorkspace": True, "trustCommand": "workbench.trust.manage"})
    name = client.open(project / "model.py", NORM)
    client.wait_for_diagnostics(name)
    (lens,) = client.request("textDocument/codeLens", at(name))
    assert lens["command"]["command"] == "workbench.trust.manage"


def test_an_editor_vouches_for_its_own_folders_only(start, project, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    ran, text = trap(elsewhere)
    link = project / "link.py"
    (elsewhere / "model.py").write_text(text)
    link.symlink_to(elsewhere / "model.py")
    client = start()
    client.initialize(project, options=VOUCHED)
    for path in (elsewhere / "model.py", link):
        name = client.open(path)
        (found,) = client.wait_for_diagnostics(name)
        assert found["code"] == "TP410"
    assert not ran.exists()


def test_buffers_without_a_file_and_files_without_a_folder_are_traced(start, tmp_path):
    client = start()
    client.initialize(options=VOUCHED)
    name = client.open("untitled:Untitled-1", NORM)
    assert list(client.wait_for_hints(name).values()) == ["taken: batch_norm_training"]
    refused = client.reply(
        client.start_request("workspace/executeCommand", {"command": "topos.openPlan", "arguments": [name]})
    )
    assert "save it first" in refused["error"]["message"]
    single = client.open(tmp_path / "single.py", NORM)
    assert client.wait_for_hints(single)
    for uri, language in (
        ("vscode-notebook-cell:/book.ipynb#one", "python"),
        ("file:///x.md", "markdown"),
        ("git:/x.py", "python"),
    ):
        item = {"uri": uri, "languageId": language, "version": 1, "text": NORM}
        client.notify("textDocument/didOpen", {"textDocument": item})
        assert client.request("textDocument/hover", {**at(uri), "position": {"line": 8, "character": 12}}) is None
    assert client.shutdown() == 0


def test_several_folders_have_their_own_projects(start, tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder, consumer in zip(folders, ("home", "stablehlo"), strict=True):
        folder.mkdir()
        (folder / "pyproject.toml").write_text(f"[tool.topos]\nconsumer = {consumer!r}\n")
    client = start()
    client.initialize(folders=folders, options=VOUCHED)
    for folder, consumer in zip(folders, ("home", "stablehlo"), strict=True):
        name = client.open(folder / "model.py", NORM)
        client.wait_for_hints(name)
        assert f"model.py:norm, verdicts of {consumer}, fast, machine reference" in client.hover(name, 8, 12)
    status = client.request("workspace/executeCommand", {"command": "topos.status"})
    assert [project["root"] for project in status["projects"]] == list(map(str, folders))
    named = {"command": "topos.status", "arguments": [name]}
    assert client.request("workspace/executeCommand", named)["projects"] == status["projects"]


def test_settings_that_cannot_be_used_fall_back_and_say_so(start, project):
    pulled = {"inlayHints": ["blocked", "lost"], "debounceMs": 10, "consumer": "stablehlo", "colour": 1}
    client = start(answers={"workspace/configuration": lambda params: [pulled]})
    client.initialize(project, options={**VOUCHED, "debounceMs": -1, "trace": "save"})
    name = client.open(project / "model.py", NORM)
    client.wait_for_hints(name)
    client.wait(lambda: len(client.logged()) >= 3)
    said = client.logged()
    assert said[0] == "topos: topos.debounceMs is -1, expected milliseconds from 0 to 60000; 150 stays"
    assert said[1].startswith(
        "topos: topos.inlayHints is ['blocked', 'lost'], expected a list of taken, declined, blocked"
    )
    assert said[1].endswith("; blocked, declined, near_miss, taken stays")
    assert said[2] == "topos: topos has no setting 'colour'"
    client.wait(lambda: "verdicts of stablehlo" in (client.hover(name, 8, 12) or ""))
    pulled = {"inlayHints": False, "consumer": "stablehlo"}
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    client.wait_for_hints(name, lambda found: not found)
    assert not any(method == "window/showMessage" for method, _ in client.notifications)


def test_marks_can_be_left_out_by_pattern_and_by_predicted_gain(start, observed):
    pulled = {"hiddenPatterns": ["batch_norm_training"]}
    client = start(answers={"workspace/configuration": lambda params: [pulled]})
    client.initialize(observed.parent, options=VOUCHED)
    name = client.open(observed)
    assert all("batch_norm" not in label for label in client.wait_for_hints(name).values())
    client.wait_for_diagnostics(name)
    pulled |= {"leastMicroseconds": 10_000, "hiddenPatterns": "x"}
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    client.wait_for_diagnostics(name, lambda found: not found)
    assert not client.hints(name)
    assert client.logged()[-1] == (
        "topos: topos.hiddenPatterns is 'x', expected a list of patterns such as convolution; batch_norm_training stays"
    )
    pulled["leastMicroseconds"] = -1
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    client.wait(lambda: client.logged()[-1].endswith("expected microseconds from 0 to 1e9; 10000 stays"))


def test_options_that_are_no_table_and_switches_while_running_fall_back_and_say_so(start, project):
    pulled = {}
    client = start(answers={"workspace/configuration": lambda params: [pulled]})
    client.initialize(project, options=["trace"])
    name = client.open(project / "model.py", NORM)
    client.wait_for_lens(name, "trust")
    assert client.logged() == ["topos: initializationOptions are ['trace'], expected a table; the defaults stay"]
    pulled["pullDiagnostics"] = True
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    client.wait(lambda: "topos: topos.pullDiagnostics counts from the next start of the server" in client.logged())
    assert [each["code"] for each in client.wait_for_diagnostics(name)] == ["TP410"]


def test_diagnostics_are_pushed_to_an_editor_that_pulls_none(start, project):
    client = start()
    without = {**FULL, "textDocument": {**FULL["textDocument"]}}
    del without["textDocument"]["diagnostic"]
    announced = client.initialize(project, without, {**VOUCHED, "pullDiagnostics": True})
    assert "diagnosticProvider" not in announced
    assert client.logged() == ["topos: topos.pullDiagnostics: this editor pulls none, so they are pushed"]
    name = client.open(project / "model.py", marked("return y"))
    assert [each["code"] for each in client.wait_for_diagnostics(name)] == ["TP402"]


def test_an_environment_that_leads_nowhere_is_told_where_the_python_is(start, project):
    (project / ".venv").symlink_to("/nowhere/venv")
    client = start()
    client.initialize(project, options=VOUCHED)
    name = client.open(project / "model.py", NORM)
    client.wait_for_hints(name)
    assert f"{project}/.venv has no Python)" in client.hover(name, 8, 12).replace("\\", "")


def test_a_text_that_cannot_be_written_is_told(start, project, tmp_path):
    (tmp_path / "file").write_text("")
    client = start(environment={"XDG_CACHE_HOME": str(tmp_path / "file")})
    client.initialize(project, options=VOUCHED)
    name = client.open(project / "model.py", NORM)
    client.wait_for_hints(name)
    command = {"command": "topos.emit", "arguments": [name, "norm", True]}
    error = client.reply(client.start_request("workspace/executeCommand", command))["error"]
    assert "cannot be written to" in error["message"]
    assert "XDG_CACHE_HOME" in error["message"]


def test_a_broken_pyproject_is_told_at_its_line_and_the_defaults_are_used(start, project):
    (project / "pyproject.toml").write_text("[tool.topos]\nconsumer = 'nobody'\n")
    client = start()
    client.initialize(project, options=VOUCHED)
    name = client.open(project / "model.py", NORM)
    assert client.wait_for_hints(name)
    configuration = (project / "pyproject.toml").as_uri()
    (found,) = client.wait_for_diagnostics(configuration)
    assert (found["code"], found["severity"], found["range"]["start"]["line"]) == ("TP501", 1, 1)
    (project / "pyproject.toml").write_text("")
    client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": configuration, "type": 2}]})
    client.wait_for_diagnostics(configuration, lambda found: not found)
    (project / "pyproject.toml").write_bytes(b"[tool.topos]\nconsumer = '\xff'\n")
    client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": configuration, "type": 2}]})
    (found,) = client.wait_for_diagnostics(configuration)
    assert (found["code"], found["range"]["start"]["line"]) == ("TP501", 0)
    assert "codec can't decode byte 0xff" in found["message"]


def test_diagnostics_are_pulled_where_that_is_asked_for_and_then_not_pushed(start, project):
    client = start()
    announced = client.initialize(project, FULL, {**VOUCHED, "pullDiagnostics": True})
    assert announced["diagnosticProvider"]["interFileDependencies"]
    name = client.open(project / "model.py", marked("return y"))
    client.wait(lambda: any(method == "workspace/diagnostic/refresh" for method, _ in client.requests))
    report = client.request("textDocument/diagnostic", at(name))
    assert [each["code"] for each in report["items"]] == ["TP402"]
    again = client.request("textDocument/diagnostic", {**at(name), "previousResultId": report["resultId"]})
    assert again == {"kind": "unchanged", "resultId": report["resultId"]}
    assert client.diagnostics(name) is None


def test_tracing_waits_for_a_save_or_for_a_command_where_that_is_set(start, project):
    client = start()
    client.initialize(project, options={**VOUCHED, "trace": "manual"})
    name = client.open(project / "model.py", NORM)
    client.wait(
        lambda: (
            [lens["command"]["title"] for lens in client.request("textDocument/codeLens", at(name))][:1]
            == ["not traced yet: trace now"]
        )
    )
    client.request("workspace/executeCommand", {"command": "topos.retrace", "arguments": [name]})
    client.wait_for_hints(name)
    client.change(name, NORM + "\n", 2)
    client.wait_for_hints(name, lambda found: all(label.endswith("(stale)") for label in found.values()))


def test_what_is_taken_gets_a_hint_on_request_only(start, observed):
    client = start()
    client.initialize(observed.parent, options={"untrustedWorkspace": False})
    name = client.open(observed)
    assert client.wait_for_hints(name) == {15: "blocked: conv_bn_activation"}
    where = {**at(name), "range": span(15, 14, 15, 14), "context": {"diagnostics": []}}
    shown = next(
        each["command"]
        for each in client.request("textDocument/codeAction", where)
        if each["title"] == "show the hints of what is taken"
    )
    client.request("workspace/executeCommand", shown)
    assert client.hints(name)[27] == "taken: batch_norm_training"
