"""Every situation of the corpus has a test here."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def with_tests() -> set[int]:
    found: set[int] = set()
    for path in HERE.glob("test_*.py"):
        for numbers in re.findall(r"^@case\(([\d, ]+)\)", path.read_text(), re.MULTILINE):
            found |= {int(number) for number in numbers.split(",")}
    return found


def corpus() -> Path:
    folder = os.environ.get("TOPOS_CORPUS", str(HERE.parents[2].parent / "shared" / "corpus"))
    return Path(folder) / "fusion-cases.md"


def test_every_situation_of_the_corpus_has_a_test():
    if not corpus().is_file():
        pytest.skip(f"left out: no corpus at {corpus()}; TOPOS_CORPUS names its folder")
    rows = {int(number) for number in re.findall(r"^\| (\d+) \|", corpus().read_text(encoding="utf-8"), re.MULTILINE)}
    assert rows
    assert rows - with_tests() == set()
    assert with_tests() - rows == set()
