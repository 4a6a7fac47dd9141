"""A plan made ready to run: parameters bound, constants folded, kernels prepared, one entry per step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from topos_core.cost.memory import contiguous_strides
from topos_core.kernels import workers
from topos_core.kernels.compiling import processors
from topos_core.kernels.home.manifest import prepare
from topos_core.kernels.launch import address_of
from topos_core.kernels.prepared import Prepared
from topos_core.kernels.zeros import Zeros
from topos_core.ops.catalog import definitions
from topos_core.ops.definition import OpDefinition
from topos_core.plan.plan import PlanData
from topos_core.plan.schedule import Step
from topos_core.run.blas import blas_threads
from topos_core.run.interpreter import (
    NOT_COMPUTABLE,
    Expected,
    Parameters,
    bind_parameters,
    expected_inputs,
    not_computable,
)
from topos_core.run.pool import Pool
from topos_core.tape.tape import Tape
from topos_core.tape.type import TensorType, numpy_dtype

After = Callable[[int], None]

BLAS_FLOPS: Final = 1 << 31
"""The least recorded product that BLAS gets several threads for in a plan whose kernels use them too.

OpenBLAS' threads stay awake for 2**26 cycles after a product, 26 ms at 2.6 GHz, on the processor that the kernels' workers
need: ResNet-18, whose last product is recorded (1 MFLOP), took 25 ms on two threads with them and 16 without. Such a
product takes 19 ms on one thread at 110 GF/s.
"""


@dataclass(frozen=True, slots=True)
class Target:
    """Memory for a value that a step writes.

    Args:
        over: A value that ends with the step and is written over.
        shape, dtype: Of the value.
        strides: In bytes; they fill the buffer.
        size: The buffer's bytes, zeros around the value included.
        offset: Where the buffer starts in the arena; None where it is the caller's.
        first: Bytes from there to the value's first element.
        zeros: Writes what lies around the value; None where the value is all.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    strides: tuple[int, ...]
    size: int
    offset: int | None
    over: int | None
    first: int = 0
    zeros: Zeros | None = None

    def array(self, values: Mapping[int, np.ndarray], arena: np.ndarray, pool: Pool, threads: int = 1) -> np.ndarray:
        """Looks at that memory; zeros stand around the value that is to be written."""
        if self.over is not None and values[self.over].flags.writeable:
            return values[self.over]
        memory, offset = (arena, self.offset) if self.offset is not None else (pool.memory(self.size), 0)
        if self.zeros is not None:
            self.zeros.write(address_of(memory) + offset, threads)
        return np.ndarray(self.shape, self.dtype, memory, offset + self.first, self.strides)


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """One recorded op; `target` is None for a view."""

    value: int
    row: OpDefinition
    attributes: Mapping[str, Any]
    type: TensorType
    operands: tuple[int, ...]
    frees: tuple[int, ...]
    target: Target | None


@dataclass(frozen=True, slots=True)
class TakenStep:
    """One taken match; a named result may have several producers, each of its own shape."""

    value: int
    prepared: Prepared
    bindings: tuple[tuple[str, int], ...]
    target: Target
    named: tuple[tuple[str, Target, tuple[tuple[int, tuple[int, ...]], ...]], ...]
    frees: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """What one plan with one set of parameters runs. Immutable but for its pool; safe to run from several threads.

    Args:
        tape: The spec.
        steps: In execution order.
        known: Values that exist before a run and that some step or the caller reads.
        kept: Values that a run gives.
        multiplies: Whether a recorded step calls BLAS.
        spreads: Whether BLAS may have several threads for it.
        expected: What the inputs must be.
        fresh: Whether the tape's results are arrays of the caller's own by the way they are made: no two share memory, none is
            a view, an input or a known value.
        arena_bytes: Memory for what lives inside a run; every run takes its own from the pool.
        pool: Arenas, and the buffers that callers get.
    """

    tape: Tape
    steps: tuple[RecordedStep | TakenStep, ...]
    known: Mapping[int, np.ndarray]
    kept: tuple[int, ...]
    multiplies: bool
    spreads: bool
    expected: tuple[Expected, ...]
    fresh: bool
    arena_bytes: int
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
        if not self.multiplies:
            return self._steps(inputs, threads, after)
        with blas_threads(blas if self.spreads else 1):
            return self._steps(inputs, threads, after)

    @np.errstate(all="ignore")  # around a function it costs half of what it costs around a block
    def _steps(self, inputs: Mapping[int, np.ndarray], threads: int, after: After | None) -> dict[int, np.ndarray]:
        values = {**self.known, **inputs}
        arena = self.pool.memory(self.arena_bytes)
        for step in self.steps:
            if isinstance(step, RecordedStep):
                self._record(step, values, arena)
            else:
                self._take(step, values, arena, threads)
            for value in step.frees:
                del values[value]
            if after is not None:
                after(step.value)
        return {value: values[value] for value in self.kept}

    def _record(self, step: RecordedStep, values: dict[int, np.ndarray], arena: np.ndarray) -> None:
        operands = [values[operand] for operand in step.operands]
        try:
            if step.target is None:
                values[step.value] = step.row.evaluate(operands, step.attributes, step.type)
                return
            out = step.target.array(values, arena, self.pool)
            if step.row.into is not None:
                step.row.into(operands, step.attributes, step.type, out)
            else:
                out[...] = step.row.evaluate(operands, step.attributes, step.type)
        except NOT_COMPUTABLE as problem:
            raise not_computable(self.tape, step.value, problem) from problem
        values[step.value] = out

    def _take(self, step: TakenStep, values: dict[int, np.ndarray], arena: np.ndarray, threads: int) -> None:
        result = step.target.array(values, arena, self.pool, threads)
        out = {"result": result}
        for name, target, _ in step.named:
            out[name] = target.array(values, arena, self.pool)
        step.prepared.run({name: values[value] for name, value in step.bindings}, out, threads)
        values[step.value] = result
        for name, _, producers in step.named:
            for value, shape in producers:
                values[value] = out[name].reshape(shape)


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
    remaining = [step for step in plan.schedule.steps if step.value not in plan.folded]
    _fold(plan, known)
    making = _Making(plan, known)
    steps = tuple(making.step(step) for step in remaining)
    if processors() and any(isinstance(step, TakenStep) for step in steps):
        workers.ask()  # last, so that another process compiles it: a first run on one thread does not wait
    kept = plan.schedule.kept
    products = [_flops(tape, step.value) for step in remaining if step.match is None]
    multiplies = any(flops is not None for flops in products)
    read = {value for step in remaining for value in step.reads} | set(kept)
    # A match reads its bindings at run time only where preparing did not use them up; keeping all is simple and right.
    return Program(
        tape=tape,
        steps=steps,
        known={value: array for value, array in known.items() if value in read},
        kept=kept,
        multiplies=multiplies,
        spreads=all(step.match is None for step in remaining)
        or max((f or 0 for f in products), default=0) >= BLAS_FLOPS,
        expected=expected_inputs(tape),
        fresh=_fresh(tape, steps),
        arena_bytes=plan.arena.bytes,
        pool=Pool(),
    )


def _fresh(tape: Tape, steps: Sequence[RecordedStep | TakenStep]) -> bool:
    """Tells whether every result is a step's own: C-contiguous in all of a buffer that no other result and no view has."""
    targets = {step.value: step.target for step in steps if step.target is not None}
    for value in tape.results:
        target = targets.get(value)
        if target is None or target.offset is not None or target.over is not None or target.zeros is not None:
            return False
        if target.strides != _contiguous(target):
            return False
    return len(set(tape.results)) == len(tape.results)


def _contiguous(target: Target) -> tuple[int, ...]:
    return tuple(stride * target.dtype.itemsize for stride in contiguous_strides(target.shape))


def _flops(tape: Tape, value: int) -> int | None:
    """Counts a recorded product's work; None where the op is none."""
    op = tape.ops[value]
    if op.name != "matmul":
        return None
    return 2 * op.type.size * tape.ops[op.operands[0]].type.shape[-1]


def _snapshot(array: np.ndarray) -> np.ndarray:
    """Keeps what the caller may still write to."""
    if not array.flags.writeable:
        return array
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def _fold(plan: PlanData, known: dict[int, np.ndarray]) -> None:
    """Computes the plan's folded values."""
    tape, table = plan.tape, definitions()
    with np.errstate(all="ignore"), blas_threads(1):
        for step in plan.schedule.steps:
            if step.value not in plan.folded:
                continue
            op = tape.ops[step.value]
            try:
                known[step.value] = table[op.name].evaluate([known[o] for o in op.operands], op.attributes, op.type)
            except NOT_COMPUTABLE as problem:
                raise not_computable(tape, step.value, problem) from problem


@dataclass(frozen=True, slots=True)
class _Making:
    plan: PlanData
    known: Mapping[int, np.ndarray]

    def step(self, step: Step) -> RecordedStep | TakenStep:
        tape, match = self.plan.tape, step.match
        op = tape.ops[step.value]
        frees = tuple(value for value in step.frees if value not in self.known)
        target = self.target(step.value) if step.value in self.plan.liveness.written else None
        if match is None:
            return RecordedStep(step.value, definitions()[op.name], op.attributes, op.type, op.operands, frees, target)
        assert target is not None
        named = tuple(
            (
                name,
                self.target(values[0]),
                tuple((value, tape.ops[value].type.shape) for value in values),
            )
            for name, values in match.named.items()
        )
        margins = self.plan.liveness.margins.get(match.bindings.get("x", -1))
        prepared = prepare(tape, match, self.known, self.plan.request.off, margins)
        return TakenStep(match.root, prepared, tuple(match.bindings.items()), target, named, frees)

    def target(self, value: int) -> Target:
        kind, live = self.plan.tape.ops[value].type, self.plan.liveness
        dtype, placed = numpy_dtype(kind.dtype), live.written[value]
        strides = tuple(stride * dtype.itemsize for stride in placed.strides)
        offset, margins = self.plan.arena.offsets.get(placed.base), live.margins.get(value)
        if margins is None:
            return Target(kind.shape, dtype, strides, kind.bytes, offset, live.over.get(value))
        size, first = margins.size * dtype.itemsize, margins.first * dtype.itemsize
        return Target(kind.shape, dtype, strides, size, offset, None, first, Zeros(margins, kind.dtype))
