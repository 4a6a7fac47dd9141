"""An input that is read backwards along an axis is an input like any other: what a pattern's examples match stays matched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from tests.support.commit import part_of
from topos_core.matching.catalog import patterns
from topos_core.matching.certificate import certify
from topos_core.matching.match import Match
from topos_core.matching.pattern import Example, Pattern
from topos_core.matching.search import search
from topos_core.recording.spec import parse_spec
from topos_core.recording.trace import trace
from topos_core.tape.tape import Tape

LOST = {
    ("depthwise_pointwise", "each with a bias and relu", "p"),
    ("window_reduce", "an average of f16 in f32", "x"),
}
"""Examples and inputs that are not found so: a pointwise kernel that is read backwards, and an image that is
cast behind its reversal."""


def reversed_along(function: Callable[..., Any], name: str, axis: int) -> Callable[..., Any]:
    """Reads one input backwards along one axis."""

    def program(**given: Any) -> Any:
        return function(**{**given, name: np.flip(given[name], axis)})

    return program


def at_result(pattern: str, tape: Tape) -> Match | None:
    """Gives the match of a pattern at a result."""
    pool = search(tape, patterns().values())
    return next((m for m in pool.matches if m.pattern == pattern and m.root in tape.results), None)


def ways(example: Example) -> Iterator[tuple[str, int]]:
    """Lists the axes along which inputs can be read backwards."""
    for name, text in example.specs.items():
        for axis, extent in enumerate(parse_spec(text).type.shape):
            if extent > 1:
                yield name, axis


@pytest.mark.parametrize("pattern", patterns().values(), ids=lambda pattern: pattern.identifier)
def test_what_reads_an_input_backwards_is_found_and_proved(pattern):
    """Of every second example, which the commit chooses."""
    check(pattern, pattern.examples[part_of(2) :: 2])


@pytest.mark.conformance
@pytest.mark.parametrize("pattern", patterns().values(), ids=lambda pattern: pattern.identifier)
def test_what_reads_an_input_of_any_example_backwards_is_found_and_proved(pattern):
    check(pattern, pattern.examples)


def check(pattern: Pattern, examples: Sequence[Example]) -> None:
    """Turns each input of examples along each of its axes."""
    lost = set()
    for example in examples:
        if at_result(pattern.identifier, trace(example.function, **example.specs)) is None:
            continue
        for name, axis in ways(example):
            tape = trace(reversed_along(example.function, name, axis), **example.specs)
            match = at_result(pattern.identifier, tape)
            if match is None:
                lost.add((pattern.identifier, example.name, name))
            else:
                certificate = certify(tape, match)
                assert certificate.answer == "true", (example.name, name, axis, certificate.reason)
    names = {example.name for example in examples}
    assert lost == {one for one in LOST if one[0] == pattern.identifier and one[1] in names}
