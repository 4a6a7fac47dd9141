"""Fingerprints name structure: spellings, extents and values do not count, roles and dtypes do."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tests.core.matching import spellings
from tests.core.matching.check import check, matches_of, outermost
from topos_core.matching.fingerprint import fingerprint, fold


def one(function, specs, pattern="convolution"):
    tape, pool = check(function, specs)
    match = outermost(matches_of(pool, pattern))[-1]
    structure = fingerprint(tape, match)
    return structure, fold(tape, match, structure)


def test_every_spelling_has_one_fingerprint():
    assert len({one(function, spellings.SPECS)[0] for function in spellings.SPELLINGS}) == 1


def test_extents_do_not_count_but_fold_them_apart():
    small = one(spellings.im2col, spellings.SPECS)
    again = one(spellings.im2col, spellings.SPECS)
    large = one(spellings.im2col, {"x": "f32[3,3,12,13]", "w": "f32[4,3,3,2]"})
    assert small == again
    assert small[0] == large[0]
    assert small[1] != large[1]


def test_spellings_are_folded_apart():
    first, second = (one(f, spellings.SPECS) for f in (spellings.windows_einsum, spellings.slices_stacked))
    assert first[1] != second[1]


def test_structure_counts():
    def plain(x, w):
        return np.einsum("bchwij,ocij->bohw", sliding_window_view(x, (3, 3), axis=(2, 3)), w)

    def strided(x, w):
        return np.einsum("bchwij,ocij->bohw", sliding_window_view(x, (3, 3), axis=(2, 3))[:, :, ::2, ::2], w)

    single = {"x": "f32[2,3,9,9]", "w": "f32[4,3,3,3]"}
    double = {"x": "f64[2,3,9,9]", "w": "f64[4,3,3,3]"}
    group = {"x": "f32[2,4,6,6]", "w": "f32[6,2,3,3]"}
    prints = [one(plain, single), one(strided, single), one(plain, double), one(spellings.grouped, group)]
    assert len({p[0] for p in prints}) == 4
