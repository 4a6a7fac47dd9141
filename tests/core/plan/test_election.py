from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest

from topos_core.plan.election import (
    EXACT,
    Candidate,
    Elector,
    by_claim,
    components,
    solve_exactly,
    solve_greedily,
    touched,
)

# name: (claims, weight), with root = the largest claim, rank = the place in the case, or given as (.., root, rank, last)
Pool = dict[str, tuple]


def candidates(pool: Pool) -> list[Candidate]:
    made = []
    for number, (claims, weight, *rest) in enumerate(pool.values()):
        root, rank, last = (*rest, *(max(claims), number, False)[len(rest) :])
        made.append(Candidate(number, frozenset(claims), weight, root, rank, last))
    return made


def no_cycle(picks: frozenset[int]) -> Sequence[int]:
    return ()


def check(pool: Pool, expected: set[str]) -> Elector:
    """Elects the pool and compares the names of the picks."""
    elector = Elector()
    names = list(pool)
    outcome = elector.elect(candidates(pool), no_cycle)
    assert {names[i] for i in outcome.picks} == expected
    assert not outcome.refused
    return elector


CASES: dict[str, tuple[Pool, set[str]]] = {
    "nothing to elect": ({}, set()),
    "one that pays is taken": ({"a": ({1}, 5)}, {"a"}),
    "one that saves nothing is not": ({"a": ({1}, 0)}, set()),
    "one that saves the least is": ({"a": ({1}, 1)}, {"a"}),
    "one that loses is not": ({"a": ({1}, -1)}, set()),
    "disjoint ones are all taken": ({"a": ({1}, 5), "b": ({2}, 1)}, {"a", "b"}),
    "of two that overlap the greater benefit wins": ({"small": ({1}, 4), "large": ({1, 2}, 5)}, {"large"}),
    "two small ones beat a larger one between them": (
        {"left": ({1, 2}, 4), "middle": ({2, 3}, 7), "right": ({3, 4}, 4)},
        {"left", "right"},
    ),
    "a larger one beats two small ones that save less": (
        {"left": ({1, 2}, 3), "middle": ({2, 3}, 7), "right": ({3, 4}, 3)},
        {"middle"},
    ),
    "equal totals go to tape order": (
        {"late": ({2, 3}, 5), "early": ({1, 2}, 5)},
        {"early"},
    ),
    "equal totals of two and one go to the earliest root": (
        {"late": ({2, 3}, 6), "early": ({1, 2}, 3), "other": ({3, 4}, 3)},
        {"early", "other"},
    ),
    "on equal claims the identifier listed earlier wins whatever it saves": (
        {"earlier": ({1, 2}, 3, 2, 0), "later": ({1, 2}, 9, 2, 1)},
        {"earlier"},
    ),
    "on equal claims an earlier identifier that does not pay does not stand": (
        {"earlier": ({1, 2}, 0, 2, 0), "later": ({1, 2}, 9, 2, 1)},
        {"later"},
    ),
    "the last patterns get what the others leave": (
        {"matmul": ({1}, 50, 1, 9, True), "linear": ({1, 2}, 5)},
        {"linear"},
    ),
    "the last patterns are elected where nobody else claims": (
        {"matmul": ({3}, 2, 3, 9, True), "linear": ({1, 2}, 5), "chain": ({3, 4}, 1, 4, 9, True)},
        {"linear", "matmul"},
    ),
    "a last pattern takes what a loser leaves": (
        {"matmul": ({1}, 5, 1, 9, True), "linear": ({1, 2}, 0)},
        {"matmul"},
    ),
    "a pattern that overlaps a winner in part is out": (
        {"chain": ({2, 3, 4}, 8, 4, 9, True), "linear": ({1, 2}, 1)},
        {"linear"},
    ),
}


@pytest.mark.parametrize(("pool", "expected"), CASES.values(), ids=CASES.keys())
def test_election(pool: Pool, expected: set[str]) -> None:
    check(pool, expected)


def test_a_cycle_refuses_its_cheapest_pick_and_elects_again() -> None:
    pool: Pool = {"a": ({1, 5}, 10), "b": ({2, 6}, 4), "inner": ({2}, 1)}
    rounds = []

    def cycle(picks: frozenset[int]) -> Sequence[int]:
        rounds.append(set(picks))
        return (0, 1) if {0, 1} <= picks else ()

    outcome = Elector().elect(candidates(pool), cycle)
    assert rounds == [{0, 1}, {0, 2}]
    assert outcome.picks == {0, 2}
    assert outcome.refused == {1: 0}


def test_a_match_that_waits_for_itself_is_refused_because_of_itself() -> None:
    outcome = Elector().elect(candidates({"a": ({1}, 10)}), lambda picks: tuple(picks))
    assert outcome.picks == frozenset()
    assert outcome.refused == {0: 0}


def chain(length: int, rng: random.Random) -> list[Candidate]:
    """Candidates that overlap their neighbours only: one component."""
    return [Candidate(i, frozenset((i, i + 1)), rng.randint(1, 9), i + 1, i, False) for i in range(length)]


@pytest.mark.parametrize(("length", "exact"), [(EXACT - 1, True), (EXACT, True), (EXACT + 1, False)])
def test_a_component_is_solved_exactly_up_to_the_limit(length: int, exact: bool) -> None:
    # Weights 3 4 3 3 4 3 ...: greedy takes the fours and loses two threes for each.
    pool = [Candidate(i, frozenset((i, i + 1)), (3, 4, 3)[i % 3], i + 1, i, False) for i in range(length)]
    outcome = Elector().elect(pool, no_cycle)
    assert outcome.picks == frozenset(solve_exactly(pool) if exact else solve_greedily(pool))
    assert solve_exactly(pool) != solve_greedily(pool)


def test_the_exact_search_finds_the_best_of_all_subsets() -> None:
    rng = random.Random(3)
    for _ in range(300):
        pool = [
            Candidate(
                i, frozenset(rng.sample(range(8), rng.randint(1, 3))), rng.randint(1, 6), rng.randint(0, 8), i, False
            )
            for i in range(rng.randint(1, 8))
        ]
        pool.sort(key=lambda c: (c.root, c.rank))
        best = max(
            sum(c.weight for c in subset)
            for size in range(len(pool) + 1)
            for subset in itertools.combinations(pool, size)
            if sum(len(c.claims) for c in subset) == len(frozenset().union(*(c.claims for c in subset)))
        )
        picks = solve_exactly(pool)
        taken = [c for c in pool if c.number in picks]
        assert sum(c.weight for c in taken) == best
        assert sum(len(c.claims) for c in taken) == len(frozenset().union(*(c.claims for c in taken)))


def test_components_share_no_claim_and_keep_tape_order() -> None:
    pool = candidates({"a": ({1, 2}, 1), "b": ({5}, 1), "c": ({2, 3}, 1), "d": ({3, 4}, 1), "e": ({5, 6}, 1)})
    assert [[c.number for c in part] for part in components(pool)] == [[0, 2, 3], [1, 4]]


def test_what_a_candidate_touches_is_its_component() -> None:
    pool = candidates({"a": ({1, 2}, 1), "b": ({5}, 1), "c": ({2, 3}, 1), "d": ({3, 4}, 1), "e": ({5, 6}, 1)})
    assert [c.number for c in touched(by_claim(pool), [pool[3]], lambda c: True)] == [0, 2, 3]
    assert [c.number for c in touched(by_claim(pool), [pool[3]], lambda c: c.number != 2)] == [3]


def test_a_second_election_solves_only_what_changed() -> None:
    pool = candidates({f"{k}{n}": ({10 * n + k, 10 * n + k + 1}, 3 + k) for n in range(20) for k in range(3)})
    elector = Elector()
    everything = elector.elect(pool, no_cycle)
    assert elector.solved == 20
    without = [c for c in pool if c.number != 4]
    changed = elector.elect(without, no_cycle)
    assert elector.solved == 22  # the component fell into two
    assert everything.picks ^ changed.picks <= {3, 4, 5}


def test_gain_adds_up_the_picks() -> None:
    pool = candidates({"a": ({1}, 5), "b": ({1, 2}, 3), "c": ({4}, 2)})
    assert Elector().elect(pool, no_cycle).gain(pool) == 7
