import shutil

import pytest

from tests.lsp.client import ROOT, Client

VOUCHED = {"untrustedWorkspace": False, "inlayHints": True}


@pytest.fixture
def start(tmp_path):
    """Starts servers whose user settings are the test's own, and ends them."""
    started = []

    def make(*arguments, **keywords):
        client = Client(tmp_path, *arguments, **keywords)
        started.append(client)
        return client

    yield make
    for client in started:
        client.close()


@pytest.fixture
def project(tmp_path):
    """Gives a folder with a project of its own."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    return folder


@pytest.fixture
def observed(project):
    """Gives the example whose observations block one region and keep another, in a project."""
    return shutil.copy(ROOT / "examples" / "observed.py", project / "observed.py")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Gives one server for a module's tests, with a project whose folder the editor vouches for."""
    home = tmp_path_factory.mktemp("home")
    folder = home / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    client = Client(home)
    client.initialize(folder, options={**VOUCHED, "debounceMs": 20})
    client.folder = folder
    yield client
    client.close()


@pytest.fixture
def opened(shared, request):
    """Opens a buffer under the test's own name, and closes it behind the test; gives a function of a text."""
    names = []

    def open_text(text, name=None):
        path = shared.folder / f"{name or request.node.name.partition('[')[0]}.py"
        names.append(shared.open(path, text))
        return names[-1]

    yield open_text
    for name in names:
        shared.notify("textDocument/didClose", {"textDocument": {"uri": name}})
