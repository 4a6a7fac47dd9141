"""What a kernel is called in a list."""

import numpy as np
import pytest

import topos_core as tp
from topos_core import nn
from topos_core.document.kernels import kernel_listing
from topos_core.kernels.listing import listing


def titles(function, **specs):
    plan = tp.plan(tp.trace(function, **specs), cost="always")
    return [
        (one["title"], one["variant"])
        for decision in plan.taken
        for one in kernel_listing(listing(plan.tape, decision.match, 1))["kernels"]
    ]


@pytest.mark.parametrize(
    ("function", "specs", "title"),
    [
        (lambda x: np.tanh(x * 2.0) + x, {"x": "f32[8,64]"}, "expression over elements: mul, tanh, add (f32)"),
        (lambda x: np.exp(np.abs(x)).sum(axis=1), {"x": "f64[8,64]"}, "expression over rows: abs, exp, sum (f64)"),
        (
            lambda x: np.sqrt(np.minimum(np.exp(np.tanh(np.abs(x * 2.0 + 1.0))) / 3.0, 4.0)),
            {"x": "f32[8,64]"},
            "expression over elements: mul, add, abs, tanh, exp and 3 more (f32)",
        ),
    ],
)
def test_a_generated_kernel_is_named_by_what_it_computes(function, specs, title):
    assert title in [found for found, _ in titles(function, **specs)]


def test_any_other_is_named_by_what_it_was_made_for():
    found = titles(nn.softmax, x="f32[32,64]")
    assert [title for title, _ in found] == ["softmax_rows f32 softmax"]
    assert found[0][1] == ["f32", "softmax"]
