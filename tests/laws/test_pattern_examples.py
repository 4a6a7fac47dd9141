"""Every pattern's examples match and compute what was recorded; its counterexamples say why they do not."""

from __future__ import annotations

import pytest

from tests.core.patterns.check import agrees, check_not, searched
from topos_core.matching.catalog import patterns

PATTERNS = list(patterns().values())


@pytest.mark.parametrize(
    ("pattern", "example"),
    [(p, e) for p in PATTERNS for e in p.examples],
    ids=lambda v: str(getattr(v, "identifier", getattr(v, "name", v))),
)
def test_an_example_matches_and_computes_what_was_recorded(pattern, example):
    tape, pool = searched(example.function, example.specs)
    found = [match for match in pool.matches if match.pattern == pattern.identifier]
    assert found
    for match in found:
        agrees(tape, match)
    assert [m.sentence for m in pool.near_misses] == []


@pytest.mark.parametrize(
    ("pattern", "example"),
    [(p, e) for p in PATTERNS for e in p.counterexamples],
    ids=lambda v: str(getattr(v, "identifier", getattr(v, "name", v))),
)
def test_a_counterexample_is_refused_with_its_code(pattern, example):
    check_not(pattern.identifier, example.function, example.specs, example.code)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.identifier)
def test_the_documentation_has_its_headings(pattern):
    for heading in ("Recognises", "Why it pays", "Declines when", "Not recognised", "Source"):
        assert f"\n{heading}\n" in pattern.documentation
