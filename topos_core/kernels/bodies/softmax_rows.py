"""Softmax and its logarithm along rows of dense memory: a maximum, then exp and its sum, then the quotient.

Rows that fit the first-level cache are done in turns, three of them at a time (`softmax_turn`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import ROWS
from topos_core.kernels.vocabulary.emitter import Emitter
from topos_core.kernels.vocabulary.memory import loader, logarithm, reader, settle, smaller, storer
from topos_core.kernels.vocabulary.rows import row_map
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.sharing import take
from topos_core.kernels.vocabulary.softmax_turn import softmax_turn
from topos_core.kernels.vocabulary.totals import row_map_total, row_maximum, row_totals
from topos_core.kernels.vocabulary.transcendental import exp, exp_below
from topos_core.tape.type import numpy_dtype

get = reader(ROWS)


def kernel(host: Host, dtype: str, kind: str) -> Any:
    """Makes the kernel (block, worker) of a `ROWS` block whose inner extent is 1.

    Scratch is one double and, where `row_slot` is not 0, 64 bytes further two rows so far apart.

    `kind` is softmax or log_softmax, or unshifted or log_unshifted: recorded without a shift, +inf becomes NaN in its own
    place only, so the shift that keeps the powers in range stays finite.
    """
    scalar = SCALARS[dtype]
    size, number = scalar.bytes, scalar.numba
    load, store = loader(SCALARS["f64"]), storer(SCALARS["f64"])
    highest = numpy_dtype(dtype).type(np.finfo(numpy_dtype(dtype)).max if kind.endswith("unshifted") else np.inf)
    largest = row_maximum(host, scalar)
    power = exp if kind.endswith("unshifted") else exp_below
    turn = softmax_turn(host, scalar, power)
    add_powers = row_totals(host, scalar, lambda emitter, x, top: (power(emitter, emitter.sub(x[0], top)),), 1)
    store_powers = row_map_total(host, scalar, lambda emitter, x, top: power(emitter, emitter.sub(x, top)))
    multiply = row_map(host, scalar, (1,), lambda emitter, operands: emitter.mul(*operands), values=1, streams=True)
    subtract = row_map(host, scalar, (1,), _less, values=2, streams=True)

    def softmax(args, worker):  # type: ignore[no-untyped-def]
        total = get(args, "scratch") + worker * get(args, "slot_bytes")
        count, row_bytes = get(args, "count"), get(args, "count") * size
        item = take(args, worker)
        while item < get(args, "items"):
            first = item * get(args, "chunk")
            last = smaller(get(args, "outer"), first + get(args, "chunk"))
            x, out = get(args, "x") + first * row_bytes, get(args, "out") + first * row_bytes
            if get(args, "row_slot") == 0:
                for _row in range(first, last):
                    # a row that holds a NaN, or nothing but -inf, becomes NaN through its sum
                    top = largest(x, count)
                    top = top if top < highest else highest
                    store(total, 0, 0.0)
                    store_powers(out, total, x, top, count)
                    multiply(out, out, number(1.0 / load(total, 0)), count, 0)
                    x += row_bytes
                    out += row_bytes
            else:
                powers, waiting = total + 64, total + 64 + get(args, "row_slot")
                target, factor, streamed = waiting, number(0.0), 0  # before the first row stands nothing
                top = largest(x, count)
                for row in range(first, last):
                    top = top if top < highest else highest
                    following = x + row_bytes if row + 1 < last else x
                    top = turn(target, waiting, factor, powers, total, x, top, following, count, streamed)
                    target, factor, streamed = out, number(1.0 / load(total, 0)), get(args, "streamed")
                    powers, waiting = waiting, powers
                    x += row_bytes
                    out += row_bytes
                multiply(target, waiting, factor, count, streamed)
            item = take(args, worker)
        settle()

    def log_softmax(args, worker):  # type: ignore[no-untyped-def]
        total = get(args, "scratch") + worker * get(args, "slot_bytes")
        count = get(args, "count")
        item = take(args, worker)
        while item < get(args, "items"):
            first = item * get(args, "chunk")
            for row in range(first, smaller(get(args, "outer"), first + get(args, "chunk"))):
                x, out = get(args, "x") + row * count * size, get(args, "out") + row * count * size
                top = largest(x, count)
                top = top if top < highest else highest
                store(total, 0, 0.0)
                add_powers(total, x, top, count)
                subtract(out, x, top, number(logarithm(load(total, 0))), count, get(args, "streamed"))
            item = take(args, worker)
        settle()

    return log_softmax if kind.startswith("log") else softmax


def _less(emitter: Emitter, operands: Sequence[Any]) -> Any:
    x, top, logarithm_of_sum = operands
    return emitter.sub(emitter.sub(x, top), logarithm_of_sum)
