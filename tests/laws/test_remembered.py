"""Functions that look alike are tried once, and that changes nothing: match for match, near miss for near miss."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from benchmarks.networks import NETWORKS, recorded
from tests.laws.repeating import layered
from tests.laws.respelling import CHANGES, WRITERS
from topos_core.matching import remembered, term
from topos_core.matching.answers import index_of
from topos_core.matching.catalog import patterns
from topos_core.matching.core import Keys
from topos_core.matching.search import search
from topos_core.matching.term import Index, Named, recognise
from topos_core.recording.trace import trace
from topos_core.tape.tape import Tape

SEEDS = 12
MANY = 600


def check(tape: Tape) -> None:
    """Searches with and without memory."""
    chosen = tuple(patterns().values())
    other = search(tape, chosen, repeats=False, remember=False)
    for _ in range(3):  # tried, tried and kept, remembered
        mine = search(tape, chosen, repeats=False)
        assert repr(mine.matches) == repr(other.matches)  # a number may be NaN
        assert repr(mine.near_misses) == repr(other.near_misses)
        assert mine.effort == other.effort


def respelled(seeds: range) -> Iterator[Tape]:
    """Records every meaning and every change of it in random spellings."""
    for identifier, write in WRITERS.items():
        for change in (None, *CHANGES[identifier]):
            for seed in seeds:
                program = write(identifier, seed, change)
                yield trace(program.function, **program.specs)


def made_per_op(count: int) -> float:
    """Counts the tries that were made, not remembered, of blocks that differ in their extents and numbers."""

    def program(x: Any, **w: Any) -> Any:
        for k in range(count):
            x = np.tanh(x @ w[f"w{k}"])
            centred = x - x.mean(-1, keepdims=True)
            x = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + (k + 1) * 1e-6)
            heads = x.reshape(2, 3, k + 4, 2).transpose(0, 2, 1, 3)
            scores = heads @ heads.swapaxes(-1, -2) * (k + 4) ** -0.5
            powers = np.exp(scores - scores.max(-1, keepdims=True))
            x = (powers / powers.sum(-1, keepdims=True) @ heads).transpose(0, 2, 1, 3).reshape(2, 3, 2 * k + 8)
        return x

    tape = trace(program, x="f32[2,3,6]", **{f"w{k}": f"f32[{2 * k + 6},{2 * k + 8}]" for k in range(count)})
    index = Index([Named(p.identifier, p.term) for p in patterns().values() if p.term is not None])
    found = recognise(Keys(tape), index)
    assert found.made <= found.tries
    return found.made / len(tape.ops)


def test_random_spellings_are_found_as_if_each_were_tried():
    with np.errstate(all="ignore"):
        for tape in respelled(range(2)):
            check(tape)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_are_found_as_if_each_function_were_tried(name):
    check(recorded(name, 1500, repeats=False))


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_are_found_so_where_every_try_is_kept_at_once(name, monkeypatch):
    monkeypatch.setattr(term, "MANY", 0)
    index_of.cache_clear()
    check(recorded(name, 1500, repeats=False))


def test_random_spellings_are_found_so_where_every_try_is_kept_at_once(monkeypatch):
    monkeypatch.setattr(term, "MANY", 0)
    index_of.cache_clear()
    with np.errstate(all="ignore"):
        for tape in respelled(range(2, 3)):
            check(tape)


def test_random_layers_are_found_as_if_each_function_were_tried():
    for seed in range(SEEDS):
        check(layered(seed))


def mixed(extent: int) -> Tape:
    """Records an attention whose weights are divided by their sum along another axis than that of their maximum."""

    def program(q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.swapaxes(-1, -2)
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return powers / powers.sum(-2, keepdims=True) @ v

    return trace(program, **dict.fromkeys("qkv", f"f32[2,{extent},3]"))


def test_what_is_remembered_of_a_failure_is_told_with_its_own_extents():
    for extent in (4, 5, 6, 7):
        check(mixed(extent))
        (miss,) = search(mixed(extent), patterns().values()).near_misses
        assert f"(extents [{extent}])" in miss.sentence


def test_examples_are_found_as_if_each_function_were_tried():
    for pattern in patterns().values():
        for example in pattern.examples:
            check(trace(example.function, **example.specs))


def test_what_is_kept_has_a_bound_and_without_room_every_function_is_tried(monkeypatch):
    monkeypatch.setattr(remembered, "MOST", 30)
    index_of.cache_clear()
    check(recorded("transformer", 300, repeats=False))
    terms = {p.identifier: p.term for p in patterns().values() if p.term is not None}
    memory = index_of(tuple(terms.items())).memory
    assert 15 < memory.kept <= 30
    memory.trim()
    assert memory.kept == 0
    index_of.cache_clear()


def test_what_differs_in_extents_and_numbers_alone_is_tried_once():
    assert made_per_op(40) < 0.4 * made_per_op(10)


@pytest.mark.conformance
@pytest.mark.timeout(3600)
def test_many_random_programs_are_found_as_if_each_function_were_tried():
    with np.errstate(all="ignore"):
        for tape in respelled(range(100, 200)):
            check(tape)
        for seed in range(MANY):
            check(layered(seed))
