"""Groups of ops that one loop nest can run."""

from __future__ import annotations

import random

import pytest

from topos_core.matching.group import Group, Kind, Node, group, kind_of
from topos_core.ops.catalog import definitions

E, B, I, R, M, O = (  # noqa: E741
    Kind.ELEMENTWISE,
    Kind.BROADCAST,
    Kind.INJECTIVE,
    Kind.REDUCTION,
    Kind.OUT_FUSABLE,
    Kind.OPAQUE,
)


def nodes(*rows: tuple) -> list[Node]:
    """Builds nodes from (kind, reads...) rows; the last one is read from outside, and so is a row that ends in "out"."""
    built = []
    for number, (kind, *reads) in enumerate(rows):
        external = "out" in reads or number == len(rows) - 1
        built.append(Node(kind, tuple(r for r in reads if r != "out"), external))
    return built


CASES = {
    "a chain is one group": ([(E,), (E, 0), (E, 1)], [[0, 1, 2]]),
    "a product takes its epilogue": ([(M,), (B,), (E, 0, 1), (E, 2)], [[0, 1, 2, 3]]),
    "a reduction ends what feeds it": ([(E,), (E, 0), (R, 1)], [[0, 1, 2]]),
    "what follows a reduction is a group of its own": ([(E,), (R, 0), (E, 1), (E, 2)], [[0, 1], [2, 3]]),
    "two products are two groups": ([(M,), (E, 0), (M, 1), (E, 2)], [[0, 1], [2, 3]]),
    "a diamond with one exit is one group": ([(E,), (E, 0), (E, 0), (E, 1, 2)], [[0, 1, 2, 3]]),
    "a diamond over a product is not": ([(E,), (M, 0), (E, 0), (E, 1, 2)], [[0], [1, 2, 3]]),
    "a value that is read from outside ends its group": ([(E,), (E, 0, "out"), (E, 1)], [[0, 1], [2]]),
    "an opaque op is alone": ([(E,), (O, 0), (E, 1)], [[0], [1], [2]]),
    "movement joins after the products": ([(I,), (M, 0), (E, 1), (I, 2), (E, 3)], [[0], [1, 2], [3, 4]]),
    "siblings that read one value merge": ([(O,), (E, 0, "out"), (E, 0, "out")], [[0], [1, 2]]),
    "siblings of which one leads to the other do not": ([(O,), (E, 0, "out"), (O, 1), (E, 2, 0)], [[0], [1], [2], [3]]),
    "a reduction merges with no sibling": ([(O,), (E, 0, "out"), (R, 0, "out")], [[0], [1], [2]]),
}


@pytest.mark.parametrize(("rows", "expected"), CASES.values(), ids=CASES.keys())
def test_grouping(rows: list[tuple], expected: list[list[int]]) -> None:
    assert [list(found.nodes) for found in group(nodes(*rows))] == expected


def test_a_group_is_called_by_its_most_demanding_op() -> None:
    assert group(nodes((M,), (E, 0))) == (Group((0, 1), Kind.OUT_FUSABLE),)


def test_every_op_of_the_catalogue_has_a_kind() -> None:
    for name, row in definitions().items():
        assert kind_of(name, row.kind) in Kind
    assert kind_of("broadcast", "movement") is Kind.BROADCAST
    assert kind_of("scatter_add", "lookup") is Kind.OPAQUE


def test_groups_of_random_graphs_have_an_order_and_hide_nothing() -> None:
    rng = random.Random(5)
    for _ in range(400):
        rows = []
        for number in range(rng.randint(1, 20)):
            reads = tuple(sorted({rng.randrange(number) for _ in range(rng.randint(0, 2))})) if number else ()
            rows.append(Node(rng.choice((E, E, B, I, R, M, O)), reads, rng.random() < 0.15))
        found = group(rows)
        of = {number: k for k, each in enumerate(found) for number in each.nodes}
        assert sorted(of) == list(range(len(rows)))
        # Contracted, the groups are still acyclic.
        waits = {k: {of[r] for n in each.nodes for r in rows[n].reads} - {k} for k, each in enumerate(found)}
        ready: set[int] = set()
        while len(ready) < len(found):
            free = {k for k in waits if k not in ready and waits[k] <= ready}
            assert free, "groups wait for each other"
            ready |= free
        # A group that is more than siblings holds one product or reduction at most.
        for each in found:
            heavy = [n for n in each.nodes if rows[n].kind in (R, M)]
            assert len(heavy) <= 1 or all(rows[n].kind is not O for n in each.nodes)
            assert len(each.nodes) == 1 or all(rows[n].kind is not O for n in each.nodes)
