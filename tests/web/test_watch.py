from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from topos_web.watch import Watcher, stamps

PATIENCE_SECONDS = 20


def watch(files: list[str], changed: threading.Event) -> Watcher:
    return Watcher(lambda: files, lambda saved: changed.set())


def test_a_save_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text("a")
    changed = threading.Event()
    watcher = watch([str(file)], changed)
    watcher.start()
    try:
        file.write_text("bb")
        assert changed.wait(PATIENCE_SECONDS)
    finally:
        watcher.stop()


def test_a_file_that_appears_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    changed = threading.Event()
    watcher = watch([str(file)], changed)
    watcher.start()
    try:
        file.write_text("a")
        assert changed.wait(PATIENCE_SECONDS)
    finally:
        watcher.stop()


def test_a_missing_file_has_no_stamp(tmp_path: Path) -> None:
    assert stamps([str(tmp_path / "none.py")]) == {str(tmp_path / "none.py"): None}


def test_a_file_named_later_does_not_ask_for_a_trace(tmp_path: Path) -> None:
    first, second = tmp_path / "a.py", tmp_path / "b.py"
    first.write_text("a")
    second.write_text("b")
    files, calls = [str(first)], []
    done = threading.Event()

    def changed(saved: Sequence[str]) -> None:
        calls.append(list(files))
        done.set()

    watcher = Watcher(lambda: files, changed)
    watcher.start()
    try:
        files.append(str(second))
        second.touch()
        first.write_text("aa")
        assert done.wait(PATIENCE_SECONDS)
    finally:
        watcher.stop()
    assert len(calls) == 1


def test_the_files_that_were_saved_are_named(tmp_path: Path) -> None:
    one, other = tmp_path / "a.py", tmp_path / "b.py"
    one.write_text("a")
    other.write_text("b")
    named: list[str] = []
    done = threading.Event()

    def changed(saved: Sequence[str]) -> None:
        named.extend(saved)
        done.set()

    watcher = Watcher(lambda: [str(one), str(other)], changed)
    watcher.start()
    try:
        other.write_text("bb")
        assert done.wait(PATIENCE_SECONDS)
    finally:
        watcher.stop()
    assert named == [str(other)]
