"""Measures what targets lose when they expand batch norms; its rows go into topos_core/kernels/stablehlo/fidelity.py.

    python benchmarks/raise_fidelity.py        needs jax; IREE where it is installed

Each row: the target, the pattern, the mean of x (deviation 1, shape [256, 4], f32), and max|got - f64| / max|f64| of
the raised op, of the recorded ops on the same target, of the recorded ops in NumPy, and of rounding x once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from topos_core.emission.backend import run_iree, run_xla
from topos_core.emission.module import emit, emit_matches
from topos_core.errors import ConfigurationError
from topos_core.matching.facts import Layout, NormFacts
from topos_core.matching.match import Match
from topos_core.ops.catalog import definition
from topos_core.run.interpreter import interpret
from topos_core.tape.op import Op
from topos_core.tape.span import Location
from topos_core.tape.tape import Observation, Structure, Tape
from topos_core.tape.type import TensorType, numpy_dtype

ROWS, CHANNELS, EPSILON = 256, 4, 1e-5
MEANS = (0.0, 10.0, 100.0, 1e3, 1e4, 1e5)


def program(training: bool, dtype: str) -> tuple[Tape, Match]:
    """Gives the recorded formula and its match."""
    ops: list[Op] = []
    full, vector = TensorType(dtype, (ROWS, CHANNELS)), TensorType(dtype, (CHANNELS,))
    number = numpy_dtype(dtype).type

    def op(name: str, *operands: int, **attributes: Any) -> int:
        kind = definition(name).infer([ops[operand].type for operand in operands], attributes)
        ops.append(Op(name, operands, attributes, kind, 0))
        return len(ops) - 1

    def spread(value: int) -> int:
        return op("broadcast", value, shape=full.shape)

    def mean_of(value: int) -> int:
        return op("div", op("sum", value, axes=(0,), accumulate=dtype), op("constant", value=number(ROWS), type=vector))

    names = ("x", "scale", "shift") if training else ("x", "scale", "shift", "mean", "variance")
    given = {name: op("input", type=full if name == "x" else vector) for name in names}
    first = len(ops)
    mean = mean_of(given["x"]) if training else given["mean"]
    centred = op("sub", given["x"], spread(mean))
    variance = mean_of(op("mul", centred, centred)) if training else given["variance"]
    safe = op("sqrt", op("add", variance, op("constant", value=number(EPSILON), type=vector)))
    scaled = op("mul", op("div", centred, spread(safe)), spread(given["scale"]))
    root = op("add", scaled, spread(given["shift"]))
    inputs, leaf = tuple(given.values()), Structure("leaf", index=0)
    readers = (Observation(root, "output", None, 0),)
    tape = Tape(tuple(ops), inputs, (), (root,), leaf, {}, readers, (Location(()),), {})
    layout = Layout(full.shape, ("n", "c"), (0, 0))
    pattern = "batch_norm_training" if training else "batch_norm_inference"
    interior = frozenset(range(first, root))
    facts = NormFacts(layout, layout, CHANNELS, ROWS, EPSILON)
    return tape, Match(pattern, root, given, interior, interior | {root}, {}, facts)


def error(got: np.ndarray, reference: np.ndarray) -> float:
    """Gives max|got - reference| / max|reference|; NaN where got has one."""
    return float(np.abs(got - reference).max() / np.abs(reference).max())


def measure(training: bool, mean: float) -> None:
    """Prints the rows of one probe."""
    tape, match = program(training, "f32")
    precise, _ = program(training, "f64")
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((ROWS, CHANNELS)) + mean).astype(np.float32)
    vectors = [np.ones(CHANNELS), np.zeros(CHANNELS), x.mean(0, dtype=np.float64), x.var(0, dtype=np.float64)]
    inputs = [x, *(vector.astype(np.float32) for vector in vectors[: len(tape.inputs) - 1])]
    (reference,) = interpret(precise, [value.astype(np.float64) for value in inputs])
    (oracle,) = interpret(tape, inputs)
    rounding = float(np.spacing(np.float32(mean + 1)))
    for name, run in (("xla", run_xla), ("iree", run_iree)):
        try:
            raised, recorded = run(emit_matches(tape, [match]), inputs)[0], run(emit(tape), inputs)[0]
        except ConfigurationError as missing:
            print(f"{name:5} skipped: {missing}")
            continue
        figures = [error(got, reference) for got in (raised, recorded, oracle)]
        print(f"{name:5} {match.pattern:21} {mean:8g} " + " ".join(f"{figure:9.2g}" for figure in (*figures, rounding)))


def main() -> None:
    """Prints every row."""
    print(f"{'':5} {'pattern':21} {'mean':>8} {'raised':>9} {'recorded':>9} {'NumPy':>9} {'rounding':>9}")
    for training in (True, False):
        for mean in MEANS:
            measure(training, mean)


if __name__ == "__main__":
    main()
