"""Softmax and its logarithm along the middle axis of [outer, count, inner]: columns side by side in registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import ROWS
from topos_core.kernels.vocabulary.combine import combiner
from topos_core.kernels.vocabulary.emitter import Emitter
from topos_core.kernels.vocabulary.memory import loader, logarithm, reader, smaller, storer
from topos_core.kernels.vocabulary.rows import row_map
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.sharing import take
from topos_core.kernels.vocabulary.transcendental import exp
from topos_core.tape.type import numpy_dtype

get = reader(ROWS)


def kernel(host: Host, dtype: str, kind: str) -> Any:
    """Makes the kernel (block, worker) of a `ROWS` block; scratch is two rows of `chunk`; `kind` as for rows."""
    scalar = SCALARS[dtype]
    size, number, wide = scalar.bytes, scalar.numba, SCALARS["f64"].numba
    load, store = loader(scalar), storer(scalar)
    combine = combiner("max", scalar)
    copy, join = row_map(host, scalar, (1,), combine), row_map(host, scalar, (1, 1), combine)
    clear = row_map(host, scalar, (), lambda emitter, operands: operands[0], values=1)
    power = row_map(host, scalar, (1, 1), lambda emitter, operands: exp(emitter, emitter.sub(*operands)))
    add = row_map(host, scalar, (1, 1), lambda emitter, operands: emitter.add(*operands))
    add_power = row_map(host, scalar, (1, 1, 1), _plus_power)
    invert = row_map(host, scalar, (1,), lambda emitter, operands: emitter.div(emitter.constant(1.0), operands[0]))
    multiply = row_map(host, scalar, (1, 1), lambda emitter, operands: emitter.mul(*operands))
    subtract = row_map(host, scalar, (1, 1, 1), _less)
    highest = float(np.finfo(numpy_dtype(dtype)).max)
    bounded = row_map(
        host, scalar, (1,), lambda emitter, operands: emitter.at_most(operands[0], emitter.constant(highest))
    )
    logs, bounds = int(kind.startswith("log")), int(kind.endswith("unshifted"))

    def softmax(args, worker):  # type: ignore[no-untyped-def]
        count, inner, chunk = get(args, "count"), get(args, "inner"), get(args, "chunk")
        top = get(args, "scratch") + worker * get(args, "slot_bytes")
        total = top + chunk * size
        chunks = (inner + chunk - 1) // chunk
        item = take(args, worker)
        while item < get(args, "items"):
            start = (item % chunks) * chunk
            width = smaller(chunk, inner - start)
            at = (item // chunks * count * inner + start) * size
            x, out, step = get(args, "x") + at, get(args, "out") + at, inner * size
            copy(top, x, width)
            for row in range(1, count):
                join(top, top, x + row * step, width)
            if bounds:
                bounded(top, top, width)
            clear(total, number(0), width)
            if logs == 0:
                for row in range(count):
                    power(out + row * step, x + row * step, top, width)
                    add(total, total, out + row * step, width)
                invert(total, total, width)
                for row in range(count):
                    multiply(out + row * step, out + row * step, total, width)
            else:
                for row in range(count):
                    add_power(total, total, x + row * step, top, width)
                for i in range(width):
                    store(total, i, number(logarithm(wide(load(total, i)))))
                for row in range(count):
                    subtract(out + row * step, x + row * step, top, total, width)
            item = take(args, worker)

    return softmax


def _plus_power(emitter: Emitter, operands: Sequence[Any]) -> Any:
    total, x, top = operands
    return emitter.add(total, exp(emitter, emitter.sub(x, top)))


def _less(emitter: Emitter, operands: Sequence[Any]) -> Any:
    x, top, logarithm_of_sum = operands
    return emitter.sub(emitter.sub(x, top), logarithm_of_sum)
