from __future__ import annotations

import numpy as np
import pytest

import topos_core as tp
from tests.core.patterns.check import check, check_not

SPECS = {"a": "f64[3,4,5]", "b": "f64[3,5,6]"}


def matmul(a, b):
    return a @ b


def einsum(a, b):
    return np.einsum("bij,bjk->bik", a, b)


def turned(a, b):
    return np.einsum("bij,bjk->kbi", a, b)


def spelled(a, b):
    return (a[:, :, :, None] * b[:, None]).sum(2)


def commuted(a, b):
    return (b[:, None] * a[..., None]).sum(axis=-2)


def transposed(a, b):
    return (b.transpose(0, 2, 1) @ a.transpose(0, 2, 1)).transpose(0, 2, 1)


def flattened(a, b):
    return (a.reshape(3, 1, 4, 5) @ b.reshape(3, 1, 5, 6)).reshape(3, 4, 6)


@pytest.mark.parametrize("spelling", [matmul, einsum, turned, spelled, commuted, transposed, flattened])
def test_every_spelling_is_one_product(spelling):
    match = check("matmul", spelling, SPECS)
    assert (match.facts.extents["t"], match.facts.extents["r"]) == (3, 5)


def test_a_weight_without_batches_is_a_linear_layer():
    check_not("matmul", lambda a, b: a @ b, {"a": "f64[3,4,5]", "b": "f64[5,6]"}, None)


def test_a_dot_product_per_batch_is_none():
    check_not("matmul", lambda a, b: (a * b).sum(-1), {"a": "f64[3,5]", "b": "f64[3,5]"}, None)


@pytest.mark.parametrize("spelling", [matmul, turned, spelled])
def test_a_batch_of_products_runs(spelling):
    specs = {"a": "f32[7,19,33]", "b": "f32[7,33,21]"}
    plan = tp.plan(tp.trace(spelling, **specs), machine="reference", cost="always")
    assert [d.match.pattern for d in plan.taken] == ["matmul"]
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((7, 19, 33), (7, 33, 21)))
    for threads in (1, 2):
        got = plan.run(a, b, threads=threads)
        np.testing.assert_allclose(got, spelling(a.astype(np.float64), b.astype(np.float64)), atol=1e-4)


def test_what_was_multiplied_and_added_is_worth_it_and_a_plain_product_is_not_slowed_down():
    plan = tp.plan(tp.trace(spelled, a="f32[8,64,64]", b="f32[8,64,64]"), machine="reference")
    assert [d.match.pattern for d in plan.taken] == ["matmul"]
    plain = tp.plan(tp.trace(matmul, a="f32[8,256,256]", b="f32[8,256,256]"), machine="reference")
    for d in plain.taken:
        assert d.numbers["seconds_after"].value < d.numbers["seconds_before"].value
