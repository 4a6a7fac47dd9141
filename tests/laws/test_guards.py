"""Every guard earns its place: with it removed, a spelling is lost, a changed meaning is taken, or a key is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from tests.core.patterns.check import agrees, match_at_result
from tests.laws.key_soundness import Count, check_keys
from tests.laws.respelling import CHANGES, WRITERS
from topos_core.matching import (
    answers,
    attempt,
    core,
    labelling,
    opening,
    products,
    reductions,
    solving,
    sources,
    sums,
    tracing,
)
from topos_core.matching.catalog import patterns
from topos_core.matching.search import search
from topos_core.matching.template import templates
from topos_core.matching.uses import Uses
from topos_core.recording.trace import trace


@contextmanager
def without(monkeypatch: pytest.MonkeyPatch, *changes: tuple[Any, str, Any]) -> Iterator[None]:
    """Replaces attributes; templates are traced anew, since they are keyed by the same rules, and nothing is remembered."""
    _forget()
    with monkeypatch.context() as patch:
        for where, name, value in changes:
            patch.setattr(where, name, value)
        yield
    _forget()


def _forget() -> None:
    templates.cache_clear()
    answers.index_of.cache_clear()
    core._rules.cache_clear()


def damage(identifiers: tuple[str, ...], spellings: int, changed: int) -> int:
    """Counts spellings that are lost or wrong, and changed meanings that are taken."""
    known, wrong = list(patterns().values()), 0
    for identifier in identifiers:
        for seed in range(spellings):
            program = WRITERS[identifier](identifier, seed)
            tape = trace(program.function, **program.specs)
            match = match_at_result(tape, search(tape, known), identifier)
            wrong += match is None or not _right(tape, match)
        for change in CHANGES[identifier]:
            for seed in range(changed):
                program = WRITERS[identifier](identifier, seed, change)
                tape = trace(program.function, **program.specs)
                wrong += match_at_result(tape, search(tape, known), identifier) is not None
    return wrong


def _right(tape: Any, match: Any) -> bool:
    try:
        agrees(tape, match)
    except (AssertionError, ValueError, KeyError):
        return False
    return True


def _always_close(a: float, b: float, relative: float) -> bool:
    return True


def _no_labels(one: Any) -> bool:
    """Gives every digit to the first label that is allowed."""
    reduced = labelling._reduced(one)
    if reduced is None or any(hole not in one.bound for hole in one.template.holes):
        return False
    owners = one.template.owners
    kept = [label for label in owners if label not in one.template.reduced] or list(owners)
    found: dict[str, list[int]] = {label: [] for label in owners}
    users: dict[int, int] = dict.fromkeys(range(one.root_digits), 0) | dict.fromkeys(reduced, 0)
    for hole in one.template.holes:
        for digit in labelling.digits_of(one.bound[hole][1]):
            root = one.root_of(digit)
            users[root] = users.get(root, 0) | one.template.bits[hole]
    for digit, using in users.items():
        allowed = list(reduced.get(digit, kept))
        found[min(allowed, key=lambda label: (owners[label] ^ using).bit_count())].append(digit)
    one.labels = found
    return True


def _transparent_cast(keys: Any, value: int, op: Any) -> Any:
    return keys.coefficients[op.operands[0]], keys.views[op.operands[0]]


class _EverySingle(Uses):
    """Counts every value as read once."""

    __slots__ = ()

    def __init__(self, tape: Any) -> None:
        super().__init__(tape)
        self.count = [1] * len(self.count)


class _NoneSingle(Uses):
    """Counts every value as read twice."""

    __slots__ = ()

    def __init__(self, tape: Any) -> None:
        super().__init__(tape)
        self.count = [2] * len(self.count)


NORMS = ("layer_norm", "batch_norm_training")


def test_every_digit_must_vary_with_the_holes_of_its_label(monkeypatch):
    with without(monkeypatch, (tracing, "labelled", _no_labels)):
        assert damage(NORMS, 0, 12) > 0


def test_constants_must_be_those_of_the_formula(monkeypatch):
    with without(monkeypatch, (solving, "close", _always_close)):
        assert damage(("gelu",), 0, 12) > 0


def test_a_cast_keeps_its_place(monkeypatch):
    with without(monkeypatch, (sources, "RULES", {**sources.RULES, "cast": _transparent_cast})):
        assert damage(("layer_norm",), 0, 12) > 0


def test_nothing_is_flattened_through_a_value_that_others_read(monkeypatch):
    with without(monkeypatch, (core, "Uses", _EverySingle)):
        assert damage(("layer_norm", "softmax"), 30, 0) > 0


def test_sums_and_products_are_flattened(monkeypatch):
    with without(monkeypatch, (core, "Uses", _NoneSingle)):
        assert damage(("layer_norm", "gelu"), 30, 0) > 0


def test_what_others_read_is_opened_where_a_formula_asks_for_it(monkeypatch):
    never = lambda kind, kid: False  # noqa: E731
    with without(monkeypatch, (attempt, "opens", never), (opening, "opens", never)):
        assert damage(("layer_norm", "rms_norm"), 60, 0) > 0


def test_a_root_of_a_square_is_no_identity(monkeypatch):
    loose = lambda exponent, outer, operands: exponent * outer  # noqa: E731
    with without(monkeypatch, (products, "power", loose), (reductions, "power", loose), (opening, "power", loose)):
        assert different(range(200)) > 0


def test_exponents_and_coefficients_merge_only_where_signs_agree(monkeypatch):
    def merged(terms: Any) -> Any:
        total: dict[Any, Any] = {}
        for kid in terms:
            key = (kid.func.number, kid.map)
            total[key] = kid if key not in total else kid._replace(weight=kid.weight + total[key].weight)
        kids = sorted(total.values(), key=lambda kid: (kid.func.number, str(kid.map)))
        return kids, next((kid.weight for kid in kids if kid.weight != 0), 1.0)

    before = special(range(120))
    with without(monkeypatch, (sums, "merged_terms", merged)):
        assert special(range(120)) > before


def different(seeds: range) -> int:
    count = Count()
    with np.errstate(all="ignore"):
        for seed in seeds:
            check_keys(seed, count)
    return len(count.different)


def special(seeds: range) -> int:
    count = Count()
    for seed in seeds:
        check_keys(seed, count)
    return sum(count.different_special.values())
