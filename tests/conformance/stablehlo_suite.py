"""StableHLO's own test data on topos's interpreter: each module compares its results with what it expects.

python -m tests.conformance.stablehlo_suite [--verbose]
"""

from __future__ import annotations

import argparse
import collections
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.conformance.onnx_suite import opaque_reason
from topos_core.errors import ToposError
from topos_core.importers.stablehlo_text.places import Places
from topos_core.importers.stablehlo_text.record import functions_of, parse_module
from topos_core.importers.stablehlo_text.walk import Walk
from topos_core.recording.finish import finish
from topos_core.recording.recorder import Recorder, recording
from topos_core.recording.value import Value
from topos_core.run.interpreter import interpret
from topos_core.tape.span import Location
from topos_core.tape.tape import Structure

TOLERANCES = {"f16": 5e-3, "bf16": 2e-2}


@dataclass(frozen=True)
class Outcome:
    """One module: `verdict` is passes, opaque, refused or wrong."""

    name: str
    verdict: str
    reason: str = ""


class Checking(Walk):
    """Keeps what `check.expect_*` compares, as (actual, expected)."""

    pairs: list[tuple[Value, Value]]

    def _operation(self, operation: Any, operands: list[Value], place: Location, depth: int) -> list[Value]:
        if operation.name == "stablehlo.custom_call":
            target = operation.attributes["call_target_name"].value
            if target.startswith("check."):
                self.pairs.append((operands[0], operands[1]))
                return []
        return super()._operation(operation, operands, place, depth)


def corpus() -> Path:
    """Gives the folder: `$TOPOS_CORPUS`, else `../shared/corpus`."""
    return Path(os.environ.get("TOPOS_CORPUS", "../shared/corpus")) / "stablehlo" / "testdata"


def run(path: Path) -> Outcome:
    """Reads a module, runs it, and compares what it says should be compared."""
    pairs: list[tuple[Value, Value]] = []
    text = path.read_text()
    try:
        module = parse_module(text, str(path))
        recorder = Recorder({str(path): text})
        walk = Checking(recorder, Places(str(path), None, recorder.sources), functions_of(module))
        walk.pairs = pairs
        with recording(recorder):
            walk.function("main", [], Location(()))
            leaves = [value for actual, expected in pairs for value in (actual, expected)]
            children = tuple(Structure("leaf", index=at) for at in range(len(leaves)))
            tape = finish(recorder, Structure("tuple", children), leaves)
    except ToposError as error:
        return Outcome(path.name, "refused", f"{error.code}: {error.message}")
    reason = opaque_reason(tape)
    if reason or not pairs:
        return Outcome(path.name, "opaque", reason or "nothing is compared")
    try:
        with np.errstate(all="ignore"):
            arrays = interpret(tape, [])
    except ToposError as error:
        return Outcome(path.name, "wrong", f"the run refuses: {error.message}")
    for at, (actual, _) in enumerate(pairs):
        result, expected = arrays[2 * at], arrays[2 * at + 1]
        exact = result.dtype.kind in "iub"
        tolerance = 0.0 if exact else TOLERANCES.get(actual.type.dtype, 1e-3)
        wide = [each.astype(np.float64) if each.dtype.kind not in "iub" else each for each in (result, expected)]
        if not np.allclose(*wide, rtol=tolerance, atol=tolerance, equal_nan=True):
            apart = np.abs(wide[0].astype(np.float64) - wide[1].astype(np.float64))
            return Outcome(path.name, "wrong", f"apart by {np.nanmax(apart):.3g}")
    return Outcome(path.name, "passes")


def table(outcomes: Iterable[Outcome], *, verbose: bool = False) -> str:
    """Renders the counts, and the reasons of what does not pass."""
    outcomes = list(outcomes)
    counts = collections.Counter(outcome.verdict for outcome in outcomes)
    lines = [f"{len(outcomes)} modules: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())]
    shown = ("wrong", "refused", "opaque") if verbose else ("wrong",)
    lines += [f"{each.verdict:8} {each.name}: {each.reason}" for each in outcomes if each.verdict in shown]
    return "\n".join(lines)


def main() -> None:
    """Runs the test data and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verbose", action="store_true", help="lists every module that does not pass")
    arguments = parser.parse_args()
    print(table([run(path) for path in sorted(corpus().rglob("*.mlir"))], verbose=arguments.verbose))


if __name__ == "__main__":
    main()
