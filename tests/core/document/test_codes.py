from __future__ import annotations

import re

from topos_core.document.codes import CODES, WORDS, code_entry, markdown


def test_every_code_of_the_design_has_a_row() -> None:
    design = [
        "TP101",
        "TP102",
        "TP201",
        "TP202",
        "TP203",
        "TP204",
        "TP205",
        "TP206",
        "TP207",
        "TP208",
        "TP209",
        "TP301",
        "TP401",
        "TP501",
        "TP601",
        "TP701",
        "TP702",
    ]
    assert set(design) <= set(CODES)


def test_codes_and_words_are_unique_and_well_formed() -> None:
    assert len(WORDS) == len(CODES)
    for code, entry in CODES.items():
        assert re.fullmatch(r"TP\d{3}", code)
        assert code_entry(code) is entry
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", entry.word)
        assert entry.title
        assert entry.explanation.endswith(".")


def test_loudness_follows_the_design() -> None:
    shown = {code for code, entry in CODES.items() if entry.shown}
    assert {"TP101", "TP301", "TP401", "TP702"} <= shown
    assert not shown & {
        "TP102",
        "TP201",
        "TP202",
        "TP203",
        "TP204",
        "TP205",
        "TP206",
        "TP207",
        "TP208",
        "TP209",
        "TP701",
    }
    for code, entry in CODES.items():
        if code == "TP101" or code.startswith("TP4"):
            assert entry.severity == "information"
        if code in ("TP101", "TP301"):
            assert entry.sarif == "warning"
        elif code.startswith("TP4"):
            assert entry.sarif == "error"
    assert CODES["TP301"].severity == "warning"


def test_the_page_names_every_code_once() -> None:
    headings = re.findall(r"^## (TP\d{3})", markdown(), re.MULTILINE)
    assert headings == sorted(CODES)
