"""Pulls single elements of a tape's values through the recorded ops, over a pair of prime fields; materialises nothing.

A value is asked for at coordinates: one integer array per axis, all of which broadcast against each other. Movement ops
turn coordinates into coordinates; a reduction adds an axis in front of them. An axis on which a value does not depend
stays out of its coordinates, so a mean below a broadcast costs its own size and no more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from topos_core.matching.contracting import LONGEST, contracted, work_of
from topos_core.matching.coordinates import flattened, regrouped
from topos_core.matching.field import (
    Element,
    P,
    centred,
    choose,
    drawn,
    multiply,
    whole,
)
from topos_core.matching.functions import UNARY, Functions, Unprovable
from topos_core.matching.reducing import greatest, product, total
from topos_core.matching.snap import snap
from topos_core.ops.catalog import definition
from topos_core.recording.bounds import Reading
from topos_core.tape.op import Op
from topos_core.tape.tape import Tape
from topos_core.tape.type import FLOATS

Coordinates = tuple[np.ndarray, ...]
Repeats = tuple[tuple[int, np.ndarray], ...]
"""By axis, counted from the last as 1: which of the distinct coordinates stands at each place."""


class TooLarge(Exception):
    """A pull that would hold more elements than its limit."""


class Unbound(Exception):
    """A pull that went past the bindings, down to an input."""


class Leaves:
    """Random elements for values of a tape: numbers of the field, small integers, bools; integer constants are themselves."""

    def __init__(self, tape: Tape, salt: int) -> None:
        self._tape = tape
        self._salt = salt

    def at(self, value: int, where: Coordinates) -> Element:
        """Gives a leaf's elements at coordinates."""
        op = self._tape.ops[value]
        if op.name == "constant" and op.type.dtype not in FLOATS:
            table = op.attributes["value"]
            return whole(table[where] if isinstance(table, np.ndarray) else table)
        found = drawn(flattened(where, op.type.shape, range(len(where))), self._salt + value * _APART)
        if op.type.dtype in FLOATS:
            return found
        low, high = (0, 2) if op.type.dtype == "bool" else self._range(value)
        assert found.p is not None
        return whole(low + found.p % (high - low))

    def _range(self, value: int) -> tuple[int, int]:
        """Gives the range in which integers lie as the program has them, small where that says little."""
        low, high = Reading(self._tape.ops, self._tape.ranges, wraps=True).bounds(value)
        return (int(low), int(high) + 1) if high - low < _FEW else (0, 8)


_FEW: Final = 1 << 20
"""Integers are drawn from a range that is no longer."""


class Pull:
    """Elements of one tape's values.

    Args:
        tape: The tape.
        leaves: Values at which a pull stops, by what `source` calls them.
        source: Gives the elements of leaves.
        functions: What both sides of a comparison must share: uninterpreted functions, and what was assumed.
        limit: How many elements a pull may hold in all.
    """

    def __init__(
        self,
        tape: Tape,
        leaves: Mapping[int, int],
        source: Callable[[int, Coordinates], Element],
        functions: Functions,
        limit: int,
    ) -> None:
        self._tape = tape
        self._leaves = leaves
        self._source = source
        self._functions = functions
        self._limit = limit
        self._known: dict[tuple[int, tuple[int, ...]], tuple[Coordinates, Element]] = {}
        self._compressed: dict[tuple[int, ...], tuple[Coordinates, Coordinates, Repeats]] = {}
        self._held = 0

    def at(self, value: int, where: Coordinates) -> Element:
        """Gives a value's elements at coordinates.

        Raises:
            Unprovable: An op has no meaning in the model.
            TooLarge: Too many elements are needed.
        """
        key = value, tuple(map(id, where))
        known = self._known.get(key)
        if known is not None:
            return known[1]
        leaf = self._leaves.get(value)
        op = self._tape.ops[value]
        if leaf is not None:
            found = self._source(leaf, where)
        else:
            distinct, repeats = self._distinct(where)
            if repeats:
                return _repeated(self.at(value, distinct), repeats)  # spread anew for every reader, held by none
            found = self._computed(op, distinct)
        if leaf is not None or op.name not in _PASSED_ON:
            self._held += sum(lane.size for lane in (found.p, found.q) if lane is not None)
        if self._held > self._limit:
            raise TooLarge
        self._known[key] = where, found  # the coordinates stay alive, so their identity stays theirs
        return found

    def _distinct(self, where: Coordinates) -> tuple[Coordinates, Repeats]:
        """Gives coordinates without those that occur again along an axis of theirs: a head counted once per feature."""
        key = tuple(map(id, where))
        known = self._compressed.get(key)
        if known is None:
            known = self._compressed[key] = (where, *_without_repeats(where))
        return known[1:]

    def _computed(self, op: Op, where: Coordinates) -> Element:
        if op.name in ("input", "parameter"):
            raise Unbound
        rule = _RULES.get(op.name)
        if rule is not None:
            return rule(self, op, where)
        if definition(op.name).kind == "elementwise":
            return self._elementwise(op, where)
        raise Unprovable(f"{op.name} has no meaning in the model")

    def _elementwise(self, op: Op, where: Coordinates) -> Element:
        functions, dtype = self._functions, op.type.dtype
        if op.name == "pow":
            exponent = self._number(op.operands[1])
            base = self.at(op.operands[0], where)
            if exponent is None:
                return functions.oracle("pow", base, self.at(op.operands[1], where))
            return functions.power(base, exponent)
        elements = [self.at(operand, where) for operand in op.operands]
        if op.name == "cast":
            return functions.cast(elements[0], self._tape.ops[op.operands[0]].type.dtype, dtype)
        if op.name == "compare":
            floats = self._tape.ops[op.operands[0]].type.dtype in FLOATS
            return functions.compare(op.attributes["kind"], elements[0], elements[1], floats)
        if op.name == "select":
            condition, a, b = elements
            assert condition.p is not None
            return choose(condition.p != 0, a, b)
        if op.name in UNARY:
            return functions.unary(op.name, elements[0], dtype)
        return functions.binary(op.name, elements[0], elements[1], dtype)

    def _number(self, value: int) -> float | None:
        """Gives a splat's number, seen through movement that changes no element."""
        op = self._tape.ops[value]
        while op.name in ("broadcast", "reshape", "permute"):
            op = self._tape.ops[op.operands[0]]
        if op.name != "constant" or isinstance(op.attributes["value"], np.ndarray):
            return None
        return float(op.attributes["value"])

    def _constant(self, op: Op, where: Coordinates) -> Element:
        value, dtype = op.attributes["value"], op.type.dtype
        if not isinstance(value, np.ndarray):
            return self._snapped(value, dtype)
        picked = value[tuple(where)] if where else value
        if dtype not in FLOATS:
            return whole(picked.astype(np.int64))
        distinct, places = np.unique(picked, return_inverse=True)
        numbers = [self._snapped(each, dtype) for each in distinct]
        places = places.reshape(np.shape(picked))
        p = np.array([int(each.p) for each in numbers if each.p is not None])
        q = np.array([int(each.q) for each in numbers if each.q is not None])
        state = np.array([0 if e.state is None else int(e.state) for e in numbers], np.int8)
        return Element(p[places], q[places], state[places] if state.any() else None)

    def _snapped(self, value: np.generic, dtype: str) -> Element:
        if dtype not in FLOATS:
            return whole(int(value))
        snapped = snap(float(value), dtype)
        if snapped is None:
            raise Unprovable("NaN is no number of the model")
        self._functions.infinite |= snapped.element.state is not None
        if not snapped.exact:
            self._functions.assumed.add(f"the rounded constant {float(value):.9g}")
        return snapped.element

    def _iota(self, op: Op, where: Coordinates) -> Element:
        return whole(where[op.attributes["axis"]])

    def _reshape(self, op: Op, where: Coordinates) -> Element:
        source = self._tape.ops[op.operands[0]].type.shape
        return self.at(op.operands[0], regrouped(where, op.type.shape, source))

    def _broadcast(self, op: Op, where: Coordinates) -> Element:
        source = self._tape.ops[op.operands[0]].type.shape
        lead = len(where) - len(source)
        inner = tuple(
            axis if extent == own else _ZERO
            for extent, own, axis in zip(source, op.type.shape[lead:], where[lead:], strict=True)
        )
        return self.at(op.operands[0], inner)

    def _permute(self, op: Op, where: Coordinates) -> Element:
        order = op.attributes["order"]
        return self.at(op.operands[0], tuple(where[order.index(axis)] for axis in range(len(order))))

    def _slice(self, op: Op, where: Coordinates) -> Element:
        steps = zip(where, op.attributes["start"], op.attributes["step"], strict=True)
        return self.at(
            op.operands[0], tuple(axis * step + start if step != 1 or start else axis for axis, start, step in steps)
        )

    def _reverse(self, op: Op, where: Coordinates) -> Element:
        axes = op.attributes["axes"]
        turned = (op.type.shape[k] - 1 - axis if k in axes else axis for k, axis in enumerate(where))
        return self.at(op.operands[0], tuple(turned))

    def _pad(self, op: Op, where: Coordinates) -> Element:
        shape = self._tape.ops[op.operands[0]].type.shape
        inside = np.ones((), bool)
        inner = []
        for axis, extent, low, high, between in zip(
            where, shape, op.attributes["low"], op.attributes["high"], op.attributes["interior"], strict=True
        ):
            if not (low or high or between):
                inner.append(axis)
                continue
            moved, apart = axis - low, between + 1
            inside = inside & (moved >= 0) & (moved % apart == 0) & (moved // apart < extent)
            inner.append(np.clip(moved // apart, 0, max(extent - 1, 0)))
        fill = self._snapped(op.attributes["fill"], op.type.dtype)
        if 0 in shape or not inside.any():
            return fill
        return choose(inside, self.at(op.operands[0], tuple(inner)), fill)

    def _unfold(self, op: Op, where: Coordinates) -> Element:
        axis = op.attributes["axis"]
        position = where[axis] * op.attributes["step"] + where[-1] * op.attributes["dilation"]
        return self.at(op.operands[0], (*where[:axis], position, *where[axis + 1 : -1]))

    def _strided(self, op: Op, where: Coordinates) -> Element:
        flat = np.full((), op.attributes["offset"], np.int64)
        for axis, stride in zip(where, op.attributes["strides"], strict=True):
            flat = flat + axis * stride
        source = self._tape.ops[op.operands[0]].type.shape
        return self.at(op.operands[0], regrouped((flat,), (math.prod(source),), source))

    def _concat(self, op: Op, where: Coordinates) -> Element:
        axis, start = op.attributes["axis"], 0
        found: Element | None = None
        for operand in op.operands:
            extent = self._tape.ops[operand].type.shape[axis]
            inside = (where[axis] >= start) & (where[axis] < start + extent)
            if inside.any():
                position = np.clip(where[axis] - start, 0, extent - 1)
                piece = self.at(operand, (*where[:axis], position, *where[axis + 1 :]))
                found = piece if found is None else choose(inside, piece, found)
            start += extent
        if found is None:
            raise Unprovable("a join of nothing")
        return found

    def _gather(self, op: Op, where: Coordinates) -> Element:
        axis = op.attributes["axis"]
        source, table = (self._tape.ops[operand].type.shape for operand in op.operands)
        end = axis + len(table)
        chosen = self.at(op.operands[1], where[axis:end])
        if chosen.p is None or not source[axis]:
            raise Unprovable("an index has no number in the model")
        position = centred(chosen.p, P) % source[axis]
        return self.at(op.operands[0], (*where[:axis], position, *where[end:]))

    def _matmul(self, op: Op, where: Coordinates) -> Element:
        a, b = op.operands
        inner = self._tape.ops[a].type.shape[-1]
        depth = _depth(where)
        over = _axis(inner, depth)
        left = self.at(a, (*where[:-1], over))
        right = self.at(b, (*where[:-2], over, where[-1]))
        products = work_of(_lanes(left), _lanes(right), inner)
        if products > self._limit * _PRODUCTS:
            raise TooLarge
        if left.state is None and right.state is None and inner <= LONGEST:
            return contracted(left, right, inner, depth)
        if products > self._limit:
            raise TooLarge
        return total(multiply(left, right), [inner], depth)

    def _reduced(self, op: Op, where: Coordinates) -> tuple[Element, list[int], int]:
        """Pulls the operand of a reduction with its axes in front."""
        shape, axes = self._tape.ops[op.operands[0]].type.shape, op.attributes["axes"]
        depth = _depth(where)
        kept = iter(where)
        inner: list[np.ndarray] = []
        extents: list[int] = []
        for axis, extent in enumerate(shape):
            if axis in axes:
                inner.append(_axis(extent, depth + len(extents)))
                extents.append(extent)
            else:
                inner.append(next(kept))
        if math.prod(extents) > self._limit:
            raise TooLarge
        return self.at(op.operands[0], tuple(inner)), extents, depth

    def _sum(self, op: Op, where: Coordinates) -> Element:
        if 0 in self._tape.ops[op.operands[0]].type.shape:
            return whole(0)
        return total(*self._reduced(op, where))

    def _prod(self, op: Op, where: Coordinates) -> Element:
        if 0 in self._tape.ops[op.operands[0]].type.shape:
            return whole(1)
        return product(*self._reduced(op, where))

    def _max(self, op: Op, where: Coordinates) -> Element:
        element, extents, depth = self._reduced(op, where)
        if op.type.dtype in FLOATS:
            self._functions.assumed.add(op.name)
        ranks = self._functions.rank(element, op.type.dtype in FLOATS)
        return greatest(element, ranks if op.name == "max" else -ranks, extents, depth)

    def _logsumexp(self, op: Op, where: Coordinates) -> Element:
        element, extents, depth = self._reduced(op, where)
        powers = self._functions.unary("exp", element, op.type.dtype)
        return self._functions.unary("log", total(powers, extents, depth), op.type.dtype)

    def _cumsum(self, op: Op, where: Coordinates) -> Element:
        axis = op.attributes["axis"]
        extent, depth = op.type.shape[axis], _depth(where)
        over = _axis(extent, depth)
        element = self.at(op.operands[0], (*where[:axis], over, *where[axis + 1 :]))
        return total(choose(over <= where[axis], element, whole(0)), [extent], depth)


_PRODUCTS: Final = 16
"""Products of matrices are not held, only worked out: so many times the limit are a few seconds."""
_PASSED_ON: Final = frozenset(("reshape", "permute", "broadcast", "slice", "reverse", "unfold", "strided"))
"""Ops that hold nothing of their own: they give on what their operand has at other coordinates."""
_APART: Final = 0xD1342543DE82EF95
_ZERO: Final = np.zeros((), np.int64)
_RULES: Final[Mapping[str, Callable[[Pull, Op, Coordinates], Element]]] = {
    "constant": Pull._constant, "iota": Pull._iota, "reshape": Pull._reshape, "broadcast": Pull._broadcast,
    "permute": Pull._permute, "slice": Pull._slice, "reverse": Pull._reverse, "pad": Pull._pad,
    "unfold": Pull._unfold, "strided": Pull._strided, "concat": Pull._concat, "gather": Pull._gather,
    "matmul": Pull._matmul, "sum": Pull._sum, "prod": Pull._prod, "max": Pull._max, "min": Pull._max,
    "logsumexp": Pull._logsumexp, "cumsum": Pull._cumsum,
}  # fmt: skip


def _depth(where: Coordinates) -> int:
    return max((axis.ndim for axis in where), default=0)


def _without_repeats(where: Coordinates) -> tuple[Coordinates, Repeats]:
    left, repeats = list(where), []
    for axis in range(1, _depth(where) + 1):
        own = [k for k, one in enumerate(left) if one.ndim >= axis and one.shape[-axis] > 1]
        if not own or any(left[k].size != left[k].shape[-axis] for k in own):
            continue  # coordinates that vary along other axes too
        table = np.stack([left[k].reshape(-1) for k in own])
        kept, places = np.unique(table, axis=1, return_inverse=True)
        if 2 * kept.shape[1] > table.shape[1]:
            continue
        for k, row in zip(own, kept, strict=True):
            left[k] = row.reshape(-1, *(1,) * (axis - 1))
        if kept.shape[1] > 1:
            repeats.append((axis, places.reshape(-1)))
    return tuple(left), tuple(repeats)


def _repeated(element: Element, repeats: Repeats) -> Element:
    """Puts elements of distinct coordinates wherever these stand; an array that does not show an axis stays so."""
    for axis, places in repeats:
        p, q, state = (
            np.take(lane, places, -axis) if lane is not None and lane.ndim >= axis and lane.shape[-axis] > 1 else lane
            for lane in (element.p, element.q, element.state)
        )
        element = Element(p, q, state, element.sign)
    return element


def _lanes(element: Element) -> tuple[int, ...]:
    """Gives the shape of an element's lanes."""
    return np.broadcast_shapes(*(lane.shape for lane in (element.p, element.q) if lane is not None))


def _axis(extent: int, depth: int) -> np.ndarray:
    """Makes the coordinates of a reduced axis: a new axis in front of `depth` others."""
    return np.arange(extent, dtype=np.int64).reshape(extent, *(1,) * depth)
