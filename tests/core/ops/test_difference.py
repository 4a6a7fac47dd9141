from __future__ import annotations

import numpy as np
import pytest

from topos_core.ops.difference import Difference, difference
from topos_core.tape.type import numpy_dtype

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize(
    ("got", "expected", "dtype", "want"),
    [
        ([1.0, NAN, INF, 0.0], [1.0, NAN, INF, -0.0], "f32", Difference(0.0, 0.0)),
        (
            [1.0],
            [np.nextafter(np.float32(1), np.float32(2))],
            "f32",
            Difference(2.0**-23, 2.0**-23 / (1 + 2.0**-23)),
        ),
        ([2.0**-149], [-(2.0**-149)], "f32", Difference(2.0**-148, 2.0)),
        ([1.0, 4.0], [1.0, 2.0], "f64", Difference(2.0, 1.0)),
        ([1.0], [1.0078125], "bf16", Difference(0.0078125, 0.0078125 / 1.0078125)),
        ([3, -5], [3, 2], "i8", Difference(7.0, 7 / 3)),
        ([0], [2**64 - 1], "u64", Difference(float(2**64 - 1), 1.0)),
        ([True, False], [True, True], "bool", Difference(1.0, 1.0)),
        ([], [], "f32", Difference(0.0, 0.0)),
    ],
)
def test_differences_are_counted(got, expected, dtype, want):
    kind = numpy_dtype(dtype)
    assert difference(np.array(got, kind), np.array(expected, kind)) == want


@pytest.mark.parametrize(("got", "expected"), [(NAN, 1.0), (1.0, NAN), (INF, 1.0), (INF, -INF)])
def test_what_is_not_finite_differs_infinitely_from_everything_else(got, expected):
    found = difference(np.array([got], np.float32), np.array([expected], np.float32))
    assert found.absolute == INF


def test_other_types_are_no_difference_but_an_error():
    with pytest.raises(ValueError, match=r"float64\[1\] cannot be compared with float32\[1\]"):
        difference(np.zeros(1), np.zeros(1, np.float32))
