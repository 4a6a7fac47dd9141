"""Every match of every pattern's examples and of the shipped examples is proved equal to the recorded ops."""

from __future__ import annotations

from pathlib import Path

import pytest

import topos_core as tp
from tests.laws.respelling import WRITERS
from tests.laws.test_respelling import found
from topos_core.matching.catalog import patterns
from topos_core.matching.certificate import certify
from topos_core.matching.search import search
from topos_core.recording.trace import trace
from topos_core.session import entries
from topos_core.tape.tape import Tape

EXAMPLES = Path(__file__).parents[2] / "examples"


def unproved(tape: Tape) -> list[str]:
    """Lists the matches of a tape whose algebra is not proved, with the reason."""
    answers = [(match.id, certify(tape, match)) for match in search(tape, patterns().values()).matches]
    return [f"{name}: {one.answer}, {one.reason}" for name, one in answers if one.answer != "true"]


@pytest.mark.parametrize("pattern", patterns().values(), ids=lambda pattern: pattern.identifier)
def test_every_match_of_a_patterns_examples_is_proved(pattern):
    assert pattern.evaluate is not None
    for example in (*pattern.examples, *pattern.counterexamples):
        assert unproved(trace(example.function, **example.specs)) == [], example.name


def shipped() -> list[str]:
    """Lists the targets of the shipped examples."""
    marks = ((path, entries.find(path.read_text(), str(path))) for path in sorted(EXAMPLES.glob("*.py")))
    return [f"{path.name}:{entry.name}" for path, found in marks for entry in found.entries]


LARGE = "transformer_block.py:block"
"""One element of its attention block depends on every element of the sequence, through three products."""


@pytest.mark.parametrize("target", [target for target in shipped() if target != LARGE])
def test_every_match_of_a_shipped_example_is_proved(target):
    assert unproved(tp.load(f"{EXAMPLES}/{target}")) == []


@pytest.mark.conformance
@pytest.mark.timeout(600)
def test_a_match_too_large_to_pull_says_so_and_the_rest_is_proved():
    (line,) = unproved(tp.load(f"{EXAMPLES}/{LARGE}"))
    assert line.startswith("multi_head_attention@")
    assert "one element depends on too many others" in line


def test_of_the_largest_shipped_example_all_but_its_attention_block_is_proved():
    tape = tp.load(f"{EXAMPLES}/{LARGE}")
    found = search(tape, patterns().values()).matches
    parts = [match for match in found if match.pattern != "multi_head_attention"]
    assert len(parts) == len(found) - 1
    assert [match.id for match in parts if certify(tape, match).answer != "true"] == []


@pytest.mark.parametrize("identifier", WRITERS)
def test_every_match_of_random_spellings_is_proved(identifier):
    for seed in range(5000, 5006):
        tape, _ = found(WRITERS[identifier](identifier, seed))
        assert unproved(tape) == [], seed
