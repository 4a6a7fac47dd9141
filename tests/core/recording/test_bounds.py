from __future__ import annotations

import numpy as np
import pytest

from topos_core.recording.bounds import Reading
from topos_core.recording.trace import trace


@pytest.mark.parametrize(
    ("program", "bounds", "wrapping"),
    [
        (lambda t: t[::-1].reshape(2, 2), (0, 99), (0, 99)),
        (lambda t: np.minimum(t + np.int8(20), np.int8(50)), (20, 50), (20, 50)),
        (lambda t: t + np.int8(20), (20, 119), (20, 119)),
        (lambda t: t + t, (0, 127), (-128, 127)),  # 198 is -58 in eight bits
        (lambda t: t * t, (0, 127), (-128, 127)),
        (lambda t: np.minimum(t + t, np.int8(50)), (0, 50), (-128, 50)),
        (lambda t: (t.astype(np.int64) + t).astype(np.int8), (0, 127), (-128, 127)),
    ],
)
def test_what_is_known_of_integers_holds_where_they_may_overflow(program, bounds, wrapping):
    tape = trace(program, t="i8[4]<100")
    for wraps, expected in ((False, bounds), (True, wrapping)):
        assert Reading(tape.ops, tape.ranges, wraps=wraps).bounds(tape.results[0]) == expected
