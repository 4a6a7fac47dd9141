"""Laws over every pattern: its examples match once, its counterexamples do not and say why, each match is evaluated."""

from __future__ import annotations

import pytest

from tests.core.matching.check import outermost
from topos_core.matching.catalog import patterns
from topos_core.matching.order import ORDER
from topos_core.matching.search import search
from topos_core.recording.trace import trace

HEADINGS = ("Recognises", "Why it pays", "Declines when", "Not recognised", "Source")


def cases(kind):
    """Lists what patterns that are no terms say of themselves; terms have a law of their own."""
    return [
        pytest.param(pattern, example, id=f"{pattern.identifier}: {example.name}")
        for pattern in patterns().values()
        for example in getattr(pattern, kind)
        if pattern.term is None
    ]


@pytest.mark.parametrize("pattern", patterns().values(), ids=lambda p: p.identifier)
def test_a_pattern_file_says_everything(pattern):
    at = [pattern.documentation.index(f"\n{heading}\n") for heading in HEADINGS]
    assert at == sorted(at)
    assert pattern.identifier in ORDER
    assert pattern.examples
    assert pattern.counterexamples


@pytest.mark.parametrize(("pattern", "example"), cases("examples"))
def test_an_example_matches_once(pattern, example):
    tape = trace(example.function, **example.specs)
    pool = search(tape, patterns().values())
    found = outermost([m for m in pool.matches if m.pattern == pattern.identifier])
    assert len(found) == 1
    work = pattern.work(tape, found[0])
    assert work.flops > 0
    assert work.bytes_written >= tape.type_of(found[0].root).bytes


@pytest.mark.parametrize(("pattern", "example"), cases("counterexamples"))
def test_a_counterexample_does_not_match_and_says_why(pattern, example):
    tape = trace(example.function, **example.specs)
    pool = search(tape, patterns().values())
    assert not [m for m in pool.matches if m.pattern == pattern.identifier]
    codes = [miss.code for miss in pool.near_misses if miss.pattern == pattern.identifier]
    assert codes == ([] if example.code is None else [example.code])
