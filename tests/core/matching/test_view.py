"""Views read what NumPy reads."""

from __future__ import annotations

import pytest

from tests.core.matching.chains import random_chain
from tests.support.commit import part_of
from topos_core.matching.view import Views, pruned, read

COUNT, FIRST = 100_000, 1_000_000
"""Chains of the whole set, and the seed of its first."""


def run(count: int, first_seed: int) -> str:
    """Checks `count` random chains; says how many kept their input as base."""
    opaque = 0
    for seed in range(first_seed, first_seed + count):
        build, value, arrays = random_chain(seed, 1 + seed % 7)
        view = Views(build.tape(value)).of(value)
        opaque += view.base != 0
        for form in (view, pruned(view)):
            base = arrays.get(form.base)
            if base is not None:  # the pieces of a concat are no steps of the chain
                got = read(form, base)
                assert got.shape == arrays[value].shape, f"seed {seed}: {got.shape} for {arrays[value].shape}"
                assert (got == arrays[value]).all(), f"seed {seed}: {[op.name for op in build.ops]}"
    return f"{count} chains, none wrong, {opaque} on a base of their own"


def test_a_tenth_of_the_random_chains_read_what_numpy_reads():
    print(run(COUNT // 10, FIRST + part_of(10) * COUNT // 10))


@pytest.mark.conformance
@pytest.mark.timeout(1200)
def test_a_hundred_thousand_random_chains_read_what_numpy_reads():
    print(run(COUNT, FIRST))
