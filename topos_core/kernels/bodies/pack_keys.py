"""Lays keys out for the scores: [panels, width, keys of a panel], so that a step of a tile reads neighbouring keys.

Lays values out in rows of whole registers that start on cache lines: a register that lies across two takes two loads.
Also says of keys and values whether all are finite: only then may masked positions be left out.
"""

from __future__ import annotations

from typing import Any

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import KEYS
from topos_core.kernels.vocabulary.memory import loader, reader, smaller, storer, word
from topos_core.kernels.vocabulary.rows import row_map
from topos_core.kernels.vocabulary.scalar import SCALARS
from topos_core.kernels.vocabulary.sharing import take
from topos_core.kernels.vocabulary.totals import row_totals
from topos_core.kernels.vocabulary.turning import turner

get = reader(KEYS)


def kernel(host: Host, dtype: str) -> Any:
    """Makes the kernel (block, worker) of a `KEYS` block; an item is one panel of one batch."""
    scalar, lanes = SCALARS[dtype], host.lanes(dtype)
    size, number = scalar.bytes, scalar.numba
    load, store, store_double = loader(scalar), storer(scalar), storer(SCALARS["f64"])
    turn = turner(host, scalar)
    copy = row_map(host, scalar, (1,), lambda emitter, operands: operands[0])
    vanish = row_totals(host, scalar, lambda emitter, x, _: (emitter.sub(x[0], x[0]),), 1)  # 0, or NaN if not finite

    def pack(args, worker):  # type: ignore[no-untyped-def]
        keys, width, panel_keys, panels = (
            get(args, "keys"),
            get(args, "width"),
            get(args, "panel_keys"),
            get(args, "panels"),
        )
        item = take(args, worker)
        while item < get(args, "items"):
            batch, panel = item // panels, item % panels
            first = panel * panel_keys
            present = smaller(panel_keys, keys - first)
            source = get(args, "k") + (word(get(args, "k_at"), batch) + first * get(args, "k_row")) * size
            target = get(args, "packed") + item * width * panel_keys * size
            check = get(args, "checks") + item * 8
            store_double(check, 0, 0.0)
            row, value_row, value_width = get(args, "k_row"), get(args, "v_row"), get(args, "value_width")
            values = get(args, "v") + (word(get(args, "v_at"), batch) + first * value_row) * size
            pitch = get(args, "value_pitch")
            beside = get(args, "beside") + (batch * keys + first) * pitch * size
            if row == width:  # one long row
                vanish(check, source, number(0), present * width)
            else:
                for key in range(present):
                    vanish(check, source + key * row * size, number(0), width)
            if value_row == value_width and value_width == pitch:
                vanish(check, values, number(0), present * value_width)
                copy(beside, values, present * value_width)
            else:
                for key in range(present):
                    vanish(check, values + key * value_row * size, number(0), value_width)
                    if pitch != 0:
                        copy(beside + key * pitch * size, values + key * value_row * size, value_width)
                        for rest in range(value_width, pitch):
                            store(beside, key * pitch + rest, number(0))
            whole_keys, whole_width = present // lanes * lanes, width // lanes * lanes
            for key in range(0, whole_keys, lanes):
                for d in range(0, whole_width, lanes):
                    turn(
                        target + (d * panel_keys + key) * size, panel_keys,
                        source + (key * get(args, "k_row") + d) * size, get(args, "k_row"),
                    )  # fmt: skip
            for key in range(panel_keys):
                start = whole_width if key < whole_keys else 0
                for d in range(start, width):
                    value = load(source, key * get(args, "k_row") + d) if key < present else number(0)
                    store(target, d * panel_keys + key, value)
            item = take(args, worker)

    return pack
