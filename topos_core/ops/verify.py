"""Checks that a tape is what the layers above may assume, and seals it."""

from __future__ import annotations

import dataclasses
from types import MappingProxyType
from typing import Any

import numpy as np

from topos_core.errors import InternalError
from topos_core.ops.catalog import definitions
from topos_core.ops.definition import OpDefinition, TypeMismatch
from topos_core.tape.op import Op
from topos_core.tape.tape import Structure, Tape
from topos_core.tape.text import op_text
from topos_core.tape.type import numpy_dtype


def verify(tape: Tape) -> None:
    """Checks every op against its definition and every table of the tape against its ops. Linear.

    Raises:
        InternalError: The tape is not well-formed; whoever made it has a bug.
    """
    table = definitions()
    for value, op in enumerate(tape.ops):
        row = table.get(op.name)
        if row is None:
            raise InternalError(f"%{value}: no op is named {op.name}")
        _verify_op(tape, value, op, row)
    _verify_bound(tape)
    _verify_results(tape)
    _verify_tables(tape)


def seal(tape: Tape) -> Tape:
    """Verifies a tape and gives one that nobody can edit: attributes, tables and arrays are read-only."""
    verify(tape)
    return dataclasses.replace(
        tape,
        ops=tuple(op._replace(attributes=MappingProxyType(dict(op.attributes))) for op in tape.ops),
        names=MappingProxyType(dict(tape.names)),
        sources=MappingProxyType(dict(tape.sources)),
        defaults=MappingProxyType({value: _frozen(array) for value, array in tape.defaults.items()}),
        ranges=MappingProxyType(dict(tape.ranges)),
    )


def _frozen(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


def _verify_op(tape: Tape, value: int, op: Op, row: OpDefinition) -> None:
    for operand in op.operands:
        if not 0 <= operand < value:
            raise InternalError(f"%{value} = {op_text(op)}: operand %{operand} is not made before it")
    if row.arity is not None and len(op.operands) != row.arity:
        raise InternalError(f"%{value} = {op_text(op)}: takes {row.arity} operands, has {len(op.operands)}")
    if not 0 <= op.location < len(tape.locations):
        raise InternalError(
            f"%{value} = {op_text(op)}: location @{op.location} of {len(tape.locations)} does not exist"
        )
    if set(op.attributes) != set(row.attributes):
        raise InternalError(f"%{value} = {op_text(op)}: its attributes are {' '.join(row.attributes) or 'none'}")
    try:
        inferred = row.infer([tape.ops[operand].type for operand in op.operands], op.attributes)
    except (TypeMismatch, KeyError, TypeError) as problem:
        raise InternalError(f"%{value} = {op_text(op)}: {problem!r}") from problem
    if inferred != op.type:
        raise InternalError(f"%{value} = {op_text(op)}: inference gives {inferred}")
    if op.name == "pad" and getattr(op.attributes["fill"], "dtype", None) != numpy_dtype(op.type.dtype):
        raise InternalError(f"%{value} = {op_text(op)}: the fill must be a NumPy scalar of {op.type.dtype}")
    if op.name == "constant":
        _verify_constant(value, op.attributes["value"])
    if op.name == "pick":
        source = tape.ops[op.operands[0]]
        types = source.attributes["types"] if source.name == "opaque" else ()
        if not 0 <= op.attributes["index"] < len(types) or types[op.attributes["index"]] != op.type:
            raise InternalError(f"%{value} = {op_text(op)}: %{op.operands[0]} has no such result")


def _verify_constant(value: int, held: Any) -> None:
    if isinstance(held, np.ndarray) and (held.flags.writeable or not held.flags.c_contiguous):
        raise InternalError(f"%{value}: a constant table must be read-only and C-contiguous")


def _verify_bound(tape: Tape) -> None:
    for name, values in (("input", tape.inputs), ("parameter", tape.parameters)):
        made = [value for value, op in enumerate(tape.ops) if op.name == name]
        if sorted(values) != made:
            raise InternalError(f"{name}s {values} are not the {name} ops {made}")
    for value, array in tape.defaults.items():
        kind = tape.ops[value].type
        if tape.ops[value].name != "parameter" or array.shape != kind.shape or array.dtype != numpy_dtype(kind.dtype):
            raise InternalError(f"the default of %{value} is {array.dtype}{list(array.shape)}, not a parameter {kind}")
    for value in tape.ranges:
        if tape.ops[value].name != "input":
            raise InternalError(f"%{value} has a range but is no input")


def _verify_results(tape: Tape) -> None:
    leaves = list(_leaves(tape.structure))
    if leaves != list(range(len(tape.results))):
        raise InternalError(f"the structure's leaves {leaves} do not count the {len(tape.results)} results")
    observed = {row.value for row in tape.observations if row.kind == "output"}
    if missing := set(tape.results) - observed:
        raise InternalError(f"results {sorted(missing)} have no output observation")


def _leaves(structure: Structure) -> list[int]:
    if structure.kind == "leaf":
        return [structure.index]
    if structure.kind in ("dict", "record") and len(structure.keys) != len(structure.children):
        raise InternalError(f"a {structure.kind} of {len(structure.children)} has {len(structure.keys)} keys")
    return [leaf for child in structure.children for leaf in _leaves(child)]


def _verify_tables(tape: Tape) -> None:
    values = [
        *tape.results,
        *tape.names,
        *(row.value for row in tape.observations),
        *(note.value for note in tape.notes),
    ]
    if any(not 0 <= value < len(tape.ops) for value in values):
        raise InternalError(f"a table names a value outside the {len(tape.ops)} ops")
    for row in tape.observations:
        if not 0 <= row.location < len(tape.locations):
            raise InternalError(f"the observation of %{row.value}: location @{row.location} does not exist")
