from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.core.patterns.check import check, searched

D, H, K = 12, 3, 4
X = "f64[2,5,12]"
W, B = f"f64[{D},{D}]", f"f64[{D}]"


def sm(s: Any, axis: int = -1) -> Any:
    e = np.exp(s - s.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def t(x: Any) -> Any:
    return x.swapaxes(-1, -2)


def split(y: Any, heads: int = H) -> Any:
    return y.reshape(y.shape[0], y.shape[1], heads, K).transpose(0, 2, 1, 3)


def merge(o: Any) -> Any:
    return o.transpose(0, 2, 1, 3).reshape(o.shape[0], o.shape[2], -1)


def attended(q: Any, k: Any, v: Any) -> Any:
    return merge(sm(q @ t(k) * 0.5) @ v)


def separate(x, wq, bq, wk, bk, wv, bv, wo, bo):
    q, k, v = (split(x @ w + b) for w, b in ((wq, bq), (wk, bk), (wv, bv)))
    return attended(q, k, v) @ wo + bo


def torch_layout(x, wq, bq, wk, bk, wv, bv, wo, bo):
    q, k, v = (split(x @ w.T + b) for w, b in ((wq, bq), (wk, bk), (wv, bv)))
    return attended(q, k, v) @ wo.T + bo


def flat_heads(x, wq, bq, wk, bk, wv, bv, wo, bo):
    q, k, v = (
        split((x.reshape(10, D) @ w + b).reshape(2, 5, D)).reshape(2 * H, 5, K)
        for w, b in ((wq, bq), (wk, bk), (wv, bv))
    )
    o = (sm(q @ k.transpose(0, 2, 1) * 0.5) @ v).reshape(2, H, 5, K)
    return merge(o) @ wo + bo


def pre_norm(x, wq, bq, wk, bk, wv, bv, wo, bo):
    d = x - x.mean(-1, keepdims=True)
    h = d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5) * bq + bk
    q, k, v = (split(h @ w + b) for w, b in ((wq, bq), (wk, bk), (wv, bv)))
    return attended(q, k, v) @ wo + bo


LAYERS = {"x": X} | {f"{kind}{side}": spec for side in "qkvo" for kind, spec in (("w", W), ("b", B))}


@pytest.mark.parametrize("spelling", [separate, torch_layout, flat_heads, pre_norm])
def test_every_spelling_with_separate_projections_is_one_block(spelling):
    match = check("multi_head_attention", spelling, LAYERS)
    assert set(match.bindings) == {"x"} | {
        f"{name}_{kind}" for name in ("query", "key", "value", "output") for kind in ("weight", "bias")
    }
    assert match.facts.parts == {}


def fused_slices(x, w, b, wo):
    q, k, v = (split(part) for part in np.split(x @ w + b, 3, -1))
    return attended(q, k, v) @ wo


def fused_axis(x, w, b, wo):
    y = (x @ w + b).reshape(2, 5, 3, H, K).transpose(2, 0, 3, 1, 4)
    return attended(y[0], y[1], y[2]) @ wo


def fused_inside_heads(x, w, b, wo):
    y = (x @ w + b).reshape(2, 5, H, 3, K)
    q, k, v = (y[:, :, :, part].transpose(0, 2, 1, 3) for part in range(3))
    return attended(q, k, v) @ wo


@pytest.mark.parametrize("spelling", [fused_slices, fused_axis, fused_inside_heads])
def test_one_product_may_hold_all_three_projections(spelling):
    specs = {"x": X, "w": f"f64[{D},{3 * D}]", "b": f"f64[{3 * D}]", "wo": W}
    match = check("multi_head_attention", spelling, specs)
    assert set(match.facts.parts) == {"query", "key", "value"}


def test_projections_may_be_einsums_to_heads():
    def program(x, wq, wk, wv, wo):
        q, k, v = (np.einsum("btd,dhk->bthk", x, w) for w in (wq, wk, wv))
        a = sm(np.einsum("bqhk,bshk->bhqs", q, k) * 0.5)
        return np.einsum("bqhk,hkd->bqd", np.einsum("bhqs,bshk->bqhk", a, v), wo)

    head = f"f64[{D},{H},{K}]"
    check("multi_head_attention", program, {"x": X, "wq": head, "wk": head, "wv": head, "wo": f"f64[{H},{K},{D}]"})


def test_keys_may_be_shared_by_groups_of_queries():
    def program(x, wq, wk, wv, wo):
        q = split(x @ wq, 6)
        k, v = (np.repeat(split(x @ w, 2), 3, 1) for w in (wk, wv))
        return attended(q, k, v) @ wo

    specs = {"x": X, "wq": "f64[12,24]", "wk": "f64[12,8]", "wv": "f64[12,8]", "wo": "f64[24,12]"}
    check("multi_head_attention", program, specs)


def test_keys_and_values_may_come_from_another_sequence():
    def program(x, c, wq, wk, wv, wo):
        return attended(split(x @ wq), split(c @ wk), split(c @ wv)) @ wo

    specs = {"x": X, "c": "f64[2,7,12]", "wq": W, "wk": W, "wv": W, "wo": W}
    assert "context" in check("multi_head_attention", program, specs).bindings


def test_a_mask_is_bound():
    def program(x, wq, wk, wv, wo, mask):
        q, k, v = (split(x @ w) for w in (wq, wk, wv))
        return merge(sm(q @ t(k) / 2 + mask) @ v) @ wo

    specs = {"x": X, "wq": W, "wk": W, "wv": W, "wo": W, "mask": "f64[2,1,1,5]"}
    assert "mask" in check("multi_head_attention", program, specs).bindings


def test_two_masks_and_a_factor_of_the_weights_are_bound():
    def masked(x, wq, wk, wv, wo, m, b, drop):
        q, k, v = (split(x @ w) for w in (wq, wk, wv))
        return merge((sm(q @ t(k) * 0.5 + b + m) * drop) @ v) @ wo

    specs = {
        "x": X,
        **dict.fromkeys(("wq", "wk", "wv", "wo"), W),
        "m": "f64[2,1,1,5]",
        "b": "f64[3,5,5]",
        "drop": "f64[2,3,5,5]",
    }
    match = check("multi_head_attention", masked, specs)
    assert {"mask", "bias", "drop"} <= set(match.bindings)


def two_sources(x, c, wq, wk, wv, wo):
    return attended(split(x @ wq), split(x @ wk), split(c @ wv)) @ wo


def no_output(x, c, wq, wk, wv, wo):
    return attended(split(x @ wq), split(x @ wk), split(x @ wv)) + x


def activated_values(x, c, wq, wk, wv, wo):
    return attended(split(x @ wq), split(x @ wk), np.maximum(split(x @ wv), 0)) @ wo


def softmax_over_queries(x, c, wq, wk, wv, wo):
    q, k, v = (split(x @ w) for w in (wq, wk, wv))
    return merge(sm(q @ t(k) * 0.5, 2) @ v) @ wo


def norm_between(x, c, wq, wk, wv, wo):
    q, k, v = (split(x @ w) for w in (wq, wk, wv))
    q = q / np.sqrt((q * q).mean(-1, keepdims=True) + 1e-6)
    return attended(q, k, v) @ wo


@pytest.mark.parametrize("program", [two_sources, no_output, activated_values, softmax_over_queries, norm_between])
def test_what_is_no_whole_block_is_not_taken_for_one(program):
    specs = {"x": X, "c": X, "wq": W, "wk": W, "wv": W, "wo": W}
    _, pool = searched(program, specs)
    assert [m for m in pool.matches if m.pattern == "multi_head_attention"] == []
