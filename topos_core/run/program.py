"""A plan made ready to run: parameters bound, constants folded, kernels prepared, one entry per step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from topos_core.kernels.home.manifest import prepare
from topos_core.kernels.prepared import Prepared
from topos_core.ops.catalog import definitions
from topos_core.ops.definition import Evaluate
from topos_core.plan.plan import PlanData
from topos_core.plan.schedule import Step
from topos_core.run.blas import blas_threads
from topos_core.run.interpreter import NOT_COMPUTABLE, Parameters, bind_parameters, not_computable
from topos_core.run.order import Order, reading_order
from topos_core.run.pool import Pool
from topos_core.tape.tape import Tape
from topos_core.tape.type import TensorType, numpy_dtype

FOLDED_GROWTH: Final = 4
"""A folded value may hold so many times the bytes of what it is made of; a splat must not become a large array."""

After = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """One recorded op."""

    value: int
    evaluate: Evaluate
    attributes: Mapping[str, Any]
    type: TensorType
    operands: tuple[int, ...]
    frees: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TakenStep:
    """One taken match; a named result may have several producers, each of its own shape.

    `order` says how the root lies in memory where that is not row-major.
    """

    value: int
    prepared: Prepared
    bindings: tuple[tuple[str, int], ...]
    type: TensorType
    named: tuple[tuple[str, tuple[tuple[int, TensorType], ...]], ...]
    frees: tuple[int, ...]
    order: Order | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """What one plan with one set of parameters runs. Immutable but for its pool; safe to run from several threads.

    Args:
        tape: The spec.
        steps: In execution order.
        known: Values that exist before a run and that some step or the caller reads.
        kept: Values that a run gives.
        multiplies: Whether a recorded step calls BLAS.
        pool: Buffers of kernel results.
    """

    tape: Tape
    steps: tuple[RecordedStep | TakenStep, ...]
    known: Mapping[int, np.ndarray]
    kept: tuple[int, ...]
    multiplies: bool
    pool: Pool

    def run(
        self, inputs: Mapping[int, np.ndarray], threads: int, blas: int, after: After | None = None
    ) -> dict[int, np.ndarray]:
        """Computes the kept values from checked inputs; they may share memory with each other and with the inputs.

        Args:
            inputs: One array per input value.
            threads: How many threads kernels may use.
            blas: How many threads recorded products use; 1 gives the interpreter's bits.
            after: Is told the value of every step that is done.
        """
        with np.errstate(all="ignore"):
            if not self.multiplies:
                return self._steps(inputs, threads, after)
            with blas_threads(blas):
                return self._steps(inputs, threads, after)

    def _steps(self, inputs: Mapping[int, np.ndarray], threads: int, after: After | None) -> dict[int, np.ndarray]:
        values = {**self.known, **inputs}
        for step in self.steps:
            if isinstance(step, RecordedStep):
                operands = [values[operand] for operand in step.operands]
                try:
                    values[step.value] = step.evaluate(operands, step.attributes, step.type)
                except NOT_COMPUTABLE as problem:
                    raise not_computable(self.tape, step.value, problem) from problem
                del operands
            else:
                self._take(step, values, threads)
            for value in step.frees:
                del values[value]
            if after is not None:
                after(step.value)
        return {value: values[value] for value in self.kept}

    def _take(self, step: TakenStep, values: dict[int, np.ndarray], threads: int) -> None:
        kind = step.type if step.order is None else step.order.type
        root = self.pool.empty(kind.shape, numpy_dtype(kind.dtype))
        if step.order is not None:
            root = np.ndarray(step.type.shape, root.dtype, root, strides=step.order.strides)
        out = {"result": root}
        for name, producers in step.named:
            _, kind = producers[0]
            out[name] = self.pool.empty(kind.shape, numpy_dtype(kind.dtype))
        step.prepared.run({name: values[value] for name, value in step.bindings}, out, threads)
        values[step.value] = out["result"]
        for name, producers in step.named:
            for value, kind in producers:
                values[value] = out[name].reshape(kind.shape)


def make_program(plan: PlanData, parameters: Parameters | None = None) -> Program:
    """Binds parameters, folds what depends on nothing else, and prepares every taken match.

    Raises:
        ConfigurationError: A parameter is missing, unknown or of another type (TP502).
    """
    tape = plan.tape
    known = {value: _snapshot(array) for value, array in bind_parameters(tape, parameters).items()}
    table = definitions()
    for value in plan.schedule.sources:
        op = tape.ops[value]
        if op.name == "constant":
            known[value] = table[op.name].evaluate([], op.attributes, op.type)
    remaining = _fold(tape, plan.schedule.steps, known)
    kept = plan.schedule.kept
    readers: dict[int, list[Step]] = {}
    for step in remaining:
        for value in step.reads:
            readers.setdefault(value, []).append(step)
    off = plan.request.off
    steps = tuple(_ready(tape, step, known, readers, frozenset(kept), off) for step in remaining)
    read = {value for step in remaining for value in step.reads} | set(kept)
    # A match reads its bindings at run time only where preparing did not use them up; keeping all is simple and right.
    return Program(
        tape=tape,
        steps=steps,
        known={value: array for value, array in known.items() if value in read},
        kept=kept,
        multiplies=any(tape.ops[step.value].name == "matmul" for step in remaining if step.match is None),
        pool=Pool(),
    )


def _snapshot(array: np.ndarray) -> np.ndarray:
    """Keeps what the caller may still write to."""
    if not array.flags.writeable:
        return array
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def _fold(tape: Tape, steps: Sequence[Step], known: dict[int, np.ndarray]) -> list[Step]:
    """Computes recorded steps whose operands are known and that stay small; gives the others."""
    table = definitions()
    remaining = []
    with np.errstate(all="ignore"), blas_threads(1):
        for step in steps:
            op = tape.ops[step.value]
            row = table[op.name]
            if step.match is not None or not op.operands or not all(o in known for o in op.operands):
                remaining.append(step)
                continue
            operands = [known[o] for o in op.operands]
            limit = FOLDED_GROWTH * sum(map(_held, operands))
            if op.type.bytes > limit and row.kind != "movement":
                remaining.append(step)
                continue
            try:
                folded = row.evaluate(operands, op.attributes, op.type)
            except NOT_COMPUTABLE as problem:
                raise not_computable(tape, step.value, problem) from problem
            if _held(folded) > limit:
                remaining.append(step)
            else:
                known[step.value] = folded
    return remaining


def _held(array: np.ndarray) -> int:
    """Counts the bytes that an array's elements occupy; an axis of stride 0 repeats them."""
    elements = 1
    for extent, stride in zip(array.shape, array.strides, strict=True):
        elements *= extent if stride else min(extent, 1)
    return elements * array.itemsize


def _ready(
    tape: Tape,
    step: Step,
    known: Mapping[int, np.ndarray],
    readers: Mapping[int, Sequence[Step]],
    kept: frozenset[int],
    off: frozenset[str],
) -> RecordedStep | TakenStep:
    op = tape.ops[step.value]
    frees = tuple(value for value in step.frees if value not in known)
    if step.match is None:
        return RecordedStep(step.value, definitions()[op.name].evaluate, op.attributes, op.type, op.operands, frees)
    match = step.match
    named = tuple(
        (name, tuple((value, tape.ops[value].type) for value in values)) for name, values in match.named.items()
    )
    prepared = prepare(tape, match, known, off)
    order = reading_order(tape, match.root, readers, kept) if prepared.any_order else None
    return TakenStep(match.root, prepared, tuple(match.bindings.items()), op.type, named, frees, order)
