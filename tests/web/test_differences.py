from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import Any

from tests.web.documents import Builder, Document, convolution, decoder, norms
from topos_web.differences import MARKS, between


def chain(*ops: tuple[str, str]) -> Document:
    b = Builder("m.py", "def main(x):\n    return x\n", "m.py:main")
    value = b.op("input", [], "f32[2]", (1, "main(x)"), "x")
    for name, type_ in ops:
        value = b.op(name, [value], type_, (2, "return x"))
    return b.document([value])


def marks(diff: dict[str, Any]) -> list[tuple[str, str]]:
    graph = diff["graph"]
    return [(graph["names"][n], MARKS[m]) for n, m in zip(graph["ops"]["name"], diff["marks"], strict=True)]


def operands(diff: dict[str, Any]) -> list[list[int]]:
    flat = iter(diff["graph"]["ops"]["operands"])
    return [[next(flat) for _ in range(n)] for n in diff["graph"]["ops"]["arity"]]


def test_an_added_op_is_marked() -> None:
    diff = between(
        chain(("exp", "f32[2]"), ("neg", "f32[2]")), chain(("exp", "f32[2]"), ("abs", "f32[2]"), ("neg", "f32[2]"))
    )
    assert marks(diff) == [("input", "same"), ("exp", "same"), ("abs", "added"), ("neg", "same")]
    assert operands(diff) == [[], [0], [1], [2]]


def test_a_removed_op_stands_where_it_stood() -> None:
    diff = between(
        chain(("exp", "f32[2]"), ("abs", "f32[2]"), ("neg", "f32[2]")), chain(("exp", "f32[2]"), ("neg", "f32[2]"))
    )
    assert marks(diff) == [("input", "same"), ("exp", "same"), ("abs", "removed"), ("neg", "same")]
    assert operands(diff) == [[], [0], [1], [1]]
    assert diff["of_before"] == [0, 1, 2, 3]
    assert diff["of_after"] == [0, 1, 3]


def test_another_type_is_the_same_op_retyped() -> None:
    diff = between(chain(("exp", "f32[2]")), chain(("exp", "f64[2]")))
    assert marks(diff) == [("input", "same"), ("exp", "retyped")]


def test_reordered_ops_stay_acyclic() -> None:
    before = chain(("exp", "f32[2]"), ("abs", "f32[2]"), ("log", "f32[2]"))
    after = chain(("log", "f32[2]"), ("exp", "f32[2]"))
    for i, row in enumerate(operands(between(before, after))):
        assert all(operand < i for operand in row)


def test_every_op_of_both_has_a_place_of_its_own() -> None:
    documents = [
        convolution(observed=True),
        convolution(observed=False),
        norms(),
        decoder(200),
        decoder(300, scoped=False),
    ]
    for before, after in itertools.permutations(documents, 2):
        diff = between(before, after)
        count = len(diff["marks"])
        assert sorted(set(diff["of_before"]) | set(diff["of_after"])) == list(range(count))
        assert len(set(diff["of_before"])) == len(diff["of_before"]) == len(before["ops"]["name"])
        for column in ("name", "type", "location", "attributes", "arity"):
            assert len(diff["graph"]["ops"][column]) == count
        names = diff["graph"]["names"]
        for row, merged in enumerate(diff["of_before"]):
            assert names[diff["graph"]["ops"]["name"][merged]] == before["names"][before["ops"]["name"][row]]


def test_regions_tell_only_what_moved() -> None:
    observed, free = convolution(observed=True), convolution(observed=False)
    told = {
        (r["before"] and (r["before"]["pattern"], r["before"]["verdict"]), r["after"] and (r["after"]["pattern"], r["after"]["verdict"]))
        for r in between(observed, free)["regions"]
    }  # fmt: skip
    assert told == {(("convolution", "blocked"), None), (None, ("conv_bn_activation", "taken"))}
    assert between(observed, observed)["regions"] == []


def rescoped(document: Document, old: str, new: str) -> Document:
    """The document as a rename of a scope would make it: regions' keys follow."""
    text = json.dumps(document)
    return json.loads(text.replace(f'"{old}', f'"{new}').replace(f"/{old}", f"/{new}"))


def test_a_renamed_scope_loses_and_gains_nothing() -> None:
    before = decoder(300)
    after = rescoped(before, "layer", "block")
    assert {scope[0] for scope in after["scopes"] if scope} != {scope[0] for scope in before["scopes"] if scope}
    diff = between(before, after)
    assert {MARKS[mark] for mark in diff["marks"]} == {"same"}
    assert diff["of_before"] == diff["of_after"]
    assert diff["regions"] == []


def test_a_renamed_scope_and_a_changed_op_above_it_mark_the_change_alone() -> None:
    before = decoder(300)
    after = rescoped(before, "layer", "block")
    first = next(i for i, operands in enumerate(after["ops"]["operands"]) if operands)
    after["names"].append("cbrt")
    after["ops"]["name"][first] = len(after["names"]) - 1
    found = {MARKS[mark] for mark in between(before, after)["marks"]}
    assert found <= {"same", "added", "removed"}
    counted = Counter(MARKS[mark] for mark in between(before, after)["marks"])
    assert counted["added"] == counted["removed"] <= 4


def test_a_verdict_that_moved_in_a_renamed_scope_is_one_transition() -> None:
    before = decoder(300)
    after = rescoped(before, "layer", "block")
    taken = next(region for region in after["regions"] if region["verdict"] == "taken")
    taken["verdict"] = "declined"
    (pair,) = between(before, after)["regions"]
    assert (pair["before"]["verdict"], pair["after"]["verdict"]) == ("taken", "declined")
    assert pair["before"]["id"] == pair["after"]["id"]
