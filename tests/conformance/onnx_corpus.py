"""The models of `$TOPOS_CORPUS/onnx-transform` through the importer, against onnxruntime without its optimiser.

    python -m tests.conformance.onnx_corpus [--verbose]

Every model must import without an exception. Those that onnxruntime runs (open extents are set to 2) must agree with it; opaque
ones are listed with their reason.
"""

from __future__ import annotations

import argparse
import collections
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.conformance.onnx_suite import first_difference, opaque_reason
from topos_core.errors import ToposError
from topos_core.importers.onnx_model.record import record_onnx
from topos_core.run.interpreter import interpret
from topos_core.tape.tape import Tape
from topos_core.tape.type import numpy_dtype

EXTENT = 2
WITH_THE_PAST = {"total_seq_len": 2 * EXTENT}
"""An extent that a model means as the sum of two others."""


@dataclass(frozen=True)
class Outcome:
    """One model: `verdict` is agrees, quantum (see `_a_quantum_apart`), opaque, refused, not run (by onnxruntime) or wrong."""

    name: str
    verdict: str
    reason: str = ""


def corpus() -> Path:
    """Gives the folder: `$TOPOS_CORPUS`, else `../shared/corpus`."""
    return Path(os.environ.get("TOPOS_CORPUS", "../shared/corpus")) / "onnx-transform"


def models(folder: Path) -> list[Path]:
    """Lists the models."""
    return sorted(folder.rglob("*.onnx"))


def run(path: Path, folder: Path) -> Outcome:
    """Imports a model, runs it on seeded inputs, and compares."""
    name = str(path.relative_to(folder))
    import onnx

    model = onnx.load(str(path), load_external_data=False)
    try:
        tape = record_onnx(str(path.resolve()), dims=Extents())
    except ToposError as error:
        return Outcome(name, "refused", f"{error.code}: {error.message}")
    reason = opaque_reason(tape)
    if reason:
        return Outcome(name, "opaque", reason)
    inputs = _inputs(tape)
    try:
        wanted = _onnxruntime(
            path, {tape.names[value]: array for value, array in zip(tape.inputs, inputs, strict=True)}
        )
    except Exception as error:  # onnxruntime's own kinds, which say why it does not run the model
        return Outcome(name, "not run", str(error).splitlines()[0][:160])
    try:
        with np.errstate(all="ignore"):
            results = interpret(tape, inputs)
    except ToposError as error:
        return Outcome(name, "wrong", f"the run refuses: {error.message}")
    halves = any(op.type.dtype in ("f16", "bf16") for op in tape.ops)  # each rounds its own intermediates
    difference = first_difference(results, wanted, *((2e-2, 2e-2) if halves else (1e-3, 1e-4)))
    if difference and _a_quantum_apart(model, results, wanted):
        return Outcome(name, "quantum", difference)
    return Outcome(name, "wrong", difference) if difference else Outcome(name, "agrees")


def _a_quantum_apart(model: Any, results: list[np.ndarray], wanted: list[Any]) -> bool:
    """Tells whether a quantized model differs by one step in at most 0.2 % of the elements: sums beside a tie."""
    from onnx import numpy_helper

    arrays = {each.name: each for each in model.graph.initializer}
    steps = [
        float(numpy_helper.to_array(arrays[node.input[1]]).max())
        for node in model.graph.node
        if node.op_type == "QuantizeLinear" and len(node.input) > 1 and node.input[1] in arrays
    ]
    if not steps:
        return False
    apart = [
        np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64)) for a, b in zip(results, wanted, strict=True)
    ]
    return all(each.max() <= max(steps) * 1.001 and (each > 1e-3).mean() <= 2e-3 for each in apart if each.size)


class Extents(dict[str, int]):
    """Gives every open dimension the same extent; sums of names are worked out by the importer."""

    def get(self, key: Any, default: Any = None) -> Any:
        return default if "+" in key else WITH_THE_PAST.get(key, EXTENT)


def _inputs(tape: Tape) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    arrays = []
    for value in tape.inputs:
        kind = tape.type_of(value)
        dtype = numpy_dtype(kind.dtype)
        if dtype.kind in "iub":
            arrays.append(rng.integers(0, 2, kind.shape).astype(dtype))
        else:
            arrays.append(rng.standard_normal(kind.shape).astype(dtype))
    return arrays


def _onnxruntime(path: Path, inputs: dict[str, np.ndarray]) -> list[Any]:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, inputs))


def table(outcomes: Iterable[Outcome], *, verbose: bool = False) -> str:
    """Renders the counts, and the reasons of what does not agree."""
    outcomes = list(outcomes)
    counts = collections.Counter(outcome.verdict for outcome in outcomes)
    lines = [f"{len(outcomes)} models: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())]
    lines += _listed(outcomes, verbose)
    return "\n".join(lines)


def _listed(outcomes: list[Outcome], verbose: bool) -> Iterator[str]:
    for outcome in outcomes:
        if outcome.verdict == "wrong" or (verbose and outcome.verdict != "agrees"):
            yield f"{outcome.verdict:8} {outcome.name}: {outcome.reason}"


def main() -> None:
    """Runs the corpus and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verbose", action="store_true", help="lists every model that does not agree")
    arguments = parser.parse_args()
    folder = corpus()
    print(table([run(path, folder) for path in models(folder)], verbose=arguments.verbose))


if __name__ == "__main__":
    main()
