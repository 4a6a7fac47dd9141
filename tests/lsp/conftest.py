import shutil

import pytest

from tests.lsp.client import ROOT, Client

TRUSTED = {"untrustedWorkspace": False}


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
