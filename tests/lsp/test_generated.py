import os
import stat
import subprocess
import sys

from tests.lsp.client import ROOT

START = """
import builtins
compiled, real = [], builtins.compile
from topos_lsp import generated, serving
generated.compile = lambda script, *rest: compiled.append(script) or real(script, *rest)
serving._server()
print(len(compiled))
"""


def start(cache):
    """Starts a server's classes and gives how many methods had to be compiled."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    ran = subprocess.run([sys.executable, "-c", START], cwd=ROOT, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    return int(ran.stdout)


def test_a_later_start_compiles_no_method_of_the_protocol(tmp_path):
    assert start(tmp_path) > 500
    (kept,) = (tmp_path / "topos").glob("protocol-*.marshal")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert start(tmp_path) == 0


def test_kept_code_that_is_damaged_is_made_again(tmp_path):
    full = start(tmp_path)
    (kept,) = (tmp_path / "topos").glob("protocol-*.marshal")
    for damage in (b"", b"nonsense", kept.read_bytes()[:-100]):
        kept.write_bytes(damage)
        assert start(tmp_path) == full
    assert start(tmp_path) == 0


def test_kept_code_that_others_may_write_is_not_taken(tmp_path):
    full = start(tmp_path)
    (kept,) = (tmp_path / "topos").glob("protocol-*.marshal")
    kept.chmod(0o666)
    assert start(tmp_path) == full
    (tmp_path / "topos").chmod(0o777)
    assert start(tmp_path) == full
