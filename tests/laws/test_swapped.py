"""Whatever is recognised in programs with signs turned and operands swapped computes what was recorded."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.core.patterns.check import agrees
from tests.laws.swapped import WRITERS, swapped
from topos_core.matching.catalog import patterns
from topos_core.matching.search import search
from topos_core.recording.trace import trace

# What each kind of program is recognised as at least once in its seeds: without it the law would say nothing.
RECOGNISED = {
    "norm": "layer_norm", "root mean square": "rms_norm", "softmax": "softmax", "log softmax": "log_softmax",
    "silu": "silu", "gelu": "gelu", "mean squared error": "mse_loss", "given statistics": "batch_norm_inference",
    "attention": "attention", "group norm": "group_norm",
}  # fmt: skip


def check(kind: str, seeds: range) -> Counter[str]:
    """Compares every match's own formula with the recorded values; gives how often each pattern was recognised."""
    found: Counter[str] = Counter()
    for seed in seeds:
        program = swapped(kind, seed)
        tape = trace(program.function, **program.specs)
        for match in search(tape, patterns().values()).matches:
            found[match.pattern] += 1
            try:
                agrees(tape, match, seed)
            except AssertionError as error:
                raise AssertionError(
                    f"{kind}, seed {seed}: {match.pattern} is not what was recorded: {error}"
                ) from None
    assert found[RECOGNISED[kind]] > len(seeds) / 20, found
    return found


@pytest.mark.parametrize("kind", WRITERS)
def test_what_is_recognised_computes_the_same(kind):
    with np.errstate(all="ignore"):
        check(kind, range(100))


def test_the_same_seed_gives_the_same_program():
    for kind in WRITERS:
        first, second = (trace(program.function, **program.specs) for program in (swapped(kind, 3), swapped(kind, 3)))
        assert [(op.name, op.operands) for op in first.ops] == [(op.name, op.operands) for op in second.ops]


@pytest.mark.conformance
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", WRITERS)
def test_what_is_recognised_in_two_thousand_programs_computes_the_same(kind):
    with np.errstate(all="ignore"):
        found = check(kind, range(1000, 3000))
    print(f"\n{kind}: 2000 programs, {sum(found.values())} matches, all as recorded: {dict(found)}")
