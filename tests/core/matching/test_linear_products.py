"""A matrix product is told to be linear by its operands only where its form says so too; most that are linear are told so."""

from __future__ import annotations

import numpy as np

from benchmarks.networks import recorded
from tests.core.matching.chains import random_chain
from topos_core.matching.context import Context
from topos_core.matching.convolution import is_linear, is_linear_product
from topos_core.matching.form import Form

PROGRAMS = 2000


def random_product(seed: int):
    """A product of a value that movement made of one input and a matrix, or as many, that movement made of another."""
    build, left, arrays = random_chain(seed, seed % 5)
    shape = arrays[left].shape
    if len(shape) < 2 or len(shape) > 5:
        return None
    rng = np.random.default_rng(seed)
    columns = int(rng.choice([1, 2, 3, 4]))
    batch = shape[:-2] if rng.integers(2) else ()
    wanted = (*batch, shape[-1], columns)
    cut = int(rng.integers(len(wanted) + 1))
    joined = (int(np.prod(wanted[:cut])), int(np.prod(wanted[cut:]))) if rng.integers(2) else wanted
    order = tuple(int(k) for k in rng.permutation(len(joined)))
    right = build.input("i64", tuple(joined[k] for k in order))
    right = build.op("permute", [right], order=tuple(int(k) for k in np.argsort(order)))
    right = build.op("reshape", [right], shape=wanted)
    right = build.op("broadcast", [right], shape=(*shape[:-2], shape[-1], columns))
    product = build.op("matmul", [left, right], accumulate="i64")
    return build.tape(product), product


def test_what_the_operands_tell_the_form_tells_too():
    told = linear = 0
    for seed in range(PROGRAMS):
        made = random_product(seed)
        if made is None:
            continue
        tape, product = made
        context = Context(tape)
        form = context.form(product)
        assert isinstance(form, Form)
        if is_linear_product(*map(context.view, tape.ops[product].operands)):
            assert is_linear(form), seed
            told += 1
        linear += is_linear(form)
    assert told > 200
    assert linear > told  # a sufficient sign, not all of it


def test_most_products_of_a_transformer_are_told_by_their_operands():
    tape = recorded("transformer", 1500, repeats=False)
    context = Context(tape)
    products = [op.operands for op in tape.ops if op.name == "matmul"]
    told = sum(is_linear_product(*map(context.view, operands)) for operands in products)
    assert told > 0.7 * len(products)
