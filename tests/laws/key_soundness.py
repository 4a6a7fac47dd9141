"""Checks that two values with one key are one function: predicts each from the first value with its function."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tests.core.matching.random_tapes import SPECIAL, evaluated, random_tape
from topos_core.matching.core import Keys
from topos_core.matching.view import View, read


@dataclass
class Count:
    tapes: int = 0
    ops: int = 0
    funcs: int = 0
    predicted: int = 0
    special: int = 0
    different: list[str] = field(default_factory=list)
    different_special: dict[str, int] = field(default_factory=dict)


def counted(seeds: range) -> Count:
    """Checks the keys of random tapes."""
    count = Count()
    for seed in seeds:
        check_keys(seed, count)
    return count


def told(count: Count) -> str:
    """Says what was counted, on one line."""
    return (
        f"{count.tapes} tapes, {count.ops} ops, {count.funcs} functions, {count.predicted} predictions, "
        f"{len(count.different)} different; special values: {sum(count.different_special.values())} of {count.special}"
    )


def check_keys(seed: int, count: Count) -> None:
    tape = random_tape(seed)
    keys = Keys(tape)
    rng = np.random.default_rng(seed)
    count.tapes, count.ops, count.funcs = (
        count.tapes + 1,
        count.ops + len(tape.ops),
        count.funcs + len(keys.table.funcs),
    )
    for mode in ("any sign", "positive", "special"):
        feeds = {}
        for value in tape.inputs:
            x = rng.standard_normal(tape.ops[value].type.shape)
            x = np.abs(x) if mode == "positive" else rng.choice(SPECIAL, x.shape) if mode == "special" else x
            feeds[value] = x
        with np.errstate(all="ignore"):
            arrays = evaluated(tape, feeds)
            for value, op in enumerate(tape.ops):
                maker = keys.funcs[value].maker
                if maker in (-1, value) or not _usable(keys, maker) or not np.isfinite(keys.coefficients[value]):
                    continue
                source = function_array(keys, maker, arrays)
                if source is None or keys.views[value].bounds:
                    continue
                got = read(keys.views[value]._replace(base_shape=source.shape), source) * keys.coefficients[value]
                want = arrays[value]
                if mode == "special":
                    count.special += 1
                    if not np.allclose(got, want, 1e-9, 1e-300, equal_nan=True):
                        count.different_special[op.name] = count.different_special.get(op.name, 0) + 1
                    continue
                count.predicted += 1
                if not same(got, want):
                    infinite = np.isinf(got) & np.isinf(want)
                    if same(np.where(infinite, 0, got), np.where(infinite, 0, want)):
                        # a zero of either sign came out of x - x: (-0) ** -0.5 is inf, 1 / sqrt(-0) is -inf
                        count.different_special[op.name] = count.different_special.get(op.name, 0) + 1
                        continue
                    count.different.append(f"seed {seed} {mode}: value {value} {op.name} from {maker}")


def _usable(keys: Keys, value: int) -> bool:
    c = keys.coefficients[value]
    return bool(c) and bool(np.isfinite(c))


def same(got: np.ndarray, want: np.ndarray) -> bool:
    if np.allclose(got, want, 1e-9, 1e-300, equal_nan=True):
        return True
    scale = float(np.nanmax(np.abs(np.where(np.isfinite(got), got, 0)))) if got.size else 0.0
    finite = (np.isfinite(got) == np.isfinite(want)).all()
    return bool(finite) and np.allclose(np.nan_to_num(got), np.nan_to_num(want), 1e-6, 1e-6 * scale)  # cancellation


def function_array(keys: Keys, value: int, arrays: list[np.ndarray]) -> np.ndarray | None:
    """The array of a value's function over its own digits; None where the value does not show all of it."""
    view: View = keys.views[value]
    func = keys.funcs[value]
    if view.bounds or any(view.offsets) or any(d != 1 for d in view.divisors):
        return None
    digits = view.digits
    order: list[int] = []
    for k, extent in enumerate(func.shape):
        own = sorted((i for i, d in enumerate(digits) if d.coefficients[k]), key=lambda i: -digits[i].coefficients[k])
        weight = 1
        for i in reversed(own):
            if digits[i].coefficients[k] != weight or sum(map(bool, digits[i].coefficients)) != 1:
                return None
            weight *= digits[i].extent
        if weight != extent:
            return None
        order += own
    if len(order) != len(digits):
        return None  # a broadcast digit
    flat = arrays[value].reshape([d.extent for d in digits]).transpose(order)
    return flat.reshape(func.shape) / keys.coefficients[value]
