"""Every term's examples match exactly once and compute what was recorded; its counterexamples say why they do not."""

from __future__ import annotations

import pytest

from tests.core.patterns.check import agrees, check_not, match_at_result, searched
from topos_core.matching.catalog import patterns

TERMS = [pattern for pattern in patterns().values() if pattern.term is not None]


@pytest.mark.parametrize(
    ("pattern", "example"),
    [(p, e) for p in TERMS for e in p.examples],
    ids=lambda v: str(getattr(v, "identifier", getattr(v, "name", v))),
)
def test_an_example_matches_at_its_result(pattern, example):
    tape, pool = searched(example.function, example.specs)
    match = match_at_result(tape, pool, pattern.identifier)
    assert match is not None
    agrees(tape, match)
    assert [m.sentence for m in pool.near_misses] == []


@pytest.mark.parametrize(
    ("pattern", "example"),
    [(p, e) for p in TERMS for e in p.counterexamples],
    ids=lambda v: str(getattr(v, "identifier", getattr(v, "name", v))),
)
def test_a_counterexample_is_refused_with_its_code(pattern, example):
    check_not(pattern.identifier, example.function, example.specs, example.code)


@pytest.mark.parametrize("pattern", TERMS, ids=lambda p: p.identifier)
def test_the_documentation_has_its_headings(pattern):
    for heading in ("Recognises", "Why it pays", "Declines when", "Not recognised", "Source"):
        assert f"\n{heading}\n" in pattern.documentation
