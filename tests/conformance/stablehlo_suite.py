"""StableHLO's own test data and interpreter tests on topos's interpreter: each compares its results with what it expects.

    python -m tests.conformance.stablehlo_suite [KIND ...] [--verbose]

`testdata` has one function a file, with the expected numbers in a function of their own; `interpret` has several modules a
file and several functions a module, each of which checks constants. The `check` dialect, which jaxlib has not, is written
as custom calls before parsing.
"""

from __future__ import annotations

import argparse
import collections
import os
import re
from collections.abc import Iterable, Iterator
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

KINDS = ("testdata", "interpret")
TOLERANCES = {"f16": 5e-3, "bf16": 2e-2}
_CHECK = re.compile(
    r"check\.expect_(?:almost_)?eq_const\s+(?P<value>%[\w#]+),\s*(?P<numbers>dense<.*?>)\s*:\s*(?P<type>tensor<[^<>]*(?:<[^<>]*>)?>)",
    re.DOTALL,
)
_RELATION = re.compile(
    r"check\.expect_(?:almost_)?eq\s+(?P<pair>%[\w#]+,\s*%[\w#]+)\s*:\s*(?P<type>tensor<[^<>]*(?:<[^<>]*>)?>)"
)


@dataclass(frozen=True)
class Outcome:
    """One case: `verdict` is passes, opaque, not parsed (by jaxlib), refused or wrong."""

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
    return Path(os.environ.get("TOPOS_CORPUS", "../shared/corpus")) / "stablehlo"


def cases(kind: str) -> Iterator[tuple[str, str, str]]:
    """Gives the cases of one kind as name, text of a module, and function."""
    for path in sorted((corpus() / kind).rglob("*.mlir")):
        text = path.read_text()
        if kind == "testdata":
            yield path.name, text, "main"
            continue
        for number, part in enumerate(re.split(r"^// -----.*$", text, flags=re.MULTILINE), 1):
            for function in re.findall(r"func\.func\s+(?:public\s+)?@(\w+)\(\)\s*\{", part):
                yield f"{path.name}#{number} {function}", _checks_written_out(part), function


def _checks_written_out(text: str) -> str:
    """Writes the check dialect as custom calls over constants."""
    count = 0

    def constant(found: re.Match[str]) -> str:
        nonlocal count
        count += 1
        value, kind = found["value"], found["type"]
        made = f"%expected_{count} = stablehlo.constant {found['numbers']} : {kind}"
        return f"{made}\n" + _call(f"{value}, %expected_{count}", kind)

    text = _CHECK.sub(constant, text)
    return _RELATION.sub(lambda found: _call(found["pair"], found["type"]), text)


def _call(pair: str, kind: str) -> str:
    return f"stablehlo.custom_call @check.expect_eq({pair}) {{has_side_effect = true}} : ({kind}, {kind}) -> ()"


def run(name: str, text: str, function: str) -> Outcome:
    """Reads a module, runs one function of it, and compares what it says should be compared."""
    pairs: list[tuple[Value, Value]] = []
    path = Path("/") / "suite" / name.partition("#")[0]
    try:
        module = parse_module(text, str(path))
        recorder = Recorder({str(path): text})
        walk = Checking(recorder, Places(str(path), None, recorder.sources), functions_of(module))
        walk.pairs = pairs
        with recording(recorder):
            walk.function(function, [], Location(()))
            leaves = [value for actual, expected in pairs for value in (actual, expected)]
            children = tuple(Structure("leaf", index=at) for at in range(len(leaves)))
            tape = finish(recorder, Structure("tuple", children), leaves)
    except ToposError as error:
        missing = "no StableHLO module" in error.message  # of a dialect or a version that this jaxlib has not
        return Outcome(name, "not parsed" if missing else "refused", f"{error.code}: {error.message}")
    reason = opaque_reason(tape)
    if reason or not pairs:
        return Outcome(name, "opaque", reason or "nothing is compared")
    try:
        with np.errstate(all="ignore"):
            arrays = interpret(tape, [])
    except ToposError as error:
        return Outcome(name, "wrong", f"the run refuses: {error.message}")
    for at, (actual, _) in enumerate(pairs):
        result, expected = arrays[2 * at], arrays[2 * at + 1]
        exact = result.dtype.kind in "iub"
        tolerance = 0.0 if exact else TOLERANCES.get(actual.type.dtype, 1e-3)
        wide = [each.astype(np.float64) if each.dtype.kind not in "iub" else each for each in (result, expected)]
        if not np.allclose(*wide, rtol=tolerance, atol=tolerance, equal_nan=True):
            apart = np.abs(wide[0].astype(np.float64) - wide[1].astype(np.float64))
            return Outcome(name, "wrong", f"apart by {np.nanmax(apart):.3g}")
    return Outcome(name, "passes")


def table(outcomes: Iterable[Outcome], *, verbose: bool = False) -> str:
    """Renders the counts, and the reasons of what does not pass."""
    outcomes = list(outcomes)
    counts = collections.Counter(outcome.verdict for outcome in outcomes)
    lines = [f"{len(outcomes)} cases: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())]
    shown = ("wrong", "refused", "not parsed", "opaque") if verbose else ("wrong", "refused")
    lines += [f"{each.verdict:8} {each.name}: {each.reason}" for each in outcomes if each.verdict in shown]
    return "\n".join(lines)


def main() -> None:
    """Runs the suites named on the command line and prints a table for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--verbose", action="store_true", help="lists every case that does not pass")
    arguments = parser.parse_args()
    for kind in arguments.kinds or KINDS:
        print(kind)
        print(table([run(*case) for case in cases(kind)], verbose=arguments.verbose))


if __name__ == "__main__":
    main()
