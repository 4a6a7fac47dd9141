"""`[tool.topos]` is read strictly, and its errors stand at the key."""

import pytest

from topos_core.errors import ConfigurationError
from topos_core.session.configuration import Configuration, read_configuration


def check(folder, text, words, line):
    (folder / "pyproject.toml").write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        read_configuration(str(folder))
    assert caught.value.code == "TP501"
    assert words in caught.value.message
    assert caught.value.span.line == line


def test_a_folder_without_a_file_has_an_empty_configuration(tmp_path):
    assert read_configuration(str(tmp_path)) == Configuration()


def test_a_project_without_the_table_has_an_empty_configuration(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert read_configuration(str(tmp_path)) == Configuration(file=str(tmp_path / "pyproject.toml"))


def test_every_key_is_read(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        """
[tool.topos]
consumer = "stablehlo"
fidelity = "exact"
machine = "reference"
cost = "always"
dialect = "xla"
off = ["linear"]
fail-on = ["TP101", "TP3xx"]
exclude = ["old/*"]
seconds = 120
memory = "1.5 GiB"
[tool.topos.entries]
"models/net.py:Net" = "f32[1,3,8,8]"
[tool.topos.dims]
N = 4
"""
    )
    found = read_configuration(str(tmp_path))
    assert (found.consumer, found.fidelity, found.cost, found.dialect) == ("stablehlo", "exact", "always", "xla")
    assert (found.off, found.fail_on, found.exclude) == (("linear",), ("TP101", "TP3xx"), ("old/*",))
    assert (found.seconds, found.memory) == (120.0, 3 * 2**29)
    assert found.entries == {"models/net.py:Net": "f32[1,3,8,8]"}
    assert found.dims == {"N": 4}


WRONG = {
    "no TOML": ("[tool.topos\n", "not TOML", 1),
    "a misspelt key": ("[tool.topos]\n\nconsumr = 'home'\n", "did you mean 'consumer'", 3),
    "an executable": ("[tool.topos]\ninterpreter = '/bin/sh'\n", "no key 'interpreter'", 2),
    "another choice": ("[tool.topos]\ncost = 'model'\nconsumer = 'gpu'\n", "'gpu', expected one of home, stablehlo", 3),
    "another kind": ("[tool.topos]\noff = 'linear'\n", "a list of texts", 2),
    "a code of no form": ("[tool.topos]\nfail-on = ['101']\n", "not '101'", 2),
    "no time": ("[tool.topos]\nseconds = 0\n", "above 0", 2),
    "no size": ("[tool.topos]\nmemory = 'much'\n", "4 GiB", 2),
    "a target of no form": ("[tool.topos.entries]\n'net.py' = 'f32[1]'\n", "path/model.py:name", 2),
    "an extent that is none": (
        "[tool.topos.dims]\nN = 4\nM = 'many'\n",
        "an extent for M, a whole number, not 'many'",
        3,
    ),
    "no table": ("[tool]\ntopos = 3\n", "expected a table", 2),
}


@pytest.mark.parametrize(("text", "words", "line"), WRONG.values(), ids=WRONG.keys())
def test_what_cannot_be_used_is_told_with_its_line(tmp_path, text, words, line):
    check(tmp_path, text, words, line)
