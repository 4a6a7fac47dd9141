"""The oracle: runs a tape op by op with NumPy.

What it gives depends on the values alone: BLAS runs on one thread, and ops that sum make their operands C-contiguous, so
neither threads nor memory layout change a bit. Values are dropped after their last reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, overload

import numpy as np

from topos_core.errors import ConfigurationError
from topos_core.ops.catalog import definitions
from topos_core.ops.lookup import IndexOutOfRange
from topos_core.ops.opaque import OpaqueOp
from topos_core.run.blas import blas_threads
from topos_core.tape.tape import Tape
from topos_core.tape.type import TensorType, dtype_name, numpy_dtype, told_masked

NOT_COMPUTABLE: Final = (OpaqueOp, IndexOutOfRange)
Parameters = Mapping[int | str, np.ndarray]
"""Arrays of parameters by value or by name."""


@overload
def interpret(
    tape: Tape, inputs: Sequence[np.ndarray], parameters: Parameters | None = None, keep: Literal[False] = False
) -> tuple[np.ndarray, ...]: ...
@overload
def interpret(
    tape: Tape, inputs: Sequence[np.ndarray], parameters: Parameters | None = None, *, keep: Literal[True]
) -> tuple[np.ndarray | None, ...]: ...
def interpret(
    tape: Tape, inputs: Sequence[np.ndarray], parameters: Parameters | None = None, keep: bool = False
) -> tuple[np.ndarray | None, ...]:
    """Runs a tape.

    Args:
        tape: A verified tape.
        inputs: One array per input, in the tape's order.
        parameters: Arrays that replace the tape's own snapshots.
        keep: Gives every value instead of the results; None stands for a value that no result needs and that a foreign
            op makes.

    Returns:
        The results in the tape's order, each an array of its own that the caller may write to.

    Raises:
        ConfigurationError: Inputs or parameters do not fit (TP502), or a result needs a foreign op (TP507).
    """
    bound = bind(tape, inputs, parameters)
    if not keep:
        values = evaluate(tape, bound, tape.results)
        return _own([values[value] for value in tape.results], bound)
    foreign: set[int] = set()
    for value, op in enumerate(tape.ops):
        if op.name == "opaque" or not foreign.isdisjoint(op.operands):
            foreign.add(value)
    values = evaluate(tape, bound, [*tape.results, *(value for value in range(len(tape.ops)) if value not in foreign)])
    return tuple(values.get(value) for value in range(len(tape.ops)))


def bind(tape: Tape, inputs: Sequence[np.ndarray], parameters: Parameters | None = None) -> dict[int, np.ndarray]:
    """Pairs inputs and parameters with their values; arrays must have the traced dtype and shape.

    Raises:
        ConfigurationError: One is missing, unknown or of another type (TP502).
    """
    return {**bind_inputs(tape, inputs), **bind_parameters(tape, parameters)}


def bind_inputs(tape: Tape, inputs: Sequence[np.ndarray]) -> dict[int, np.ndarray]:
    """Pairs inputs with their values.

    Raises:
        ConfigurationError: One is missing or of another type (TP502).
    """
    return bind_expected(tape, expected_inputs(tape), inputs)


class Expected(NamedTuple):
    """What an input must be, read off the tape once for many runs."""

    value: int
    dtype: np.dtype
    shape: tuple[int, ...]
    ranged: bool


def expected_inputs(tape: Tape) -> tuple[Expected, ...]:
    """Lists what the inputs must be, in the tape's order."""
    kinds = [(value, tape.ops[value].type) for value in tape.inputs]
    return tuple(Expected(value, numpy_dtype(kind.dtype), kind.shape, value in tape.ranges) for value, kind in kinds)


def bind_expected(tape: Tape, expected: Sequence[Expected], inputs: Sequence[np.ndarray]) -> dict[int, np.ndarray]:
    """Does what `bind_inputs` does, where what is expected of the tape's inputs is known.

    Raises:
        ConfigurationError: One is missing or of another type (TP502).
    """
    if len(inputs) != len(expected):
        raise _misfit(f"{len(inputs)} inputs given, the program takes {len(expected)}: {_signature(tape)}")
    bound: dict[int, np.ndarray] = {}
    for (value, dtype, shape, ranged), array in zip(expected, inputs, strict=True):
        fits = type(array) is np.ndarray and array.dtype == dtype and array.shape == shape and not ranged
        bound[value] = array if fits else _fit(tape, value, array)
    return bound


def bind_parameters(tape: Tape, parameters: Parameters | None = None) -> dict[int, np.ndarray]:
    """Pairs parameters with their values: the given arrays, else the tape's own snapshots.

    Raises:
        ConfigurationError: One is missing, unknown or of another type (TP502).
    """
    bound: dict[int, np.ndarray] = {}
    given = {**tape.defaults, **fitted_parameters(tape, parameters or {})}
    for value in tape.parameters:
        if value not in given:
            raise _misfit(f"{_called(tape, value)} {tape.ops[value].type} has no values; give them as a parameter")
        bound[value] = _fit(tape, value, given[value])
    return bound


def fitted_parameters(tape: Tape, parameters: Parameters) -> dict[int, np.ndarray]:
    """Pairs given arrays with the parameters that they replace.

    Raises:
        ConfigurationError: One is unknown or of another type (TP502).
    """
    by_name = {tape.names[value]: value for value in tape.parameters if value in tape.names}
    fitted: dict[int, np.ndarray] = {}
    for key, array in parameters.items():
        chosen = by_name.get(key) if isinstance(key, str) else key
        if chosen not in tape.parameters:
            raise _misfit(f"no parameter is named {key!r}; the program has {', '.join(by_name) or 'none'}")
        fitted[chosen] = _fit(tape, chosen, array)
    return fitted


def evaluate(
    tape: Tape, bound: Mapping[int, np.ndarray], wanted: Iterable[int], after: Callable[[int], None] | None = None
) -> dict[int, np.ndarray]:
    """Computes the wanted values and only what they need, dropping every other value after its last reader.

    Args:
        tape: A verified tape.
        bound: Arrays that are given: inputs, parameters, or any inner value that is known already.
        wanted: The values to give back.
        after: Is told every value that was computed.
    """
    kept = set(wanted)
    last = _last_readers(tape, bound, kept)
    values: dict[int, np.ndarray] = {}
    table = definitions()
    with np.errstate(all="ignore"), blas_threads(1):
        for value in sorted(last):
            op = tape.ops[value]
            if value in bound:
                values[value] = bound[value]
                continue
            arrays = [values[operand] for operand in op.operands]
            try:
                values[value] = table[op.name].evaluate(arrays, op.attributes, op.type)
            except NOT_COMPUTABLE as problem:
                raise not_computable(tape, value, problem) from problem
            for operand in op.operands:
                if last[operand] == value and operand not in kept:
                    values.pop(operand, None)
            if after is not None:
                after(value)
    return {value: values[value] for value in kept}


def _last_readers(tape: Tape, bound: Mapping[int, np.ndarray], wanted: set[int]) -> dict[int, int]:
    """Maps every needed value to the last needed op that reads it (to itself where none does)."""
    last: dict[int, int] = {value: value for value in wanted}
    for value in range(max(wanted, default=-1), -1, -1):
        if value in last and value not in bound:
            for operand in tape.ops[value].operands:
                last.setdefault(operand, value)  # readers come in descending order, so the first one seen is the last
    return last


def _own(results: list[np.ndarray], bound: Mapping[int, np.ndarray]) -> tuple[np.ndarray, ...]:
    """Copies every result that is a view, read-only, given by the caller, or given back twice."""
    taken = {id(array) for array in bound.values()}
    owned: list[np.ndarray] = []
    for array in results:
        fresh = array.flags.owndata and array.flags.writeable and array.flags.c_contiguous and id(array) not in taken
        taken.add(id(array))
        owned.append(array if fresh else np.array(array, order="C"))
    return tuple(owned)


def _fit(tape: Tape, value: int, given: np.ndarray) -> np.ndarray:
    told = told_masked(given)
    if told is not None:
        raise _misfit(f"{_called(tape, value)} {told}")
    array, expected = np.asarray(given), tape.ops[value].type
    if array.dtype != numpy_dtype(expected.dtype) or array.shape != expected.shape:
        have = TensorType(dtype_name(array.dtype) or str(array.dtype), array.shape)
        remedy = "reshape it or trace for its shape" if array.shape != expected.shape else "convert it with astype"
        raise _misfit(f"{_called(tape, value)} is {have}, the program was traced with {expected}; {remedy}")
    low, high = tape.ranges.get(value, (None, None))
    if low is not None and high is not None and array.size and not (array.min() >= low and array.max() < high):
        found = f"{array.min()} to {array.max()}"
        raise _misfit(
            f"{_called(tape, value)} holds {found}, the program was traced with {low} to {high - 1}; stay inside"
        )
    return array


def _called(tape: Tape, value: int) -> str:
    return f"{tape.ops[value].name} {tape.names.get(value, f'%{value}')}"


def _signature(tape: Tape) -> str:
    parts = (f"{tape.names.get(value, f'%{value}')}={tape.ops[value].type}" for value in tape.inputs)
    return ", ".join(parts) or "none"


def _misfit(message: str) -> ConfigurationError:
    return ConfigurationError(message, code="TP502")


def not_computable(tape: Tape, value: int, problem: Exception) -> ConfigurationError:
    """Says why an op gave no value, and where it stands; `problem` is one of `NOT_COMPUTABLE`."""
    op, span = tape.ops[value], tape.location_of(value).span
    if isinstance(problem, IndexOutOfRange):
        return ConfigurationError(f"{op.name}: {problem}", code="TP502", span=span)
    source = op if op.name == "opaque" else tape.ops[op.operands[0]]
    name = source.attributes["foreign"]
    message = f"{name} is a foreign op that topos cannot run; leave it out of the results, or write it with known ops"
    return ConfigurationError(message, code="TP507", span=span)
