"""The consumer `home`: this machine's kernels. One file per pattern stands beside this one; the folder is walked."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Literal

import numpy as np

from topos_core.kernels.kernel import Decline, Offer, Terms
from topos_core.kernels.margins import Margins
from topos_core.kernels.prepared import Prepared
from topos_core.matching.facts import CoreFacts, MultiHeadFacts
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape

CONVOLUTIONS = ("convolution", "conv_bn_activation")
"""Patterns whose kernels are chosen by what is switched off, and read an image in planes that another kernel wrote."""
STEPWISE = ("elementwise_chain", "sibling_elementwise")
"""Patterns whose kernels round every step as it is recorded."""


@dataclass(frozen=True, slots=True)
class Home:
    """Asks a pattern's file; numba is loaded when a match is prepared, never by an offer."""

    name: str = "home"

    def concerns(self, pattern: str, /) -> bool:
        """Says yes: whatever is recognised could have a kernel."""
        return True

    def offer(self, tape: Tape, match: Match, terms: Terms, /) -> Offer | Decline:
        """Says whether and how this machine would run the match."""
        if match.pattern not in patterns():
            return Decline("TP206", "no-kernel", f"home has no kernel for {match.pattern}")
        answer: Offer | Decline = _file(match.pattern).offer(tape, match, terms)
        if isinstance(answer, Decline) or answer.exact:
            return answer
        safe = _range(tape, match)
        return answer if safe is None else answer._replace(range=safe)


def prepare(
    tape: Tape,
    match: Match,
    constants: Mapping[int, np.ndarray],
    off: frozenset[str] = frozenset(),
    margins: Margins | None = None,
) -> Prepared:
    """Makes a taken match ready to run.

    Args:
        tape: The program.
        match: What was taken.
        constants: The values that are known before a run.
        off: What the request switched off; a pattern with kernels that can be (`variants.VARIANTS`) asks for it.
        margins: The planes in which `x` lies where the plan has put it into such.
    """
    make = _file(match.pattern).prepare
    prepared: Prepared = (
        make(tape, match, constants, off, margins) if match.pattern in CONVOLUTIONS else make(tape, match, constants)
    )
    return prepared


def _range(tape: Tape, match: Match) -> Literal["shift", "f32"] | None:
    """Tells whether a kernel stays finite where recorded steps overflow, and by what."""
    inner = match.facts.attention if isinstance(match.facts, MultiHeadFacts) else match.facts
    if isinstance(inner, CoreFacts) and inner.options.get("shifted") == "no":
        return "shift"
    if match.pattern in STEPWISE:
        return None
    ops, interior = tape.ops, match.interior
    for value in match.computing:
        if ops[value].type.dtype == "f16" and value in interior:
            return "f32"
    return None


@cache
def patterns() -> frozenset[str]:
    """Lists the patterns that have a kernel."""
    names = (module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return frozenset(name for name in names if name != "manifest")


@cache
def _file(pattern: str) -> ModuleType:
    return importlib.import_module(f"topos_core.kernels.home.{pattern}")
