"""Turns pairs of elements: `a * cos - b * sin` and `b * cos + a * sin`, each with its own cosine and sine.

A kind for each way in which pairs lie: `rows` where all firsts lie beside each other in all four values, `pairs` where a
pair's two elements do (the tables may have one element a pair), and `any` for the rest, pair by pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import TURN
from topos_core.kernels.vocabulary.emitter import Emitter
from topos_core.kernels.vocabulary.memory import loader, reader, smaller, storer, word
from topos_core.kernels.vocabulary.rows import row_map, row_pairs
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.sharing import take

get = reader(TURN)


def kernel(host: Host, dtype: str, kind: str) -> Any:
    """Makes the kernel (block, worker) of a `TURN` block; `pairs2` has pairs in its tables too, `pairs1` has not."""
    scalar = SCALARS[dtype]
    size = scalar.bytes
    load, store = loader(scalar), storer(scalar)
    step, table = (2, int(kind[-1])) if kind.startswith("pairs") else (1, 1)
    to_first = row_map(host, scalar, (step, step, table, table), _first)
    to_second = row_map(host, scalar, (step, step, table, table), _second)
    side_by_side = row_pairs(host, scalar)
    dense, paired = kind == "rows", kind.startswith("pairs")

    def turn(args, worker):  # type: ignore[no-untyped-def]
        count = get(args, "count")
        x_step, cos_step = get(args, "x_step"), get(args, "cos_step")
        sin_step, out_step = get(args, "sin_step"), get(args, "out_step")
        firsts = get(args, "scratch") + worker * get(args, "slot_bytes")
        seconds = firsts + count * size
        item = take(args, worker)
        while item < get(args, "items"):
            start = item * get(args, "chunk")
            for row in range(start, smaller(get(args, "rows"), start + get(args, "chunk"))):
                a = get(args, "x") + word(get(args, "x_at"), row) * size
                cos = get(args, "cos") + word(get(args, "cos_at"), row) * size
                sin = get(args, "sin") + word(get(args, "sin_at"), row) * size
                first = get(args, "out") + word(get(args, "out_at"), row) * size
                b, second = a + get(args, "x_other") * size, first + get(args, "out_other") * size
                other_cos, other_sin = cos + get(args, "cos_other") * size, sin + get(args, "sin_other") * size
                if dense:
                    to_first(first, a, b, cos, sin, count)
                    to_second(second, a, b, other_cos, other_sin, count)
                elif paired:
                    to_first(firsts, a, b, cos, sin, count)
                    to_second(seconds, a, b, other_cos, other_sin, count)
                    side_by_side(first, firsts, seconds, count)
                else:
                    for i in range(count):
                        x, y = load(a, i * x_step), load(b, i * x_step)
                        store(first, i * out_step, x * load(cos, i * cos_step) - y * load(sin, i * sin_step))
                        turned = y * load(other_cos, i * cos_step) + x * load(other_sin, i * sin_step)
                        store(second, i * out_step, turned)
            item = take(args, worker)

    return turn


def _first(emitter: Emitter, operands: Sequence[Any]) -> Any:
    a, b, cos, sin = operands
    return emitter.sub(emitter.mul(a, cos), emitter.mul(b, sin))


def _second(emitter: Emitter, operands: Sequence[Any]) -> Any:
    a, b, cos, sin = operands
    return emitter.fma(b, cos, emitter.mul(a, sin))
