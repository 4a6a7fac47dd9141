"""Tapes rewritten into others of the same meaning: what is recognised must not change."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from topos_core.ops.catalog import definition
from topos_core.tape.op import Op
from topos_core.tape.tape import Observation, Structure, Tape
from topos_core.tape.type import FLOATS, TensorType, numpy_dtype

COMMUTE = ("add", "mul", "maximum", "minimum")


class Rewriter:
    """Builds a tape from another, op by op; a rule may emit other ops for one."""

    def __init__(self, tape: Tape, seed: int) -> None:
        self.tape = tape
        self.random = random.Random(seed)
        self.ops: list[Op] = []
        self.new: dict[int, int] = {}
        self.changed = 0

    def emit(self, name: str, *operands: int, at: int, **attributes: Any) -> int:
        """Appends an op with the catalogue's inference, at another op's place."""
        kind = definition(name).infer([self.ops[operand].type for operand in operands], attributes)
        self.ops.append(Op(name, operands, attributes, kind, self.tape.ops[at].location))
        return len(self.ops) - 1

    def copy(self, value: int, operands: Sequence[int] | None = None) -> int:
        """Appends an op as it is."""
        op = self.tape.ops[value]
        given = tuple(self.new[operand] for operand in op.operands) if operands is None else tuple(operands)
        self.ops.append(op._replace(operands=given))
        return len(self.ops) - 1

    def splat(self, number: float, kind: TensorType, at: int) -> int:
        """Appends a constant."""
        value = numpy_dtype(kind.dtype).type(number)
        return self.emit("constant", at=at, value=value, type=kind)

    def finish(self, **changes: Any) -> Tape:
        """Ends the tape: results, names and readers follow their values."""
        old = self.tape
        new = self.new
        fields: dict[str, Any] = {
            "ops": tuple(self.ops),
            "inputs": tuple(new[value] for value in old.inputs),
            "parameters": tuple(new[value] for value in old.parameters),
            "results": tuple(new[value] for value in old.results),
            "names": {new[value]: name for value, name in old.names.items()},
            "observations": tuple(each._replace(value=new[each.value]) for each in old.observations),
            "defaults": {new[value]: array for value, array in old.defaults.items()},
            "ranges": {new[value]: bounds for value, bounds in old.ranges.items()},
            "notes": (),
        }
        return replace(old, **{**fields, **changes})


Rule = Callable[[Rewriter, int], int | None]


def _by(rule: Rule) -> Callable[[Tape, int], Tape | None]:
    """Applies a rule to every op; gives None where it changed nothing."""

    def applied(tape: Tape, seed: int) -> Tape | None:
        rewriter = Rewriter(tape, seed)
        for value in range(len(tape.ops)):
            made = rule(rewriter, value)
            if made is not None:
                rewriter.changed += 1
            rewriter.new[value] = rewriter.copy(value) if made is None else made
        return rewriter.finish() if rewriter.changed else None

    return applied


def renamed(tape: Tape, seed: int) -> Tape | None:
    """Gives every value another name."""
    odd = ("out", "self", "x", "input", "mask", "weight", "bias", "q", "result", "mean")
    picked = random.Random(seed).sample(odd, len(odd))
    names = {value: f"{picked[k % len(odd)]}{k}" for k, value in enumerate(tape.names)}
    observed = tuple(each._replace(name=names.get(each.value, each.name)) for each in tape.observations)
    return replace(tape, names=names, observations=observed) if names else None


def _commuted(rewriter: Rewriter, value: int) -> int | None:
    op = rewriter.tape.ops[value]
    if op.name not in COMMUTE or rewriter.random.random() < 0.3:
        return None
    return rewriter.copy(value, [rewriter.new[operand] for operand in reversed(op.operands)])


def reordered(tape: Tape, seed: int) -> Tape | None:
    """Puts ops into another order that their operands allow; inputs stay in their own."""
    rewriter = Rewriter(tape, seed)
    left = set(range(len(tape.ops)))
    while left:
        ready = [
            value for value in sorted(left) if all(operand in rewriter.new for operand in tape.ops[value].operands)
        ]
        value = rewriter.random.choice(ready)
        rewriter.new[value] = rewriter.copy(value)
        left.discard(value)
    return rewriter.finish()


def _reshaped_twice(rewriter: Rewriter, value: int) -> int | None:
    op = rewriter.tape.ops[value]
    if op.name in ("input", "parameter", "constant") or not op.type.shape or rewriter.random.random() < 0.6:
        return None
    made = rewriter.copy(value)
    shape = op.type.shape
    at = rewriter.random.randrange(len(shape) + 1)
    other = (*shape[:at], 1, *shape[at:]) if rewriter.random.random() < 0.5 else (op.type.size,)
    return rewriter.emit("reshape", rewriter.emit("reshape", made, at=value, shape=other), at=value, shape=shape)


def _permuted_twice(rewriter: Rewriter, value: int) -> int | None:
    op = rewriter.tape.ops[value]
    rank = len(op.type.shape)
    if op.name in ("input", "parameter", "constant") or rank < 2 or rewriter.random.random() < 0.6:
        return None
    order = rewriter.random.sample(range(rank), rank)
    back = tuple(order.index(axis) for axis in range(rank))
    made = rewriter.emit("permute", rewriter.copy(value), at=value, order=tuple(order))
    return rewriter.emit("permute", made, at=value, order=back)


def _split_reshape(rewriter: Rewriter, value: int) -> int | None:
    op = rewriter.tape.ops[value]
    if op.name != "reshape":
        return None
    flat = rewriter.emit("reshape", rewriter.new[op.operands[0]], at=value, shape=(op.type.size,))
    return rewriter.emit("reshape", flat, at=value, shape=op.type.shape)


def _power(rewriter: Rewriter, value: int) -> int | None:
    tape, op = rewriter.tape, rewriter.tape.ops[value]
    if op.name == "mul" and op.operands[0] == op.operands[1] and op.type.dtype in FLOATS:
        two = rewriter.splat(2.0, op.type, value)
        return rewriter.emit("pow", rewriter.new[op.operands[0]], two, at=value)
    if op.name == "pow" and _is(tape, op.operands[1], 2.0):
        base = rewriter.new[op.operands[0]]
        return rewriter.emit("mul", base, base, at=value)
    return None


def _root(rewriter: Rewriter, value: int) -> int | None:
    tape, op = rewriter.tape, rewriter.tape.ops[value]
    if op.name == "div" and op.type.dtype in FLOATS:
        below = op.operands[1]
        chain = []
        while tape.ops[below].name in ("reshape", "broadcast", "permute"):
            chain.append(tape.ops[below])
            below = tape.ops[below].operands[0]
        if tape.ops[below].name == "sqrt":
            made = rewriter.emit("rsqrt", rewriter.new[tape.ops[below].operands[0]], at=value)
            for each in reversed(chain):
                made = rewriter.emit(each.name, made, at=value, **each.attributes)
            return rewriter.emit("mul", rewriter.new[op.operands[0]], made, at=value)
    if op.name == "pow" and _is(tape, op.operands[1], -0.5):
        return rewriter.emit("rsqrt", rewriter.new[op.operands[0]], at=value)
    if op.name == "rsqrt":
        one = rewriter.splat(1.0, op.type, value)
        return rewriter.emit("div", one, rewriter.emit("sqrt", rewriter.new[op.operands[0]], at=value), at=value)
    return None


def _kept_axes(rewriter: Rewriter, value: int) -> int | None:
    """Writes a reduction with its axes kept, and drops them again."""
    op = rewriter.tape.ops[value]
    if op.name not in ("sum", "max", "min"):
        return None
    shape = rewriter.tape.ops[op.operands[0]].type.shape
    kept = tuple(1 if axis in op.attributes["axes"] else extent for axis, extent in enumerate(shape))
    made = rewriter.emit("reshape", rewriter.copy(value), at=value, shape=kept)
    return rewriter.emit("reshape", made, at=value, shape=op.type.shape)


def unrelated(tape: Tape, seed: int) -> Tape | None:
    """Puts ops that have nothing to do with the rest between its ops: dead ones, and one that is returned."""
    rewriter = Rewriter(tape, seed)
    floats = [value for value in tape.inputs if tape.ops[value].type.dtype in FLOATS]
    if not floats:
        return None
    for value in range(len(tape.ops)):
        rewriter.new[value] = rewriter.copy(value)
        done = [each for each in floats if each in rewriter.new]
        if done and rewriter.random.random() < 0.3:
            inner = rewriter.emit("tanh", rewriter.new[rewriter.random.choice(done)], at=value)
            rewriter.emit("exp", inner, at=value)
    last = rewriter.emit("cos", rewriter.new[rewriter.random.choice(floats)], at=floats[0])
    return _returning(rewriter, last)


def read_again(tape: Tape, seed: int) -> Tape | None:
    """Computes what reads an inner value a second time, and returns it: every value on the way to it has one more reader."""
    users = tape.users()
    inner = [value for value, readers in enumerate(users) if readers and tape.ops[value].operands]
    if not inner:
        return None
    rewriter = Rewriter(tape, seed)
    reader = rewriter.random.choice(users[rewriter.random.choice(inner)])
    for value in range(len(tape.ops)):
        rewriter.new[value] = rewriter.copy(value)
        if value == reader:
            again = rewriter.copy(value)
    return _returning(rewriter, again)


def twinned(tape: Tape, seed: int) -> Tape | None:
    """Computes a value that two ops read a second time for one of them: a mean computed twice is one mean."""
    users = tape.users()
    shared = [v for v, readers in enumerate(users) if len(set(readers)) > 1 and tape.ops[v].operands]
    if not shared:
        return None
    rewriter = Rewriter(tape, seed)
    chosen = rewriter.random.choice(shared)
    reader = rewriter.random.choice(sorted(set(users[chosen])))
    for value, op in enumerate(tape.ops):
        if value == reader:
            twin = rewriter.copy(chosen)
            operands = [twin if operand == chosen else rewriter.new[operand] for operand in op.operands]
            rewriter.new[value] = rewriter.copy(value, operands)
        else:
            rewriter.new[value] = rewriter.copy(value)
    return rewriter.finish()


def _returning(rewriter: Rewriter, more: int) -> Tape:
    """Ends a tape that returns one value more."""
    tape = rewriter.tape
    results = (*(rewriter.new[value] for value in tape.results), more)
    leaves = tuple(Structure("leaf", index=k) for k in range(len(results)))
    observed = [each._replace(value=rewriter.new[each.value]) for each in tape.observations]
    observed.insert(len(tape.results), Observation(more, "output", None, tape.ops[0].location))
    return rewriter.finish(results=results, structure=Structure("tuple", leaves), observations=tuple(observed))


def _is(tape: Tape, value: int, number: float) -> bool:
    op = tape.ops[value]
    while op.name in ("broadcast", "reshape", "permute"):
        op = tape.ops[op.operands[0]]
    return (
        op.name == "constant"
        and not isinstance(op.attributes["value"], np.ndarray)
        and op.attributes["value"] == number
    )


TRANSFORMS: Mapping[str, Callable[[Tape, int], Tape | None]] = {
    "values renamed": renamed,
    "operands commuted": _by(_commuted),
    "independent ops reordered": reordered,
    "reshaped and back": _by(_reshaped_twice),
    "permuted and back": _by(_permuted_twice),
    "reshapes split": _by(_split_reshape),
    "a square as a power": _by(_power),
    "a quotient by a root as a product": _by(_root),
    "axes kept": _by(_kept_axes),
    "unrelated ops added": unrelated,
    "a shared value computed twice": twinned,
}
