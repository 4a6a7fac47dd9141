"""The float certificate: measures a kernel of home against float64 on a pattern's probe set.

A probe is a program in which the pattern matches, at one dtype, with bindings of one kind: ordinary values, a large mean
with a tiny spread, ties, zeros of both signs, values near overflow, a NaN or an infinity in one place, a row of -inf, memory
in another order, with gaps, backwards or repeated; the same with one extent everywhere (4, 1) and with an empty batch, where
the program can be traced so. The reference is the pattern's own formula on the same bindings in float64, so what is measured
is the kernel. What the formula makes of the bindings' own rounding is told apart (`conditioning.py`).
"""

from __future__ import annotations

import importlib
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from topos_core.errors import ToposError
from topos_core.kernels.convolution.choice import known_beforehand
from topos_core.kernels.envelopes import SMALLEST
from topos_core.kernels.home.manifest import prepare
from topos_core.matching.catalog import patterns
from topos_core.matching.match import Match
from topos_core.matching.search import search
from topos_core.ops.cast import cast_array
from topos_core.ops.catalog import definition
from topos_core.recording.trace import trace
from topos_core.tape.tape import Tape
from topos_core.tape.type import TensorType, dtype_name, numpy_dtype

LARGE: Final = {"f16": (100.0, 1.0), "bf16": (100.0, 4.0), "f32": (1e4, 1e-1), "f64": (1e5, 1.0)}
"""A mean and a spread that the dtype still tells apart."""
HUGE: Final = {"f16": 3e2, "bf16": 1e30, "f32": 1e30, "f64": 1e250}
"""Values whose squares overflow the dtype, or nearly."""

Program = tuple[Callable[..., Any], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Probe:
    """One program and the kind of values that go in."""

    tape: Tape
    match: Match
    kind: str


@dataclass(frozen=True, slots=True)
class Measured:
    """A kernel's largest error on one probe, relative to the output's largest magnitude, and whether specials agreed.

    Args:
        relative: max |got - f64| / max |f64| over the outputs, where both formulas are finite, beyond what an envelope
            allows absolutely: a result that is no normal number has no relative error.
        specials: Whether NaN and infinities stand where the reference has them.
    """

    relative: float
    specials: bool


BY_ERF: Final = ("gelu", "linear_bias_activation", "gated_mlp")
"""Patterns whose formula has no longer form than float64: the one formula of erf ends there."""
LAYOUTS: Final = ("moved", "gaps", "backwards", "repeated")
"""Kinds of memory, of all bindings; the other kinds are of one binding's values."""
KINDS: Final = ("normal", "large mean", "ties", "zeros", "huge", "nan", "infinity", "masked", *LAYOUTS)


def probes(pattern: str, dtype: str, programs: Iterable[Program] = ()) -> Iterator[Probe]:
    """Gives every kind of probe for a pattern's examples and for further programs."""
    own = [(example.function, example.specs) for example in patterns()[pattern].examples]
    for program in (*own, *(shaped for each in own for shaped in _shaped(*each)), *programs):
        found = matched(pattern, dtype, program)
        if found is not None:
            for kind in KINDS:
                yield Probe(*found, kind)


def matched(pattern: str, dtype: str, program: Program) -> tuple[Tape, Match] | None:
    """Records a program of f32 at another dtype and gives its largest match of a pattern.

    None where it cannot be traced so (it writes an extent down, or reduces what is empty) or has no such match at this
    dtype: an example that casts has its own, and one may match at one width only.
    """
    function, specs = program
    typed = {name: spec.replace("f32", dtype) for name, spec in specs.items()}
    try:
        tape = trace(function, **typed)
    except ToposError:
        return None
    found = [match for match in search(tape, patterns().values()).matches if match.pattern == pattern]
    whole = max(found, key=lambda match: (match.root, len(match.interior)), default=None)
    return None if whole is None or tape.ops[whole.root].type.dtype != dtype else (tape, whole)


def _shaped(function: Callable[..., Any], specs: Mapping[str, str]) -> Iterator[Program]:
    """Gives a program at one extent everywhere, and with nothing in its batch."""
    for extent in (4, 1):
        yield function, {name: re.sub(r"(?<=[\[,])\d+", str(extent), spec) for name, spec in specs.items()}
    first = next(iter(specs.values())).split("[")[1].split(",")[0].rstrip("]")
    yield function, {name: re.sub(rf"\[{first}(?=,)", "[0", spec) for name, spec in specs.items()}


def measure(probe: Probe) -> Measured:
    """Runs a probe through the kernel and compares with float64."""
    tape, match = probe.tape, probe.match
    arrays = arrays_of(probe)
    known = {value: arrays[name] for name, value in match.bindings.items() if known_beforehand(tape, value)}
    produced = produced_by(match)
    out = {}
    for name, value in produced.items():
        type_ = tape.ops[value].type
        out[name] = np.zeros(type_.shape, numpy_dtype(type_.dtype))
    with np.errstate(all="ignore"):
        prepare(tape, match, known).run(arrays, out, 1)
        exact = by_formula(probe, widened(probe, arrays))
        recorded = _recorded(tape, match, arrays)
        worst, agree = 0.0, True
        for name, value in produced.items():
            compare = _compare_huge if probe.kind == "huge" else _compare
            error, same = compare(out[name], exact[name], recorded[value])
            worst, agree = max(worst, error), agree and same
    return Measured(worst, agree)


def arrays_of(probe: Probe) -> dict[str, np.ndarray]:
    """Makes a probe's bindings; a value that is bound twice is one array."""
    tape, match = probe.tape, probe.match
    special = "x" if "x" in match.bindings else next(iter(match.bindings))
    made: dict[int, np.ndarray] = {}
    for name, value in match.bindings.items():
        kind = probe.kind if value == match.bindings[special] or probe.kind in LAYOUTS else "normal"
        made.setdefault(value, _binding(tape, value, name, kind))
    return {name: made[value] for name, value in match.bindings.items()}


def produced_by(match: Match) -> dict[str, int]:
    """Gives what a match's kernel makes: its result and its named results."""
    return {"result": match.root, **{name: values[0] for name, values in match.named.items()}}


def widened(probe: Probe, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Gives bindings as the reference has them: in float64, or longer where that is the result's own dtype."""
    match = probe.match
    longer = probe.tape.ops[match.root].type.dtype == "f64" and match.pattern not in BY_ERF
    return {name: _wide(array, np.longdouble if longer else np.float64) for name, array in arrays.items()}


def by_formula(probe: Probe, wide: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Evaluates the pattern's own formula: what the match produces, by name."""
    match = probe.match
    formula = importlib.import_module(f"topos_core.patterns.{match.pattern}").evaluate
    exact = formula(match.facts, wide)
    return {name: np.asarray(exact["root" if name == "result" else name]) for name in produced_by(match)}


def _recorded(tape: Tape, match: Match, arrays: Mapping[str, np.ndarray]) -> dict[int, np.ndarray]:
    """Computes the match's values with the recorded ops from its bindings."""
    values = {match.bindings[name]: array for name, array in arrays.items()}
    for value in sorted({*match.interior, *match.produced} - values.keys()):
        op = tape.ops[value]
        values[value] = definition(op.name).evaluate([values[o] for o in op.operands], op.attributes, op.type)
    return values


def _compare(got: np.ndarray, exact: np.ndarray, recorded: np.ndarray) -> tuple[float, bool]:
    """Gives the error relative to the largest output, and whether NaN and infinities stand where they should."""
    if got.dtype.kind in "iub":
        return 0.0, bool(np.array_equal(got.reshape(exact.shape), exact))
    wide, exact = _wide(got, exact.dtype.type).reshape(-1), exact.reshape(-1)
    exact = np.where(np.abs(exact) > _largest(got.dtype), np.copysign(np.inf, exact), exact)
    fine = np.isfinite(exact)
    agree = bool(np.array_equal(wide[~fine], exact[~fine], equal_nan=True)) and bool(np.isfinite(wide[fine]).all())
    if not fine.any() or not agree:
        return 0.0, agree
    largest = np.abs(exact[fine]).max()
    error = max(np.abs(wide[fine] - exact[fine]).max() - SMALLEST[str(dtype_name(got.dtype))], 0.0)
    return float(error / largest) if largest else float(error), agree


def _compare_huge(got: np.ndarray, exact: np.ndarray, recorded: np.ndarray) -> tuple[float, bool]:
    """Where squares overflow, a kernel may be as wrong as the recorded ops: gives by how much it is further off."""
    if got.dtype.kind in "iub":
        return _compare(got, exact, recorded)
    wide, exact = _wide(got, exact.dtype.type).reshape(-1), exact.reshape(-1)
    plain = _wide(recorded, exact.dtype.type).reshape(-1)
    fine = np.isfinite(exact) & np.isfinite(plain)
    if not fine.any():
        return 0.0, True
    own, theirs = np.abs(wide[fine] - exact[fine]), np.abs(plain[fine] - exact[fine])
    if not np.isfinite(own).all():
        return 0.0, False
    return float(max((own - theirs).max(), 0.0) / np.abs(exact[fine]).max()), True


def _largest(dtype: np.dtype) -> float:
    """Gives the largest number that rounds to a finite one."""
    if dtype.kind != "f":
        import ml_dtypes

        return float(ml_dtypes.finfo(dtype).max)
    return float(np.finfo(dtype).max)


def _binding(tape: Tape, value: int, name: str, kind: str) -> np.ndarray:
    """Gives a constant's own values, since facts may follow from them, else a probe's."""
    op = tape.ops[value]
    if op.name == "constant":
        return definition(op.name).evaluate([], op.attributes, op.type)
    return _values(op.type, name, kind)


def _values(kind: TensorType, name: str, what: str) -> np.ndarray:
    """Makes a binding's values; a variance is never negative."""
    random = np.random.default_rng(zlib.crc32(f"{kind} {name} {what}".encode()))
    dtype = numpy_dtype(kind.dtype)
    shape = kind.shape
    if dtype.kind in "iub":
        return random.integers(0, 2, shape).astype(dtype)
    if "variance" in name:
        return (random.random(shape) + 0.5).astype(dtype)
    values = random.standard_normal(shape)
    if what == "large mean":
        mean, spread = LARGE[kind.dtype]
        values = values * spread + mean
    elif what == "ties":
        values = np.round(values)
    elif what == "zeros":
        values = np.copysign(0.0, values)
    elif what == "huge":
        values = values * HUGE[kind.dtype]
    elif what == "masked" and values.size:
        values[(0,) * max(values.ndim - 1, 0)] = -np.inf  # a whole row: what a mask leaves of it
    elif what in ("nan", "infinity") and values.size:
        values.reshape(-1)[values.size // 2] = np.nan if what == "nan" else np.inf
    return laid(cast_array(values, dtype), what)


def laid(array: np.ndarray, what: str) -> np.ndarray:
    """Gives an array's elements in another kind of memory (`LAYOUTS`); repeated ones are those of the first row."""
    match what:
        case "moved":
            order = tuple(range(array.ndim))[::-1]
            return np.ascontiguousarray(array.transpose(order)).transpose(order)
        case "gaps" if array.ndim:
            wide = np.zeros((*array.shape[:-1], 3 * array.shape[-1]), array.dtype)
            wide[..., 1::3] = array
            return wide[..., 1::3]
        case "backwards":
            turn = (slice(None, None, -1),) * array.ndim
            return np.ascontiguousarray(array[turn])[turn]
        case "repeated" if array.ndim > 1 and array.size:
            return np.broadcast_to(array[:1], array.shape)
    return array


def _wide(array: np.ndarray, dtype: type) -> np.ndarray:
    return array if array.dtype.kind in "iub" else array.astype(dtype)
