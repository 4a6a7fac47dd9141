"""What each movement op does to a view; None where the result does not fit and becomes a base of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from topos_core.matching.affine import Digit, Digits, Progression, fit, merged, regrouped, size
from topos_core.matching.axes import padded_axis, single, sliced_axis, unit, with_axis
from topos_core.matching.tuples import new_tuple
from topos_core.matching.view import View
from topos_core.tape.op import Op
from topos_core.tape.tape import Tape

ViewOf = Callable[[int], View]


def moved(tape: Tape, op: Op, view_of: ViewOf) -> View | None:
    """Gives the view of a movement op's result, or None where it is no movement or does not fit."""
    name, operands, _, kind, _ = op
    rule = RULES.get(name)
    if rule is None or 0 in kind.shape:
        return None
    ops = tape.ops
    for operand in operands:
        if 0 in ops[operand][3].shape:
            return None
    return rule(tape, op, view_of)


def stacked(views: Sequence[View]) -> tuple[View, Digits] | None:
    """Stacks views that differ in their offsets alone: (the common view, the leading digits); None where none fits."""
    first = views[0]
    if any(not _alike(first, other) for other in views[1:]):
        return None
    if not first.offsets:
        return first, (Digit(len(views), ()),)
    fitted = fit([[view.offsets[form] for view in views] for form in range(len(first.offsets))])
    if fitted is None:
        return None
    runs, offsets = fitted
    return first._replace(offsets=offsets), tuple(Digit(run.extent, run.steps) for run in runs)


def _alike(a: View, b: View) -> bool:
    """Says whether two views differ in their offsets alone; -0.0 and 0.0 are different fills."""
    return a._replace(offsets=b.offsets) == b and (not a.bounds or repr(a.bounds) == repr(b.bounds))


def _reshape(tape: Tape, op: Op, view_of: ViewOf) -> View | None:
    view = view_of(op.operands[0])
    groups = regrouped(view.digits, op.type.shape)
    return None if groups is None else new_tuple(View, (*view[:2], groups, *view[3:]))


def _permute(tape: Tape, op: Op, view_of: ViewOf) -> View | None:
    view = view_of(op.operands[0])
    axes = view.axes
    return new_tuple(View, (*view[:2], tuple([axes[k] for k in op.attributes["order"]]), *view[3:]))


def _broadcast(tape: Tape, op: Op, view_of: ViewOf) -> View | None:
    view = view_of(op.operands[0])
    source = tape.ops[op.operands[0]].type.shape
    shape = op.type.shape
    lead = len(shape) - len(source)
    zeros = (0,) * len(view.offsets)
    axes: list[Digits] = [(new_tuple(Digit, (extent, zeros)),) if extent != 1 else () for extent in shape[:lead]]
    for own, extent, inherited in zip(source, shape[lead:], view.axes, strict=True):
        axes.append(inherited if own == extent else (new_tuple(Digit, (extent, zeros)),) if extent != 1 else ())
    return new_tuple(View, (*view[:2], tuple(axes), *view[3:]))


def _pad(tape: Tape, op: Op, view_of: ViewOf) -> View | None:
    view: View | None = view_of(op.operands[0])
    a = op.attributes
    for axis, (low, high, interior) in enumerate(zip(a["low"], a["high"], a["interior"], strict=True)):
        if view is None:
            return None
        if low or high or interior:
            view = padded_axis(view, axis, low, high, interior, a["fill"])
    return view


def _slice(tape: Tape, op: Op, view_of: ViewOf) -> View | None:
    view: View | None = view_of(op.operands[0])
    source = tape.ops[op.operands[0]].type.shape
    for axis, (start, step, extent) in enumerate(
        zip(op.attributes["start"], op.attributes["step"], op.type.shape, strict=True)
    ):
        if view is None:
            return None
        if extent != source[axis]:
            view = sliced_axis(view, axis, Progression(start, step, extent))
    return view


def _reverse(tape: Tape, op: Op, view_of: ViewOf) -> View | None:
    view = view_of(op.operands[0])
    offsets, axes = list(view.offsets), list(view.axes)
    for axis in op.attributes["axes"]:
        back: list[Digit] = []
        for extent, coefficients in axes[axis]:
            offsets = [o + (extent - 1) * c for o, c in zip(offsets, coefficients, strict=True)]
            back.append(Digit(extent, tuple(-c for c in coefficients)))
        axes[axis] = tuple(back)
    return view._replace(axes=tuple(axes), offsets=tuple(offsets))


def _concat(tape: Tape, op: Op, view_of: ViewOf) -> View | None:
    """Equal views become one digit; splats at the ends are a pad; pieces that continue each other are one slice."""
    axis = op.attributes["axis"]
    if len(op.operands) == 1:
        return view_of(op.operands[0])
    views = [view_of(o) for o in op.operands]
    fills = [_splat(tape, view) for view in views]
    real = [k for k, fill in enumerate(fills) if fill is None]
    if not real:
        return None
    first, last = real[0], real[-1] + 1
    ends = {repr(fill) for fill in fills[:first] + fills[last:]}
    if len(ends) > 1:
        return None
    middle = _joined(views[first:last], axis)
    if middle is None or not ends:
        return middle
    low, high = (sum(size(view.axes[axis]) for view in part) for part in (views[:first], views[last:]))
    fill = fills[0] if first else fills[-1]
    return padded_axis(middle, axis, low, high, 0, fill)


def _joined(views: Sequence[View], axis: int) -> View | None:
    if len(views) == 1:
        return views[0]
    stack = stacked(views)
    if stack is not None:
        view, lead = stack
        return view._replace(axes=with_axis(view.axes, axis, merged(lead + view.axes[axis])))
    first = views[0]
    row = next((view.axes[axis] for view in views if view.axes[axis]), ())
    if len(row) != 1 or any(len(view.offsets) != len(first.offsets) for view in views):
        return None
    coefficients, count = row[0].coefficients, 0
    for view in views:
        digits = view.axes[axis]
        if digits and (len(digits) != 1 or digits[0].coefficients != coefficients):
            return None
        expected = tuple(o + count * c for o, c in zip(first.offsets, coefficients, strict=True))
        if view.offsets != expected or not _alike(first._replace(axes=with_axis(first.axes, axis, digits)), view):
            return None
        count += size(digits)
    return first._replace(axes=with_axis(first.axes, axis, (Digit(count, coefficients),)))


def _unfold(tape: Tape, op: Op, view_of: ViewOf) -> View | None:
    a = op.attributes
    axis, count = a["axis"], op.type.shape[a["axis"]]
    joined = single(view_of(op.operands[0]), axis)
    if joined is None:
        return None
    view, digit = joined
    positions, taps = (
        (new_tuple(Digit, (extent, digit[1] if by == 1 else tuple([c * by for c in digit[1]]))),) if extent != 1 else ()
        for extent, by in ((count, a["step"]), (a["size"], a["dilation"]))
    )
    return new_tuple(View, (*view[:2], (*with_axis(view.axes, axis, positions), taps), *view[3:]))


def _strided(tape: Tape, op: Op, view_of: ViewOf) -> View | None:
    """Reads each stride as a step in every digit of the flattened operand; a carry between digits does not fit."""
    view = view_of(op.operands[0])
    flat = merged(view.digits)
    weights = [1] * len(flat)
    for k in reversed(range(len(flat) - 1)):
        weights[k] = weights[k + 1] * flat[k + 1].extent
    values = _in_digits(op.attributes["offset"], weights)
    if any(not 0 <= value < digit.extent for value, digit in zip(values, flat, strict=True)):
        return None
    low, high = list(values), list(values)
    axes: list[Digits] = []
    for extent, stride in zip(op.type.shape, op.attributes["strides"], strict=True):
        axis: list[Digit] = []
        for part, step in _at_boundaries(extent, stride, weights):
            moves = _in_digits(step, weights)
            for k, move in enumerate(moves):
                reach = move * (part - 1)
                low[k], high[k] = low[k] + min(reach, 0), high[k] + max(reach, 0)
            axis.append(Digit(part, _combined(moves, flat, len(view.offsets))))
        axes.append(merged(axis))
    if any(first < 0 or last >= digit.extent for first, last, digit in zip(low, high, flat, strict=True)):
        return None
    offsets = _combined(values, flat, len(view.offsets))
    return view._replace(axes=tuple(axes), offsets=tuple(a + b for a, b in zip(view.offsets, offsets, strict=True)))


def _gather(tape: Tape, op: Op, view_of: ViewOf) -> View | None:
    """Fits a constant table to digits, axis by axis of the table; costs the table's length."""
    axis = op.attributes["axis"]
    view = view_of(op.operands[0])
    table = _table(tape, view_of(op.operands[1]))
    extent = tape.ops[op.operands[0]].type.shape[axis]
    if table is None or table.min() < 0 or table.max() >= extent:
        return None
    digits = view.axes[axis] or (unit(view),)
    columns = _columns(table, [digit.extent for digit in digits])
    rank = table.ndim
    axes: list[Digits] = []
    total = [np.full((1,) * rank, column.flat[0], np.int64) for column in columns]
    for k in range(rank):
        along = tuple(slice(None) if i == k else 0 for i in range(rank))
        fitted = fit([column[along].tolist() for column in columns])
        if fitted is None:
            return None
        runs, first = fitted
        for i, column in enumerate(columns):
            total[i] = total[i] + (column[along] - first[i]).reshape([-1 if j == k else 1 for j in range(rank)])
        axes.append(merged(Digit(run.extent, _combined(run.steps, digits, len(view.offsets))) for run in runs))
    if any((sums != column).any() for sums, column in zip(total, columns, strict=True)):
        return None
    start = _combined([int(column.flat[0]) for column in columns], digits, len(view.offsets))
    offsets = tuple(a + b for a, b in zip(view.offsets, start, strict=True))
    return view._replace(axes=(*view.axes[:axis], *axes, *view.axes[axis + 1 :]), offsets=offsets)


def _table(tape: Tape, view: View) -> np.ndarray | None:
    """Gives the values of an index operand: a constant table or splat, or a count, moved in any way."""
    from topos_core.matching.view import read

    op = tape.ops[view.base] if view.base >= 0 else None  # a product has no base, and is no table
    if op is None:
        return None
    if op.name == "constant":
        base = np.asarray(op.attributes["value"])
        return read(view, base if base.ndim else np.broadcast_to(base, op.type.shape)).astype(np.int64)
    if op.name == "iota":
        axis = op.attributes["axis"]
        count = np.arange(op.type.shape[axis]).reshape([-1 if k == axis else 1 for k in range(len(op.type.shape))])
        return read(view, np.broadcast_to(count, op.type.shape))
    return None


def _columns(table: np.ndarray, extents: Sequence[int]) -> list[np.ndarray]:
    columns: list[np.ndarray] = []
    for extent in reversed(extents):
        columns.append(table % extent)
        table = table // extent
    return columns[::-1]


def _combined(moves: Sequence[int], digits: Sequence[Digit], forms: int) -> tuple[int, ...]:
    """Adds up the coefficients of digits, each taken `move` times."""
    out = [0] * forms
    for move, digit in zip(moves, digits, strict=True):
        if move:
            out = [o + move * c for o, c in zip(out, digit.coefficients, strict=True)]
    return tuple(out)


def _in_digits(step: int, weights: Sequence[int]) -> list[int]:
    sign, rest = (-1 if step < 0 else 1), abs(step)
    out = []
    for weight in weights:
        move, rest = divmod(rest, weight)
        out.append(sign * move)
    return out


def _at_boundaries(extent: int, stride: int, weights: Sequence[int]) -> list[tuple[int, int]]:
    """Cuts (extent, stride) where the run passes a digit's boundary evenly, most significant first."""
    parts: list[tuple[int, int]] = []
    size, step = extent, abs(stride)
    sign = -1 if stride < 0 else 1
    for weight in reversed(weights):
        if step and step < weight < step * size and weight % step == 0 and size % (weight // step) == 0:
            inner = weight // step
            parts.append((inner, sign * step))
            size, step = size // inner, weight
    parts.append((size, sign * step))
    return parts[::-1]


def _splat(tape: Tape, view: View) -> Any:
    """Gives the one value that a view reads everywhere, or None. Costs the length of a constant table."""
    if view.base < 0 or view.bounds:
        return None
    op = tape.ops[view.base]
    if op.name != "constant":
        return None
    value = op.attributes["value"]
    if isinstance(value, np.ndarray) and value.ndim:
        return value.flat[0] if value.size and (value == value.flat[0]).all() else None
    return value


RULES: dict[str, Callable[[Tape, Op, ViewOf], View | None]] = {
    "reshape": _reshape,
    "permute": _permute,
    "broadcast": _broadcast,
    "pad": _pad,
    "slice": _slice,
    "reverse": _reverse,
    "concat": _concat,
    "unfold": _unfold,
    "strided": _strided,
    "gather": _gather,
}
