"""ONNX's own backend suite on topos's interpreter: what passes, what is opaque and why, what is wrong.

    python -m tests.conformance.onnx_suite [KIND ...]

A case whose operator needs an operand as a number (a shape, axes) while the case feeds it as an input is imported once
more with its integer and one-element inputs as numbers of the model; such passes are counted apart.
"""

from __future__ import annotations

import argparse
import collections
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from topos_core.errors import ToposError
from topos_core.importers.onnx_model.record import record_model
from topos_core.run.interpreter import interpret
from topos_core.tape.tape import Tape

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


@dataclass(frozen=True)
class Outcome:
    """One case: `verdict` is passes, bound (passes with numbers bound), opaque, refused or wrong."""

    kind: str
    name: str
    operators: tuple[str, ...]
    verdict: str
    reason: str = ""


def cases(kind: str) -> list[Any]:
    """Gives the suite's cases of one kind, in order of their names."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sorted(load_model_tests(kind=kind), key=lambda case: case.name)


def run(kind: str, case: Any) -> Outcome:
    """Imports a case, runs it on its data sets and compares."""
    import onnx

    folder = Path(case.model_dir or ".")
    model = case.model if case.model is not None else onnx.load(str(folder / "model.onnx"), load_external_data=False)
    path = str((folder / "model.onnx").resolve())
    operators = tuple(dict.fromkeys(node.op_type for node in model.graph.node))
    sets = list(_data_sets(case, model))
    outcomes = [_run_one(kind, case, model, path, operators, *each) for each in sets]
    worst = {"wrong": 0, "refused": 1, "opaque": 2, "bound": 3, "passes": 4}
    if not outcomes:
        return Outcome(kind, case.name, operators, "refused", "the case has no data")
    return min(outcomes, key=lambda outcome: worst[outcome.verdict])


def _run_one(
    kind: str, case: Any, model: Any, path: str, operators: tuple[str, ...], inputs: dict[str, Any], wanted: list[Any]
) -> Outcome:
    def outcome(verdict: str, reason: str = "") -> Outcome:
        return Outcome(kind, case.name, operators, verdict, reason)

    numbers = {
        name: array for name, array in inputs.items() if isinstance(array, np.ndarray) and _is_number(name, array)
    }
    dims = dict(_extents(model, inputs))
    first = ""
    for known in ({}, numbers):
        try:
            tape = record_model(model, path, dims=dims, known=known)
        except ToposError as error:
            return outcome("refused", f"{error.code}: {error.message}")
        reason = opaque_reason(tape)
        if reason:
            first = first or reason
            continue
        given = [inputs[tape.names[value]] for value in tape.inputs]
        try:
            with np.errstate(all="ignore"):
                results = interpret(tape, given)
        except ToposError as error:
            return outcome("wrong", f"the run refuses: {error.message}")
        difference = first_difference(results, wanted, case.rtol, case.atol)
        verdict = "bound" if known else "passes"
        return outcome("wrong", difference) if difference else outcome(verdict, first)
    return outcome("opaque", first)


def _is_number(name: str, array: np.ndarray) -> bool:
    """Tells settings from data: integers, bools, single numbers, and the factors of a resize."""
    return array.dtype.kind != "O" and (array.dtype.kind in "iub" or array.size == 1 or name in ("scales", "roi"))


def opaque_reason(tape: Tape) -> str:
    """Names the first opaque op that a result needs."""
    for op in tape.ops:
        if op.name == "opaque":
            return f"{op.attributes['foreign']}: {op.attributes['note']}"
    return ""


def first_difference(results: Sequence[np.ndarray], wanted: Sequence[Any], rtol: float, atol: float) -> str:
    """Says where results leave what is wanted, as ONNX's own runner compares."""
    if len(results) != len(wanted):
        return f"{len(results)} results, {len(wanted)} wanted"
    for at, (result, expected) in enumerate(zip(results, wanted, strict=True)):
        if not isinstance(expected, np.ndarray):
            return f"result {at}: a {type(expected).__name__} is wanted"
        if result.shape != expected.shape or result.dtype != expected.dtype:
            return f"result {at}: {result.dtype}{list(result.shape)}, {expected.dtype}{list(expected.shape)} wanted"
        rtol = (
            max(rtol, 2**-6) if result.dtype.name == "bfloat16" else rtol
        )  # as the official runner: two steps of bf16
        wide = [each.astype(np.float64) if each.dtype.kind not in "iub" else each for each in (result, expected)]
        if not np.allclose(*wide, rtol=rtol, atol=atol, equal_nan=True):
            with np.errstate(all="ignore"):
                apart = np.abs(wide[0].astype(np.float64) - wide[1].astype(np.float64))
            return f"result {at}: apart by {np.nanmax(apart) if apart.size else 0:.3g}"
    return ""


def _data_sets(case: Any, model: Any) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    from onnx import load_tensor, numpy_helper

    initial = {each.name for each in model.graph.initializer}
    names = [each.name for each in model.graph.input]
    if case.data_sets:
        for inputs, outputs in case.data_sets:
            yield dict(zip(names, map(_array, inputs), strict=False)), [_array(each) for each in outputs]
        return
    for folder in sorted(Path(case.model_dir).glob("test_data_set_*")):
        inputs = [numpy_helper.to_array(load_tensor(str(each))) for each in _numbered(folder, "input")]
        outputs = [numpy_helper.to_array(load_tensor(str(each))) for each in _numbered(folder, "output")]
        free = [name for name in names if name not in initial] if len(inputs) < len(names) else names
        yield dict(zip(free, inputs, strict=False)), outputs


def _numbered(folder: Path, what: str) -> list[Path]:
    return sorted(folder.glob(f"{what}_*.pb"), key=lambda path: int(path.stem.rpartition("_")[2]))


def _array(given: Any) -> Any:
    from onnx import TensorProto, numpy_helper

    if isinstance(given, TensorProto):
        return numpy_helper.to_array(given)
    return np.asarray(given) if isinstance(given, np.generic) else given


def _extents(model: Any, inputs: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for each in model.graph.input:
        array = inputs.get(each.name)
        if isinstance(array, np.ndarray) and each.type.HasField("tensor_type"):
            for axis, (dim, extent) in enumerate(zip(each.type.tensor_type.shape.dim, array.shape, strict=False)):
                if not dim.HasField("dim_value"):
                    yield dim.dim_param or f"{each.name}_{axis}", extent


def table(outcomes: Iterable[Outcome], *, verbose: bool = False) -> str:
    """Renders counts by kind, and by operator where not everything passes."""
    outcomes = list(outcomes)
    lines = [f"{'kind':20} {'cases':>6} {'passes':>7} {'bound':>6} {'opaque':>7} {'refused':>8} {'wrong':>6}"]
    for kind in dict.fromkeys(outcome.kind for outcome in outcomes):
        mine = [outcome for outcome in outcomes if outcome.kind == kind]
        counts = collections.Counter(outcome.verdict for outcome in mine)
        lines.append(
            f"{kind:20} {len(mine):6} {counts['passes']:7} {counts['bound']:6} {counts['opaque']:7} {counts['refused']:8} {counts['wrong']:6}"
        )
    lines.append("")
    lines.append(
        f"{'operator (first of the model)':32} {'passes':>7} {'bound':>6} {'opaque':>7} {'refused':>8} {'wrong':>6}  why not"
    )
    grouped: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        operator = outcome.operators[0] if len(outcome.operators) == 1 else outcome.name.split("_expanded")[0]
        grouped.setdefault(operator if len(outcome.operators) == 1 else "(several)", []).append(outcome)
    for operator, mine in sorted(grouped.items()):
        counts = collections.Counter(outcome.verdict for outcome in mine)
        why = next((outcome.reason for outcome in mine if outcome.verdict in ("opaque", "refused", "wrong")), "")
        lines.append(
            f"{operator:32} {counts['passes']:7} {counts['bound']:6} {counts['opaque']:7} {counts['refused']:8} {counts['wrong']:6}  {why[:120]}"
        )
    if verbose:
        lines += ["", *(f"{o.verdict:8} {o.kind}/{o.name}: {o.reason}" for o in outcomes if o.verdict != "passes")]
    return "\n".join(lines)


def main() -> None:
    """Runs the suites named on the command line and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--verbose", action="store_true", help="lists every case that does not simply pass")
    arguments = parser.parse_args()
    outcomes = [run(kind, case) for kind in arguments.kinds or KINDS for case in cases(kind)]
    print(table(outcomes, verbose=arguments.verbose))


if __name__ == "__main__":
    main()
