"""The user's settings and trust list are read from the user's folder alone, and strictly."""

import os

import pytest

from topos_core.errors import ConfigurationError
from topos_core.session.settings import Settings, distrust, is_trusted, read_settings, trust, trusted_folders


@pytest.fixture
def environment(tmp_path):
    (tmp_path / "topos").mkdir()
    return {"XDG_CONFIG_HOME": str(tmp_path)}


def check(environment, text, words):
    with open(os.path.join(environment["XDG_CONFIG_HOME"], "topos", "settings.toml"), "w") as file:
        file.write(text)
    with pytest.raises(ConfigurationError) as caught:
        read_settings(environment)
    assert caught.value.code == "TP501"
    assert words in caught.value.message


def test_settings_default_where_there_is_no_file(environment):
    assert read_settings(environment) == Settings()


def test_settings_are_read(environment, tmp_path):
    text = 'interpreter = "/opt/python"\nseconds = 5\nmemory = "2 GiB"\nnetwork = true\nfork = false\n'
    (tmp_path / "topos/settings.toml").write_text(text)
    assert read_settings(environment) == Settings("/opt/python", 5.0, 2**31, network=True, fork=False)


WRONG = {
    "a misspelt key": ("interpreterr = '/x'\n", "did you mean 'interpreter'"),
    "a relative interpreter": ("interpreter = 'python3'\n", "absolute path"),
    "no time": ("seconds = -1\n", "above 0"),
    "no truth": ("network = 1\n", "true or false"),
    "no TOML": ("x\n", "not TOML"),
}


@pytest.mark.parametrize(("text", "words"), WRONG.values(), ids=WRONG.keys())
def test_what_cannot_be_used_is_told(environment, text, words):
    check(environment, text, words)


def test_trust_covers_what_lies_below_a_folder_and_nothing_beside_it(environment, tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    assert not is_trusted(str(project), environment)
    trust(str(project), environment)
    assert is_trusted(str(project), environment)
    assert is_trusted(str(project / "a/model.py"), environment)
    assert not is_trusted(str(tmp_path / "project-of-others/model.py"), environment)
    distrust(str(project), environment)
    assert not is_trusted(str(project), environment)


def test_trust_follows_symlinks_out_of_a_trusted_folder(environment, tmp_path):
    project, outside = tmp_path / "project", tmp_path / "outside"
    project.mkdir()
    outside.mkdir()
    (project / "link").symlink_to(outside)
    trust(str(project), environment)
    assert not is_trusted(str(project / "link/model.py"), environment)


def test_a_list_that_others_may_write_is_refused(environment, tmp_path):
    trust(str(tmp_path), environment)
    os.chmod(tmp_path / "topos/trusted", 0o666)
    with pytest.raises(ConfigurationError, match="written by others"):
        trusted_folders(environment)
