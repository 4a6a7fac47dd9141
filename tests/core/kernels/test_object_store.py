import ast
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from topos_core.kernels import library
from topos_core.kernels.host import describe, host
from topos_core.kernels.library import load_or_compile
from topos_core.kernels.object_store import ObjectStore, private_folder

PACKAGE = Path(library.__file__).parents[1]


def test_what_is_kept_comes_back_and_the_folder_is_the_users_alone(tmp_path):
    folder = private_folder(tmp_path / "kernels")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    store = ObjectStore(folder)
    assert store.get("a") is None
    store.put("a", b"code")
    assert store.get("a") == b"code"
    assert ObjectStore(folder).get("a") == b"code"


def test_a_changed_renamed_or_foreign_file_is_not_given(tmp_path):
    store = ObjectStore(private_folder(tmp_path / "one"))
    store.put("a", b"code")
    (store.folder / "b").write_bytes((store.folder / "a").read_bytes())
    assert store.get("b") is None
    other = ObjectStore(private_folder(tmp_path / "two"))
    other.put("other", b"")
    (other.folder / "a").write_bytes((store.folder / "a").read_bytes())
    assert other.get("a") is None
    sealed = bytearray((store.folder / "a").read_bytes())
    sealed[-1] ^= 1
    (store.folder / "a").write_bytes(sealed)
    assert store.get("a") is None


def test_a_folder_that_others_may_enter_or_that_is_a_link_is_not_used(tmp_path):
    open_folder = tmp_path / "open"
    open_folder.mkdir(mode=0o755)
    open_folder.chmod(0o755)
    assert private_folder(open_folder) is None
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert private_folder(tmp_path / "link") is None
    store = ObjectStore(None)
    store.put("a", b"code")
    assert store.get("a") is None


def test_a_kernel_is_compiled_once_and_loaded_afterwards(tmp_path):
    store = ObjectStore(private_folder(tmp_path / "kernels"))
    first = load_or_compile(store, "tile", ("f32", "1x1"), host())
    assert first.address
    second = load_or_compile(store, "tile", ("f32", "1x1"), host())
    assert (first.compiled, second.compiled) == (True, False)


def test_registers_and_lanes_follow_the_features():
    wide = frozenset({"avx512f", "avx512vl", "avx512dq", "avx512bw", "avx2", "fma"})
    assert describe("x86_64-linux", "x", "", wide).lanes("f32") == 16
    assert describe("x86_64-linux", "x", "", wide - {"avx512vl"}).lanes("f32") == 8
    assert describe("x86_64-linux", "x", "", frozenset({"sse2"})).lanes("f64") == 2
    assert describe("aarch64-linux", "x", "", frozenset({"neon"})).registers == 32


def test_a_store_that_cannot_be_written_keeps_nothing_and_fails_nobody(tmp_path, monkeypatch):
    store = ObjectStore(private_folder(tmp_path / "kernels"))
    store.put("a", b"code")

    def full(*given, **named):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, "replace", full)
        store.put("b", b"code")
    assert sorted(path.name for path in store.folder.iterdir()) == ["a", "key"]
    (store.folder / "key").unlink()
    with monkeypatch.context() as broken:
        broken.setattr(tempfile, "mkstemp", full)
        assert store.get("a") is None  # nothing says any more that it is ours
        store.put("a", b"code")
        made = load_or_compile(store, "tile", ("f32", "1x1"), host())
        assert made.address
    assert store.get("a") is None  # a new key does not fit old seals
    store.put("a", b"code")
    assert store.get("a") == b"code"


def test_processes_that_meet_in_one_folder_keep_and_read_whole_files(tmp_path):
    """Each writes and reads the same names; whatever is read is one of the things that were written."""
    script = """if True:
        import sys
        from pathlib import Path
        from topos_core.kernels.object_store import ObjectStore, private_folder
        store = ObjectStore(private_folder(Path(sys.argv[1])))
        own = sys.argv[2].encode() * 50000
        for _ in range(200):
            store.put("a", own)
            found = store.get("a")
            assert found is not None and len(found) == 50000 and len(set(found)) == 1, found
        """
    command = [sys.executable, "-c", script, str(tmp_path / "kernels")]
    home = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    children = [subprocess.Popen([*command, name], env=home) for name in "xyz"]
    assert [child.wait(120) for child in children] == [0, 0, 0]


@pytest.mark.parametrize(
    "changed",
    [
        "kernels/bodies/planes.py", "kernels/vocabulary/memory.py", "kernels/launch.py", "kernels/bodies/another.py",
        "ops/erf.py",
    ],
)  # fmt: skip
def test_code_of_another_generator_is_not_found(tmp_path, monkeypatch, changed):
    package = tmp_path / "topos_core"
    for folder in ("kernels", "ops", "matching"):
        shutil.copytree(PACKAGE / folder, package / folder)
    monkeypatch.setattr(library, "__file__", str(package / "kernels" / "library.py"))
    before = library._digest.__wrapped__(host())
    assert library._digest.__wrapped__(host()) == before
    with (package / changed).open("a") as file:
        file.write("# another one\n")
    assert library._digest.__wrapped__(host()) != before


def test_whatever_generators_import_of_ours_is_part_of_the_key():
    hashed = {path for source in library.SOURCES for path in PACKAGE.glob(source)}
    todo = [*PACKAGE.glob("kernels/bodies/*.py"), *PACKAGE.glob("kernels/vocabulary/*.py")]
    seen, beside = set(todo), set()
    while todo:
        for path in imported(todo.pop()):
            if path.parent != PACKAGE / "kernels":
                beside.add(path)
            elif path not in seen:
                seen.add(path)
                todo.append(path)
    assert PACKAGE / "ops" / "erf.py" in beside
    # a dtype's width in bytes has one meaning
    assert (seen | beside) - hashed <= {PACKAGE / "tape" / "type.py"}


def imported(path):
    """Gives the modules of ours that a module imports as it is loaded."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("topos_core."):
            for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                found = PACKAGE.parent.joinpath(*name.split(".")).with_suffix(".py")
                if found.exists():
                    yield found
