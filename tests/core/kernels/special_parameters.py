"""Programs whose scales, shifts and statistics are no ordinary numbers, and what a plan of them must give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import topos_core as tp
from topos_core import nn
from topos_core.run.compare import judge
from topos_core.run.interpreter import interpret
from topos_core.run.widened import widen_array, widened
from topos_core.tape.type import numpy_dtype

VALUES = (0.0, -0.0, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-45, 1e-40, -1e-5, -1.0)
CHANNELS = 32


def drawn(random: np.random.Generator, *shape: int, scale: float = 1.0) -> np.ndarray:
    return random.standard_normal(shape) * scale


def vectors(random: np.random.Generator, channels: int = CHANNELS) -> dict[str, np.ndarray]:
    made = {name: drawn(random, channels) for name in ("mean", "variance", "scale", "shift", "bias")}
    made["variance"] = np.abs(made["variance"]) + 0.1
    return made


def placed(given: Mapping[str, np.ndarray], name: str, value: float, everywhere: bool = False) -> dict[str, np.ndarray]:
    """Puts a value into one channel of a vector, or into all of them."""
    vector = given[name].copy()
    vector[slice(None) if everywhere else 3] = value
    return {**given, name: vector}


def agrees(
    function: Callable[..., Any],
    arrays: Sequence[np.ndarray],
    dtype: str,
    pattern: str | None,
    axis: int = 1,
    **request: Any,
) -> set[str]:
    """Runs a program, whose result is a match of a pattern (None for any), and compares with the recorded ops and float64.

    NaN and infinities must stand where both have them, and errors of each channel along `axis` be small beside what is largest
    there, or beside the recorded ops' own; without an axis beside what is largest at all. Gives the patterns that were taken.
    """
    given = [array.astype(numpy_dtype(dtype)) for array in arrays]
    specs = [f"{dtype}[{','.join(map(str, array.shape))}]" for array in given]
    with np.errstate(all="ignore"):
        tape = tp.trace(function, *specs)
        plan = tp.plan(tape, cost="always", **request)
        taken = {decision.match.pattern for decision in plan.taken}
        assert taken >= ({pattern} if pattern is not None else set()), [
            (decision.match.pattern, decision.reason) for decision in plan.data.decisions
        ]
        recorded, (exact,) = interpret(tape, given), interpret(widened(tape), [widen_array(array) for array in given])
        got = plan.run(*given, threads=1)
        found = judge(plan.data, [got], recorded, given)
        assert [each.judgement for each in found.outputs if each.judgement == "outside"] == [], found.outputs
        kind = numpy_dtype(dtype)
        theirs, own = recorded[0].astype(np.float64), got.astype(np.float64)
        rounded = exact.astype(kind).astype(np.float64)
        for special in (np.isnan, np.isposinf, np.isneginf):
            sure = special(theirs) == special(rounded)
            np.testing.assert_array_equal(special(own)[sure], special(theirs)[sure])
        fine = np.isfinite(theirs) & np.isfinite(rounded)
        others = tuple(k for k in range(own.ndim) if axis is None or k != axis % own.ndim)
        mistaken, least = (np.where(fine, np.abs(one - exact), 0.0).max(others, initial=0.0) for one in (own, theirs))
        largest = np.where(fine, np.abs(exact), 0.0).max(others, initial=0.0)
        unit = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}[dtype]
        small = {"f64": 1e-307, "f32": 1.2e-38, "f16": 6.2e-5, "bf16": 1.2e-38}[dtype]
        assert (mistaken <= 4 * least + 400 * unit * largest + small).all(), (mistaken, least, largest)
    return taken


def normed(x: Any, given: Mapping[str, Any], channels_last: bool = False) -> Any:
    if channels_last:
        return (x - given["mean"]) / np.sqrt(given["variance"] + np.float32(1e-5)) * given["scale"] + given["shift"]
    return nn.batch_norm(x, given["mean"], given["variance"], given["scale"], given["shift"])
