"""A matrix product is told to be linear by its operands only where its form says so too; most that are linear are told so."""

from __future__ import annotations

import numpy as np

from benchmarks.networks import recorded
from tests.core.matching.chains import random_chain
from topos_core.matching.context import Context
from topos_core.matching.convolution import is_linear, is_linear_product
from topos_core.matching.form import Form
from topos_core.matching.match import Match
from topos_core.patterns import convolution

PROGRAMS = 3000


def laid_out(build, wanted, rng):
    """An input of which a value of a shape is made: its axes permuted, and neighbours joined."""
    order = [int(k) for k in rng.permutation(len(wanted))]
    moved = [wanted[k] for k in order]
    base: list[int] = []
    for extent in moved:
        if base and rng.integers(2):
            base[-1] *= extent
        else:
            base.append(extent)
    value = build.op("reshape", [build.input("i64", tuple(base))], shape=tuple(moved))
    return build.op("permute", [value], order=tuple(int(k) for k in np.argsort(order)))


def random_product(seed: int):
    """A product, summed: of a value that movement made of one input and of one that it made of another."""
    build, left, arrays = random_chain(seed, seed % 5)
    shape = arrays[left].shape
    if len(shape) < 2 or len(shape) > 5:
        return None
    rng = np.random.default_rng(seed)
    if seed % 3:
        batch = shape[:-2] if rng.integers(3) else ()
        wanted = (*batch, shape[-1], int(rng.choice([1, 2, 3, 4])))
        right = build.op("broadcast", [laid_out(build, wanted, rng)], shape=(*shape[:-2], *wanted[-2:]))
        return build, build.op("matmul", [left, right], accumulate="i64")
    wanted = tuple(extent if rng.integers(2) else 1 for extent in shape)
    right = build.op("broadcast", [laid_out(build, wanted, rng)], shape=shape)
    product = build.op("mul", [left, right])
    axes = tuple(sorted(int(k) for k in rng.choice(len(shape), int(rng.integers(1, len(shape))), replace=False)))
    return build, build.op("sum", [product], axes=axes, accumulate="i64")


def test_what_the_operands_tell_the_form_tells_too(monkeypatch):
    """And where a form is told to be linear, reading it on finds nothing else."""
    told = linear = 0
    for seed in range(PROGRAMS):
        made = random_product(seed)
        if made is None:
            continue
        build, product = made
        tape = build.tape(product)
        context = Context(tape)
        form = context.form(product)
        assert isinstance(form, Form)
        operands = tape.ops[product].operands
        if len(operands) == 2 and is_linear_product(*map(context.view, operands)):
            assert is_linear(form), seed
            told += 1
        if is_linear(form):
            linear += 1
            first = convolution.find(context, product)
            with monkeypatch.context() as patched:
                patched.setattr(convolution, "is_linear", lambda form: False)
                patched.setattr(convolution, "is_linear_product", lambda a, b: False)
                assert convolution.find(context, product) == first, seed
            assert not isinstance(first, Match), seed
    assert told > 200
    assert linear > told  # a sufficient sign, not all of it


def test_most_products_of_a_transformer_are_told_by_their_operands():
    tape = recorded("transformer", 1500, repeats=False)
    context = Context(tape)
    products = [op.operands for op in tape.ops if op.name == "matmul"]
    told = sum(is_linear_product(*map(context.view, operands)) for operands in products)
    assert told > 0.7 * len(products)
