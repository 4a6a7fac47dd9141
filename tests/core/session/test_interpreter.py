"""The interpreter that runs user code is found by one order, and the finding says by which rule."""

import sys

import pytest

from topos_core.errors import ConfigurationError
from topos_core.session.interpreter import find_interpreter
from topos_core.session.settings import Settings


def make_environment(folder, *, numpy=True, version="3.12.1"):
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/python").write_text("")
    (folder / "bin/python").chmod(0o755)
    (folder / "pyvenv.cfg").write_text(f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {version}\n")
    packages = folder / "lib/python3.12/site-packages"
    packages.mkdir(parents=True)
    if numpy:
        (packages / "numpy").mkdir()
    return str(folder / "bin/python")


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project/models"
    folder.mkdir(parents=True)
    return folder


def check(folder, expected, origin, *, settings=None, trusted=True, environment=None):
    found = find_interpreter(str(folder), settings or Settings(), trusted=trusted, environment=environment or {})
    assert found.path == expected
    assert origin in found.origin
    return found


def test_the_users_setting_comes_first(project):
    make_environment(project / ".venv")
    check(project, sys.executable, "settings", settings=Settings(interpreter=sys.executable))


def test_the_nearest_environment_of_a_trusted_folder_comes_next(project):
    make_environment(project.parent / ".venv")
    check(project, make_environment(project / ".venv"), ".venv")


def test_an_environment_further_up_is_found(project):
    check(project, make_environment(project.parent / ".venv"), ".venv")


def test_an_untrusted_folder_brings_no_interpreter(project):
    make_environment(project / ".venv")
    check(project, sys.executable, "runs topos", trusted=False)


def test_the_active_environment_comes_before_our_own_interpreter(project, tmp_path):
    active = make_environment(tmp_path / "active")
    check(project, active, "VIRTUAL_ENV", environment={"VIRTUAL_ENV": str(tmp_path / "active")})


@pytest.mark.parametrize(
    ("arguments", "why"),
    [({"numpy": False}, "no NumPy"), ({"version": "3.9.2"}, "Python 3.9")],
    ids=["numpy", "version"],
)
def test_an_environment_that_cannot_serve_is_skipped_with_its_reason(project, arguments, why):
    make_environment(project / ".venv", **arguments)
    found = check(project, sys.executable, "runs topos")
    assert why in found.skipped[0]


def test_an_environment_that_leads_nowhere_is_skipped_with_its_reason(project):
    (project / ".venv").symlink_to(project / "gone")
    found = check(project, sys.executable, "runs topos")
    assert found.skipped == (f"{project}/.venv has no Python",)


def test_a_setting_that_is_no_executable_is_told(project):
    with pytest.raises(ConfigurationError, match="no executable file"):
        find_interpreter(str(project), Settings(interpreter="/nowhere/python"), trusted=True, environment={})
