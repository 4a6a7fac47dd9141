"""Digests: sha256 over one canonical byte form, so that equal meaning has an equal digest on every machine.

The digest of a tape covers what the program computes and who reads it: ops with every attribute, types, order of inputs
and parameters, results and their nesting, names, observations, index ranges. It leaves out where things were written:
spans, scopes, source text, notes, and the values of parameters.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:  # tapes stand above digests in the layers
    from topos_core.tape.tape import Structure, Tape
    from topos_core.tape.type import TensorType


def digest_of(*values: Any) -> str:
    """Gives the sha256, in hex, of values built from None, bool, int, float, str, bytes, tuples, lists, mappings, sets,
    NumPy scalars and arrays. Equal values of different kinds (1, 1.0, True) differ; an array's layout does not count.
    """
    parts: list[bytes] = []
    for value in values:
        write(value, parts)
    return hashlib.sha256(b"".join(parts)).hexdigest()


class Encoded(NamedTuple):
    """A value by the bytes that `write` gave it or its like: for parts that come again and again."""

    data: bytes


def tape_digest(tape: Tape) -> str:
    """Gives a tape's digest; two tapes with the same one compute the same and are read by the same."""
    return digest_of(
        "topos.tape/1",
        _ops(tape),
        tape.inputs,
        tape.parameters,
        tape.results,
        _structure(tape.structure),
        tape.names,
        [(row.value, row.kind, row.name, row.assumed) for row in tape.observations],
        tape.ranges,
    )


def _ops(tape: Tape) -> Encoded:
    """Encodes the list of every op's (name, operands, attributes, type). Types are few, and each is written once."""
    types: dict[TensorType, bytes] = {}
    parts = [b"(%d:" % len(tape.ops)]
    for name, operands, attributes, kind, _ in tape.ops:
        written = types.get(kind)
        if written is None:
            written = types[kind] = encoded(kind)
        parts.append(b"(4:")
        write(name, parts)
        parts.append(b"(%d:" % len(operands) + b"".join([b"i%d;" % value for value in operands]))
        if attributes:
            write(attributes, parts)
        else:
            parts.append(b"{0:")
        parts.append(written)
    return Encoded(b"".join(parts))


def _structure(structure: Structure) -> tuple[Any, ...]:
    return (structure.kind, structure.keys, structure.index, [_structure(child) for child in structure.children])


def write(value: Any, parts: list[bytes]) -> None:
    """Appends a tag and a length or a fixed width, so that no two values have the same bytes.

    Tapes are made of the first three kinds: asking for the exact type halves what a digest costs.
    """
    kind = type(value)
    if kind is str:
        text = value.encode("utf-8", "surrogatepass")
        parts.append(b"u%d:%b" % (len(text), text))
    elif kind is int:
        parts.append(b"i%d;" % value)
    elif kind is tuple or kind is list:
        parts.append(b"(%d:" % len(value))
        for item in value:
            write(item, parts)
    else:
        _write_other(value, parts)


def _write_other(value: Any, parts: list[bytes]) -> None:
    """Writes what is rarer, and subclasses as what they are made of."""
    if isinstance(value, Encoded):
        parts.append(value.data)
    elif isinstance(value, (np.generic, np.ndarray)):  # before float and str: np.float64 is a float
        _write_array(value, parts)
    elif isinstance(value, str):
        write(str.__str__(value), parts)
    elif isinstance(value, bool):  # before int: True is one
        parts.append(b"t" if value else b"f")
    elif isinstance(value, int):
        write(int.__int__(value), parts)
    elif isinstance(value, (tuple, list)):
        write(tuple(value), parts)
    elif isinstance(value, Mapping):
        parts.append(b"{%d:" % len(value))
        for key, item in sorted(((encoded(key), item) for key, item in value.items()), key=itemgetter(0)):
            parts.append(key)
            write(item, parts)
    elif isinstance(value, float):
        parts.append(b"d" + struct.pack("<d", value))
    elif value is None:
        parts.append(b"n")
    elif isinstance(value, bytes):
        parts.append(b"b%d:" % len(value) + value)
    elif isinstance(value, (frozenset, set)):
        members = sorted(map(encoded, value))
        parts.append(b"[%d:" % len(members) + b"".join(members))
    else:
        raise TypeError(f"a {type(value).__name__} has no canonical form: {value!r}")


def _write_array(value: np.generic | np.ndarray, parts: list[bytes]) -> None:
    array = np.asarray(value)
    little = array.dtype.newbyteorder("<")
    parts.append(b"s" if isinstance(value, np.generic) else b"a")
    write(little.name, parts)
    write(array.shape, parts)
    parts.append(array.astype(little, copy=False).tobytes())


def encoded(value: Any) -> bytes:
    """Gives the bytes that stand for a value."""
    parts: list[bytes] = []
    write(value, parts)
    return b"".join(parts)
