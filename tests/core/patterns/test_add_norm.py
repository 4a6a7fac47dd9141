from __future__ import annotations

import numpy as np

from tests.core.patterns.check import check, searched
from topos_core import nn

BOTH = {"x": "f64[4,5,6]", "y": "f64[4,5,6]", "g": "f64[6]", "b": "f64[6]"}


def test_a_layer_norm_of_a_sum_is_one_with_it():
    match = check("add_norm", lambda x, y, g, b: nn.layer_norm(x + y, g, b), BOTH)
    assert set(match.bindings) == {"x", "residual", "scale", "shift"}
    assert match.facts.options == {"norm": "layer_norm"}
    assert match.named["sum"] == (4,)


def test_an_rms_norm_of_a_sum_is_one_with_it():
    match = check("add_norm", lambda x, y, g: nn.rms_norm(x + y, g), {name: BOTH[name] for name in "xyg"})
    assert match.facts.options == {"norm": "rms_norm"}


def test_the_sum_may_be_read_by_the_next_block():
    def block(x, y, g, b):
        total = x + y
        return nn.layer_norm(total, g, b), total * 2.0

    _, pool = searched(block, BOTH)
    (match,) = [m for m in pool.matches if m.pattern == "add_norm" and len(m.bindings) == 4]
    assert match.named["sum"][0] not in match.interior


def test_a_bias_a_constant_and_a_difference_are_no_residual():
    for program in (
        lambda x, y, g, b: nn.layer_norm(x + b, g, b),
        lambda x, y, g, b: nn.layer_norm(x + 1.0, g, b),
        lambda x, y, g, b: nn.layer_norm(x - y, g, b),
        lambda x, y, g, b: nn.layer_norm(np.maximum(x, y), g, b),
    ):
        _, pool = searched(program, BOTH)
        assert [m for m in pool.matches if m.pattern == "add_norm"] == []
