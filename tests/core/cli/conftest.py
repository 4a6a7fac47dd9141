"""One project folder and one warm process for the tests of a file: starting a process for every command would take minutes."""

import shutil

import pytest

from topos_core.session import projects
from topos_core.session.client import Agent


@pytest.fixture(scope="module")
def agents():
    """Keeps agents by what they were made with, and closes them with the last test of the file."""
    kept = {}
    yield kept
    for agent in kept.values():
        agent.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("project")


@pytest.fixture
def empty_project(folder, agents, monkeypatch):
    """Empties the folder, makes it the working directory, and has commands use the kept agents."""

    class Kept(Agent):
        def __new__(cls, root, *, interpreter, limits):
            key = (root, interpreter, limits)
            if key not in agents:
                agents[key] = Agent(root, interpreter=interpreter, limits=limits)
            return agents[key]

    monkeypatch.setattr(projects, "Agent", Kept)
    monkeypatch.setattr(projects.Projects, "close", lambda self: None)
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    monkeypatch.chdir(folder)
    return folder
