"""Each scenario is asked three times from the same marks: the findings of `topos check`, the editor, the plan's document."""

import json
import re

import pytest

from tests.lsp import scenarios
from tests.lsp.client import Client, at, span
from tests.lsp.conftest import VOUCHED
from tests.lsp.scenarios import Mark
from topos_core.cli.main import main
from topos_core.session.client import Agent
from topos_core.session.workspace import open_workspace

NAMES = scenarios.archives()
EVERYTHING = ["TP1xx", "TP2xx", "TP3xx", "TP4xx", "TP5xx", "TP6xx", "TP7xx"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Gives a server that shows every code as a diagnostic."""
    home = tmp_path_factory.mktemp("home")
    folder = home / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    client = Client(home)
    client.initialize(folder, options={**VOUCHED, "debounceMs": 0, "diagnostics": EVERYTHING})
    client.folder = folder
    yield client
    client.close()


@pytest.fixture(scope="module")
def written(shared):
    """Writes every scenario into a folder of its own; gives the folder of all."""
    for name in NAMES:
        folder = shared.folder / name
        folder.mkdir()
        for path, text in scenarios.files(name).items():
            (folder / path).write_bytes(text.encode())
    return shared.folder


@pytest.fixture(scope="module")
def checked(written):
    """Checks all of them with one command; gives the targets by scenario."""
    file = written / "checked.json"
    main(["check", str(written), "--format", f"json={file}"])
    found = {name: [] for name in NAMES}
    for target in json.loads(file.read_text())["targets"]:
        name, _, rest = target["target"].partition("/")
        found[name].append({**target, "path": rest.partition(":")[0]})
    return found


@pytest.fixture(scope="module")
def documents(written):
    """Traces all of them in one agent; gives (path, document) by scenario."""
    workspace = open_workspace(str(written))
    found = {name: [] for name in NAMES}
    with Agent(written, frameworks=True) as agent:
        for name in NAMES:
            for path in scenarios.files(name):
                file = str(written / name / path)
                if "topos" in scenarios.files(name)[path] and name != "failures":
                    specs = workspace.entries(file)
                    reply = agent.trace(
                        file, entries=list(specs), specs=list(specs.values()), options={"machine": "reference"}
                    )
                    found[name] += [entry["document"] for entry in reply["entries"]]
    return found


def wanted(name, *kinds):
    return [mark for mark in scenarios.marks(name) if mark.kind in kinds]


def compare(found, expected):
    """Compares marks; those that are expected say only how a text begins."""
    found, expected = sorted(set(found)), sorted(set(expected))
    for k, mark in enumerate(expected[: len(found)]):
        if found[k].text.startswith(mark.text):
            found[k] = Mark(*(getattr(found[k], key) for key in ("path", "line", "kind", "what", "source")), mark.text)
    assert found == expected


def told(name, row, kind, what, text=""):
    """Makes a mark of a row with a place, whose path begins with the scenario's folder."""
    path = row["path"].removeprefix(f"{name}/")
    return Mark(path, row["line"], kind, what, scenarios.segment(scenarios.files(name)[path], row), text)


def found_by_editor(name, path, row):
    """Makes a mark of a diagnostic, whose columns count UTF-16 units."""
    lines = re.split(r"\r\n|\r|\n", scenarios.files(name)[path])
    start, end = row["range"]["start"], row["range"]["end"]

    def column(where):
        line = lines[where["line"]].encode("utf-16-le")
        return len(line[: 2 * where["character"]].decode("utf-16-le"))

    place = {
        "path": path, "line": start["line"] + 1, "column": column(start), "end_line": end["line"] + 1, "end_column": column(end),
    }  # fmt: skip
    kind = "failure" if row["message"].startswith("no plan: ") else "finding"
    return told(name, place, kind, row["code"], row["message"].removeprefix("no plan: ").split("\n")[0])


@pytest.mark.parametrize("name", NAMES)
def test_check_finds_what_is_marked(checked, name):
    found = []
    for target in checked[name]:
        if target["error"] is not None:
            error = target["error"]
            found.append(told(name, error, "failure", error["code"], error["message"]))
        found += [told(name, row, "finding", row["code"], row["headline"]) for row in target["findings"]]
    compare(found, wanted(name, "finding", "failure"))


@pytest.mark.parametrize("name", NAMES)
def test_the_editor_shows_what_is_marked(shared, written, name):
    uris = {path: shared.open(written / name / path) for path in scenarios.files(name)}
    found = []
    for path, uri in uris.items():
        shared.wait_for(lambda uri=uri: settled(shared, uri))
        for row in (shared.diagnostics(uri) or {"diagnostics": []})["diagnostics"]:
            found.append(found_by_editor(name, path, row))
    for path, uri in uris.items():
        hints = shared.request("textDocument/inlayHint", {**at(uri), "range": span(0, 0, 999, 0)})
        found += [Mark(path, hint["position"]["line"] + 1, "hint", hint["label"]) for hint in hints]
    for uri in uris.values():
        shared.notify("textDocument/didClose", at(uri))
    compare(found, wanted(name, "finding", "failure", "hint"))


def settled(client, uri):
    """Says whether no plan of a buffer is on its way."""
    status = client.request("workspace/executeCommand", {"command": "topos.status"})
    return all(file["state"] not in ("waiting", "tracing") for file in status["files"])


@pytest.mark.parametrize("name", NAMES)
def test_the_document_holds_what_is_marked(documents, name):
    found = []
    for document in documents[name]:
        for region in document["regions"]:
            found.append(told(name, region["spans"][0], "region", f"{region['pattern']} {region['verdict']}"))
    compare(found, wanted(name, "region"))
