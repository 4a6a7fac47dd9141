"""Each scenario is asked three times from the same marks, for findings, their other places, failures and regions each time: of
`topos check`, of the editor, of the plans' documents.
"""

import json
import re
from dataclasses import replace

import pytest

from tests.lsp import scenarios
from tests.lsp.client import Client, at, span
from tests.lsp.conftest import VOUCHED
from tests.lsp.scenarios import Mark
from topos_core.cli.main import main
from topos_core.errors import ToposError
from topos_core.session.client import Agent
from topos_core.session.places import error_of
from topos_core.session.suppression import suppress
from topos_core.session.workspace import open_workspace
from topos_lsp.settings import VERDICTS

NAMES = scenarios.archives()
EVERYTHING = ["TP1xx", "TP2xx", "TP3xx", "TP4xx", "TP5xx", "TP6xx", "TP7xx"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Gives a server that shows every code as a diagnostic."""
    home = tmp_path_factory.mktemp("home")
    folder = home / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    (home / "config" / "topos").mkdir(parents=True)
    (home / "config" / "topos" / "settings.toml").write_text("seconds = 3600\n")  # no scenario is about time
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
    """Traces all of them in one agent; gives by scenario the documents, the comments by path, and why there is none."""
    workspace = open_workspace(str(written))
    found = {name: ([], {}, []) for name in NAMES}
    with Agent(written, warming=True) as agent:
        for name in NAMES:
            plans, comments, errors = found[name]
            for path, text in scenarios.files(name).items():
                file = str(written / name / path)
                try:
                    comments[f"{name}/{path}"] = workspace.marks(file).comments
                    specs = workspace.entries(file)
                except ToposError as error:
                    errors.append(error_of(error, file, str(written)))
                    continue
                if "topos" not in text:
                    continue
                reply = agent.trace(
                    file, entries=list(specs), specs=list(specs.values()), options={"machine": "reference"}
                )
                for row in (reply, *reply.get("entries", ())):
                    plans += [row["document"]] if "document" in row else []
                    errors += [row["error"]] if "error" in row else []
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


def place_of(name, path, where):
    """Gives a range of the editor, whose columns count UTF-16 units, as documents have it."""
    lines = re.split(r"\r\n|\r|\n", scenarios.files(name)[path])
    start, end = where["start"], where["end"]

    def column(where):
        line = lines[where["line"]].encode("utf-16-le")
        return len(line[: 2 * where["character"]].decode("utf-16-le"))

    place = {
        "path": path, "line": start["line"] + 1, "column": column(start), "end_line": end["line"] + 1, "end_column": column(end),
    }  # fmt: skip
    return place


def marks_of_diagnostic(name, path, row):
    """Makes the marks of a diagnostic and of its other places."""
    kind = "failure" if row["message"].startswith("no plan: ") else "finding"
    text = row["message"].removeprefix("no plan: ").split("\n")[0]
    found = [told(name, place_of(name, path, row["range"]), kind, row["code"], text)]
    for other in row.get("relatedInformation") or () if kind == "finding" else ():
        elsewhere = other["location"]["uri"].rpartition("/")[2]
        place = place_of(name, elsewhere, other["location"]["range"])
        found.append(told(name, place, "related", row["code"], other["message"]))
    return found


def marks_of_finding(name, row):
    """Makes the marks of a finding and of its other places."""
    others = [told(name, other, "related", row["code"], other["message"]) for other in row["related"]]
    return [told(name, row, "finding", row["code"], row["headline"]), *others]


def marks_of_region(name, region):
    """Makes the mark of a region at its root."""
    return told(name, region["spans"][0], "region", f"{region['pattern']} {region['verdict']}")


def leaves(symbols):
    """Gives the symbols that hold no others, entries left out."""
    for symbol in symbols:
        yield from leaves(symbol["children"]) if symbol.get("children") else [symbol]


@pytest.mark.parametrize("name", NAMES)
def test_check_finds_what_is_marked(checked, name):
    found = []
    for target in checked[name]:
        if target["error"] is not None:
            error = target["error"]
            found.append(told(name, error, "failure", error["code"], error["message"]))
        for row in target["findings"]:
            found += marks_of_finding(name, row)
        found += [marks_of_region(name, region) for region in target["regions"] if region["spans"]]
    compare(found, wanted(name, "finding", "related", "failure", "region"))


@pytest.mark.parametrize("name", NAMES)
def test_the_editor_shows_what_is_marked(shared, written, name):
    uris = {path: shared.open(written / name / path) for path in scenarios.files(name)}
    found = []
    for path, uri in uris.items():
        shared.wait_for(lambda uri=uri: settled(shared, uri))
        for row in (shared.diagnostics(uri) or {"diagnostics": []})["diagnostics"]:
            found += marks_of_diagnostic(name, path, row)
    regions = set()
    for path, uri in uris.items():
        hints = shared.request("textDocument/inlayHint", {**at(uri), "range": span(0, 0, 999, 0)})
        found += [Mark(path, hint["position"]["line"] + 1, "hint", hint["label"]) for hint in hints]
        for symbol in leaves(shared.request("textDocument/documentSymbol", at(uri))):
            verdict = re.sub(r" x\d+$", "", symbol.get("detail") or "").replace(" ", "_")
            regions.add(told(name, place_of(name, path, symbol["range"]), "region", verdict))
    for uri in uris.values():
        shared.notify("textDocument/didClose", at(uri))
    compare(found, wanted(name, "finding", "related", "failure", "hint"))
    marked = {replace(mark, what=mark.what.split()[1]) for mark in wanted(name, "region")}
    called = {(mark.path, mark.line) for mark in wanted(name, "hint")}  # a helper's region stands at its call as well
    assert marked <= regions
    assert all((mark.path, mark.line) in called for mark in regions - marked if mark.what in VERDICTS)


def settled(client, uri):
    """Says whether no plan of a buffer is on its way."""
    status = client.request("workspace/executeCommand", {"command": "topos.status"})
    return all(file["state"] not in ("waiting", "tracing") for file in status["files"])


@pytest.mark.parametrize("name", NAMES)
def test_the_document_holds_what_is_marked(documents, name):
    plans, comments, errors = documents[name]
    found = [told(name, error, "failure", error["code"], error["message"]) for error in errors]
    for document in plans:
        found += [marks_of_region(name, region) for region in document["regions"]]
        for row in suppress(document["findings"], comments).findings:
            found += marks_of_finding(name, row)
    only_of_files = [mark for mark in wanted(name, "finding") if mark.what == "TP601"]  # comments are no part of a plan
    compare([*found, *only_of_files], wanted(name, "finding", "related", "failure", "region"))
