"""Proves a plan's matches: by algebra, and by measuring where the algebra cannot say.

What is measured is the match, not a kernel: its own formula and the recorded ops on the same random bindings, once in the
recorded dtypes and once in float64, with small values among them so that an epsilon counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from topos_core.errors import ConfigurationError
from topos_core.matching.catalog import patterns
from topos_core.matching.certificate import Certificate, certify
from topos_core.matching.match import Match
from topos_core.run.interpreter import evaluate
from topos_core.run.widened import widened
from topos_core.tape.tape import Tape
from topos_core.tape.type import FLOATS, TensorType, numpy_dtype

Verdict = Literal["proved", "measured", "refuted", "unknown"]

TOLERANCE: Final = {"f16": 3e-2, "bf16": 2e-1, "f32": 3e-4, "f64": 1e-6}
"""By the root's dtype: max |formula - recorded| / max |recorded|; f64 is also what a program in float64 must keep."""
SCALES: Final = (1.0, 1e-3, 30.0)
LARGEST: Final = 1 << 26
"""Elements of all bindings that are worth measuring with."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What is known of one match.

    Args:
        match: The match.
        verdict: `proved` by algebra; `measured` equal where algebra cannot say; `refuted` by either; `unknown` where the
            program is too large to measure.
        certificate: What the algebra says.
        difference: Largest relative difference measured, in float64, or as recorded where integers or bools come out; None where it
            was not measured.
    """

    match: Match
    verdict: Verdict
    certificate: Certificate
    difference: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Gives plain data."""
        difference = self.difference
        return {
            "id": self.match.id,
            "pattern": self.match.pattern,
            "verdict": self.verdict,
            "answer": self.certificate.answer,
            "reason": self.certificate.reason,
            "samples": self.certificate.samples,
            "assumed": list(self.certificate.assumed),
            "difference": difference if difference is None or math.isfinite(difference) else "inf",
        }


def prove(
    tape: Tape, matches: Iterable[Match], progress: Callable[[str, int, int], None] | None = None
) -> tuple[Proof, ...]:
    """Proves every match, each once."""
    distinct = list({match.id: match for match in matches}.values())
    proofs = []
    for number, match in enumerate(distinct):
        if progress is not None:
            progress(f"proving {match.pattern}", number, len(distinct))
        proofs.append(_proved(tape, match))
    return tuple(proofs)


def _proved(tape: Tape, match: Match) -> Proof:
    certificate = certify(tape, match)
    if certificate.answer == "true":
        return Proof(match, "proved", certificate)
    if certificate.answer == "false":
        return Proof(match, "refuted", certificate)
    if patterns()[match.pattern].evaluate is None or _too_large(tape, match):
        return Proof(match, "unknown", certificate)
    try:
        own = difference(tape, match)
        # what is rounded to integers depends on where floats are rounded before: in float64 it is another program
        rounds = any(tape.type_of(value).dtype not in FLOATS for value in (match.root, *match.produced))
        wide = own if rounds else difference(widened(tape), match)
    except ConfigurationError:  # a foreign op on the way
        return Proof(match, "unknown", certificate)
    inside = own <= TOLERANCE[_float_of(tape.type_of(match.root))] and wide <= TOLERANCE["f64"]
    return Proof(match, "measured" if inside else "refuted", certificate, max(own, wide) if not inside else wide)


def difference(tape: Tape, match: Match, scales: Sequence[float] = SCALES, seed: int = 0) -> float:
    """Measures the largest relative difference of the formula from the recorded ops; inf where NaNs stand elsewhere.

    Args:
        scales: Of the values that go in as x.
    """
    formula = patterns()[match.pattern].evaluate
    assert formula is not None
    produced = {"root": (match.root,), **match.named}
    worst = 0.0
    for number, scale in enumerate(scales):
        rng = np.random.default_rng((seed, number))
        bound = {value: _values(tape, value, name, scale, rng) for name, value in match.bindings.items()}
        wanted = [value for values in produced.values() for value in values]
        recorded = evaluate(tape, {**_elsewhere(tape, match, rng), **bound}, wanted)
        with np.errstate(all="ignore"):
            answer: Mapping[str, Any] = formula(
                match.facts, {name: np.asarray(bound[value]) for name, value in match.bindings.items()}
            )
        for name, values in produced.items():
            for value in values:
                worst = max(worst, _relative(np.asarray(answer[name]), recorded[value]))
    return worst


def _relative(got: np.ndarray, want: np.ndarray) -> float:
    if got.size != want.size:
        return math.inf
    got = got.reshape(want.shape)
    if want.dtype.kind in "iub":
        return 0.0 if np.array_equal(got, want) else math.inf
    got, want = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(all="ignore"):
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        gap = np.where(same, 0.0, np.abs(got - want))
        scale = float(np.abs(want[np.isfinite(want)]).max(initial=0.0))
    if np.isnan(gap).any() or np.isinf(gap).any():
        return math.inf
    largest = float(gap.max(initial=0.0))
    return largest / scale if scale else largest


def _elsewhere(tape: Tape, match: Match, rng: np.random.Generator) -> dict[int, np.ndarray]:
    """Gives values to inputs and parameters that are not bound: a twin of a bound value may read them."""
    return {
        value: _values(tape, value, tape.names.get(value, ""), 1.0, rng)
        for value in (*tape.inputs, *tape.parameters)
        if value not in match.bindings.values()
    }


def _values(tape: Tape, value: int, name: str, scale: float, rng: np.random.Generator) -> np.ndarray:
    op = tape.ops[value]
    kind = op.type
    if op.name == "constant":
        return np.broadcast_to(op.attributes["value"], kind.shape)
    dtype = numpy_dtype(kind.dtype)
    if kind.dtype == "bool":
        return np.asarray(rng.random(kind.shape) < 0.7)
    if kind.dtype not in FLOATS:
        low, high = tape.ranges.get(value, (0, 5))
        return rng.integers(low, high, kind.shape).astype(dtype)
    drawn = rng.standard_normal(kind.shape) * (scale if name in ("x", "logits") else 1.0)
    if "variance" in name:
        drawn = np.abs(drawn) + 0.5
    return np.asarray(drawn).astype(dtype)


def _too_large(tape: Tape, match: Match) -> bool:
    sizes = [tape.type_of(value).size for value in match.bindings.values()]
    inside = [tape.type_of(value).size for value in match.interior]
    return sum(sizes) + sum(inside) > LARGEST


def _float_of(kind: TensorType) -> str:
    return kind.dtype if kind.dtype in FLOATS else "f64"
