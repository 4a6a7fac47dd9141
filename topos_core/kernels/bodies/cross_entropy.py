"""Cross entropy of rows of logits, one loss per row, from class numbers or from probabilities.

A row's loss is log(sum(exp(x - m))) times the sum of its weights, minus the sum of weight * (x - m), with m the maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import PAIR
from topos_core.kernels.vocabulary.emitter import Emitter
from topos_core.kernels.vocabulary.memory import loader, logarithm, reader, smaller, storer, word
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.sharing import take
from topos_core.kernels.vocabulary.totals import row_maximum, row_totals
from topos_core.kernels.vocabulary.transcendental import exp
from topos_core.tape.type import numpy_dtype

get = reader(PAIR)


def kernel(host: Host, dtype: str, target: str) -> Any:
    """Makes the kernel (block, worker) of a `PAIR` block: `x` logits, `other` i64 classes or probabilities.

    `target` is class, probability, or unshifted for classes where no maximum is recorded: +inf is NaN in its own place only.
    """
    scalar, double = SCALARS[dtype], SCALARS["f64"]
    size, wide = scalar.bytes, double.numba
    load_one, load, store = loader(scalar), loader(double), storer(double)
    largest = row_maximum(host, scalar)
    highest = numpy_dtype(dtype).type(np.finfo(numpy_dtype(dtype)).max if target == "unshifted" else np.inf)
    add_powers = row_totals(host, scalar, lambda emitter, x, top: (exp(emitter, emitter.sub(x[0], top)),), 1)
    add_weighted = row_totals(host, scalar, _weighted, 2, sources=2)

    def by_class(args, worker):  # type: ignore[no-untyped-def]
        columns = get(args, "columns")
        item = take(args, worker)
        while item < get(args, "items"):
            first = item * get(args, "chunk")
            for row in range(first, smaller(get(args, "count"), first + get(args, "chunk"))):
                x, total = get(args, "x") + row * columns * size, get(args, "totals") + row * 8
                chosen = word(get(args, "other"), row)
                store(total, 0, 0.0)
                if chosen >= 0 and chosen < columns:  # a number of no class chooses nothing, as recorded
                    top = largest(x, columns)
                    top = top if top < highest else highest
                    add_powers(total, x, top, columns)
                    store(total, 0, logarithm(load(total, 0)) - (wide(load_one(x, chosen)) - wide(top)))
            item = take(args, worker)

    def by_probability(args, worker):  # type: ignore[no-untyped-def]
        columns = get(args, "columns")
        sums = get(args, "scratch") + worker * get(args, "slot_bytes")
        item = take(args, worker)
        while item < get(args, "items"):
            first = item * get(args, "chunk")
            for row in range(first, smaller(get(args, "count"), first + get(args, "chunk"))):
                x, weights = get(args, "x") + row * columns * size, get(args, "other") + row * columns * size
                for k in range(3):
                    store(sums, k, 0.0)
                top = largest(x, columns)
                add_powers(sums, x, top, columns)
                add_weighted(sums + 8, x, weights, top, columns)
                loss = logarithm(load(sums, 0)) * load(sums, 1) - load(sums, 2)
                store(get(args, "totals"), row, loss)
            item = take(args, worker)

    return by_probability if target == "probability" else by_class


def _weighted(emitter: Emitter, elements: Sequence[Any], top: Any) -> Sequence[Any]:
    x, weight = elements
    return weight, emitter.mul(weight, emitter.sub(x, top))
