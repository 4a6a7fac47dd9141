"""Roots, targets and marked files."""

import os

import pytest

from topos_core.errors import ConfigurationError
from topos_core.session.configuration import Configuration
from topos_core.session.settings import Settings
from topos_core.session.workspace import Target, Workspace, find_root, marked_files, open_workspace, parse_target

MARKED = "import topos_core as tp\n@tp.model(x=tp.f32[2])\ndef f(x): ...\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text("[tool.topos.entries]\n'models/net.py:Net' = 'f32[1]'\n")
    (tmp_path / "models").mkdir()
    (tmp_path / "models/net.py").write_text(MARKED)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(text, name, line, column=None):
    assert parse_target(text, place=True) == Target(os.path.abspath("models/net.py"), name, line, column)


def test_targets_have_a_path_a_name_and_a_line(project):
    check("models/net.py", None, None)
    check("models/net.py:Net", "Net", None)
    check("models/net.py:Net.forward", "Net.forward", None)
    check("models/net.py:12", None, 12)
    check("models/net.py:Net:12", "Net", 12)
    check("models/net.py:12:5", None, 12, 5)
    check("models/net.py:Net:12:5", "Net", 12, 5)


def test_a_file_with_a_colon_in_its_name_is_found(project):
    (project / "a:b.py").write_text("")
    assert parse_target("a:b.py").name is None
    assert parse_target("a:b.py:f").name == "f"


@pytest.mark.parametrize("text", ["nope.py", "nope.py:f", "models/net.py:a b", "models:f", "", ":", "models/net.py:"])
def test_what_is_no_target_is_told(project, text):
    with pytest.raises(ConfigurationError) as caught:
        parse_target(text)
    assert caught.value.code == "TP505"


def test_the_root_is_the_nearest_project_else_the_working_directory_else_the_files_folder(project, tmp_path_factory):
    assert find_root("models/net.py") == str(project)
    bare = tmp_path_factory.mktemp("bare")
    (bare / "deep").mkdir()
    os.chdir(bare)
    assert find_root("deep/model.py") == str(bare)
    os.chdir(project)
    assert find_root(str(bare / "deep/model.py")) == str(bare / "deep")


def test_entries_are_the_marked_and_the_configured_ones(project):
    assert open_workspace("models/net.py").entries("models/net.py") == {"f": None, "Net": "f32[1]"}


def test_folders_are_walked_for_marked_files_in_order(project):
    for name in ("b.py", "a.py", ".hidden/c.py", "env/x.py", "node_modules/d.py", "__pycache__/e.py", "old/f.py"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(MARKED)
    (project / "env/pyvenv.cfg").write_text("")
    (project / "plain.py").write_text("import numpy\n")
    (project / "prose.py").write_text("print 'topos is fine'\n")
    (project / "broken.py").write_text("import topos_core\ndef f(:\n")
    (project / "net.onnx").write_bytes(b"")
    (project / "loop").symlink_to(project)
    found = [os.path.relpath(path, project) for path in marked_files(str(project), ("old/*",))]
    assert found == ["a.py", "b.py", "broken.py", "net.onnx", "models/net.py"]


def test_a_limit_says_where_it_is_raised():
    own = Workspace("/project", Configuration(seconds=5.0), Settings(seconds=9.0)).limits()
    assert (own.seconds, own.seconds_in, own.memory_in) == (9.0, "your settings.toml", "[tool.topos]")
    project = Workspace("/project", Configuration(seconds=5.0), Settings(memory=2**30)).limits()
    assert (project.seconds, project.seconds_in, project.memory_in) == (5.0, "[tool.topos]", "your settings.toml")
