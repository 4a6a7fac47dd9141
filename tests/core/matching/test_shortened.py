"""Shorter tapes: what may be left out of a run, and what keeps all of it."""

from __future__ import annotations

import numpy as np
import pytest

import topos_core as tp
from topos_core.matching.catalog import patterns
from topos_core.matching.search import search
from topos_core.matching.shortened import shortened
from topos_core.recording.trace import trace

COUNT = 60
WEIGHTS = {f"w{k}": "f32[8,8]" for k in range(COUNT)}


def mean(x):
    return x.mean(-1, keepdims=True)


def layer(x, w, scale):
    d = x - mean(x)
    return x + np.tanh((d / np.sqrt(mean(d * d) + 1e-5) * scale) @ w)


def program(block=layer, after=lambda x, seen: x, names=lambda k: ("w", "s")):
    def whole(**given):
        x, seen = given["x"], []
        for k in range(COUNT):
            w, s = names(k)
            x = block(x, given[w], given[s])
            seen.append(x)
        return after(x, seen)

    specs = {"x": "f32[4,8]"}
    for k in range(COUNT):
        for name, spec in zip(names(k), ("f32[8,8]", "f32[8]"), strict=True):
            specs[name] = spec
    return trace(whole, **specs)


def left(tape):
    short = shortened(tape)
    return len(tape.ops) if short is None else len(short.tape.ops)


def test_a_deep_network_keeps_few_of_its_layers():
    tape = program()
    assert left(tape) < len(tape.ops) / 3


def test_what_stays_does_not_grow_with_the_depth(monkeypatch):
    sizes = []
    for count in (60, 160):
        monkeypatch.setattr("tests.core.matching.test_shortened.COUNT", count)
        sizes.append(left(program()))
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize(
    "tape",
    [
        program(after=lambda x, seen: np.stack(seen)),
        program(block=lambda x, w, s: x + np.tanh(w[0]), after=lambda x, seen: x),
        program(after=lambda x, seen: x + seen[COUNT // 2]),
    ],
    ids=["all results are read at the end", "one sum runs through everything", "one in the middle is read at the end"],
)
def test_what_is_read_from_elsewhere_stays(tape):
    kept = left(tape)
    assert kept > len(tape.ops) / 3
    chosen = tuple(patterns().values())
    assert search(tape, chosen).matches == search(tape, chosen, repeats=False).matches


def silu(x):
    return x / (1 + np.exp(-x))


@pytest.mark.parametrize(
    "tape",
    [
        program(block=lambda x, w, s: x + silu(silu(x)) * s, names=lambda k: ("w", f"s{k}")),
        program(block=lambda x, w, s: x + silu(x) * s),
        trace(lambda x, **w: [np.tanh(x @ one) * 2.0 for one in w.values()], x="f32[4,8]", **WEIGHTS),
        trace(lambda x, **w: [silu(x @ one) - x.mean() for one in w.values()], x="f32[4,8]", **WEIGHTS),
    ],
    ids=["a chain through all, with vectors", "a chain through all", "products of one value", "blocks of one value"],
)
def test_what_is_cut_by_a_count_through_all_blocks_is_cut_where_it_was(tape):
    chosen = tuple(patterns().values())
    assert shortened(tape) is not None
    assert search(tape, chosen).matches == search(tape, chosen, repeats=False).matches


def test_a_chain_that_is_cut_in_every_block_is_still_searched_once():
    def block(x, w, s):
        y = layer(x, w, s)
        for k in range(40):
            y = np.tanh(y * (k + 2.0))
        return y

    tape = program(block=block)
    chosen = tuple(patterns().values())
    pool = search(tape, chosen)
    assert pool.repeats
    assert pool.matches == search(tape, chosen, repeats=False).matches


def test_weights_in_another_order_are_another_run():
    turned = range(COUNT // 2, COUNT)

    def names(k):
        return (f"b{k}", f"a{k}") if k in turned else (f"a{k}", f"b{k}")

    tape = program(names=names)
    chosen = tuple(patterns().values())
    assert search(tape, chosen).matches == search(tape, chosen, repeats=False).matches


def test_each_repetition_has_its_own_values_and_names_the_match_that_was_searched():
    tape = program(names=lambda k: (f"w{k}", f"s{k}"))
    pool = search(tape, patterns().values())
    norms = [k for k, match in enumerate(pool.matches) if match.pattern == "layer_norm" and "scale" in match.bindings]
    assert [tape.names[pool.matches[k].bindings["scale"]] for k in norms] == [f"s{k}" for k in range(COUNT)]
    searched = {pool.repeats[k] for k in norms}
    assert len(searched) < COUNT / 3
    assert all(pool.repeats[k] == k for k in searched)


def test_a_near_miss_in_every_layer_is_told_with_each_layers_names():
    def wrong(x, w, s):
        d = x - mean(x)
        return x + np.tanh((d / np.sqrt(mean(d * d) + 1e-5) * s + w[:, :1]) @ w)

    def whole(**given):
        x = given["x"]
        for k in range(COUNT):
            d = x - mean(x)
            x = x + np.tanh(d / (np.sqrt(mean(d * d)) + 1e-5) * given[f"s{k}"]) @ given[f"w{k}"]
        return x

    specs = {f"{name}{k}": spec for k in range(COUNT) for name, spec in (("w", "f32[8,8]"), ("s", "f32[8]"))}
    tape = trace(whole, x="f32[4,8]", **specs)
    chosen = tuple(patterns().values())
    pool, full = search(tape, chosen), search(tape, chosen, repeats=False)
    assert pool.repeats
    assert pool.near_misses == full.near_misses
    assert len(pool.near_misses) == COUNT


def test_an_observation_of_one_layer_ends_the_run_there():
    def block(x, w, s):
        block.count += 1
        y = layer(x, w, s)
        if block.count == COUNT // 2:
            tp.observe(y, "half")
        return y

    block.count = 0
    short = shortened(program(block=block))
    assert short is not None
    assert len(short.gaps) == 2
