"""The arena: buffers that live at once do not overlap, and gaps are used again."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from topos_core.plan.arena import LINE, Arena, lay_out
from topos_core.plan.liveness import Buffer


def test_a_gap_is_used_again_once_nobody_reads_it() -> None:
    chain = [Buffer(k, 100, k, k + 1) for k in range(10)]
    assert lay_out(chain) == Arena(256, {k: 128 * (k % 2) for k in range(10)}, 0)


def test_what_the_caller_gets_lies_outside() -> None:
    arena = lay_out([Buffer(0, 64, 0, 1), Buffer(1, 1000, 1, None)])
    assert arena == Arena(64, {0: 0}, 1000)


def test_the_smallest_gap_that_fits_is_taken_and_neighbours_become_one() -> None:
    rows = [Buffer(0, 640, 0, 2), Buffer(1, 64, 0, 9), Buffer(2, 128, 0, 2), Buffer(3, 64, 0, 9)]
    later = [Buffer(4, 100, 3, 4), Buffer(5, 640, 3, 4), Buffer(6, 1, 5, 9)]
    arena = lay_out([*rows, *later])
    assert (arena.offsets[4], arena.offsets[5], arena.offsets[6]) == (704, 0, 704)
    assert lay_out([Buffer(0, 64, 0, 1), Buffer(1, 64, 0, 1), Buffer(2, 128, 2, 3)]).bytes == 128


def test_the_last_gap_grows() -> None:
    assert lay_out([Buffer(0, 64, 0, 1), Buffer(1, 640, 2, 3)]).bytes == 640


buffers = st.lists(st.tuples(st.integers(1, 500), st.integers(0, 5), st.integers(0, 6)), max_size=30)


@given(buffers)
def test_buffers_that_live_at_once_do_not_overlap(drawn: list[tuple[int, int, int]]) -> None:
    made, step = [], 0
    for value, (size, gap, length) in enumerate(drawn):
        step += gap
        made.append(Buffer(value, size, step, step + length))
    arena = lay_out(made)
    live = 0
    for at in range(step + 1):
        rows = sorted((arena.offsets[b.value], b.bytes) for b in made if b.made <= at <= b.dropped)
        assert all(start % LINE == 0 and start + size <= arena.bytes for start, size in rows)
        assert all(start + size <= after for (start, size), (after, _) in itertools.pairwise(rows))
        live = max(live, sum(size for _, size in rows))
    assert arena.bytes >= live
