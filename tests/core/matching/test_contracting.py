from __future__ import annotations

import itertools

import numpy as np
import pytest

from topos_core.matching.contracting import contracted
from topos_core.matching.field import P, drawn, multiply
from topos_core.matching.reducing import total

SHAPES = [
    (),
    (4,),
    (3, 1),
    (3, 4),
    (5, 1, 1),
    (5, 1, 4),
    (5, 3, 1),
    (7, 1, 1, 1),
    (7, 5, 1, 4),
    (7, 1, 3, 4),
    (7, 5, 3, 4),
]


@pytest.mark.parametrize(("left", "right"), list(itertools.product(SHAPES, SHAPES)))
def test_a_contraction_is_the_sum_of_the_products(left, right):
    a, b = (drawn(np.arange(np.prod(shape, dtype=int)).reshape(shape), 7 + k) for k, shape in enumerate((left, right)))
    found, wanted = contracted(a, b, 7, 3), total(multiply(a, b), [7], 3)
    for one, other in ((found.p, wanted.p), (found.q, wanted.q)):
        np.testing.assert_array_equal(*np.broadcast_arrays(one, other))


def test_the_largest_residues_stay_exact():
    lane = np.full((1 << 12, 2, 1), P - 1)
    a = drawn(np.zeros((), np.int64), 1)._replace(p=lane, q=None)
    b = a._replace(p=np.full((1 << 12, 1, 3), P - 1))
    assert (contracted(a, b, 1 << 12, 2).p == (1 << 12) % P).all()
