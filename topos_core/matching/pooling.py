"""Reading a fold of one view as a reduction over windows."""

from __future__ import annotations

from typing import NamedTuple

from topos_core.matching.facts import Layout, Window, WindowReduceFacts
from topos_core.matching.form import Form, neutral
from topos_core.matching.layout import Piece, Row, build
from topos_core.matching.window import Axis, Difference, Reading, flipped, read_axis, read_form, whole_axes
from topos_core.tape.tape import Tape

STEPS = ("a reduction over part of an axis", "windows on a grid", "a pad with the neutral element")


class Pooling(NamedTuple):
    """A fold read as a reduction over windows of the value `image`."""

    image: int
    facts: WindowReduceFacts


def slides_nowhere(form: Form) -> bool:
    """Says whether every axis is kept or reduced as a whole: nothing slides, however the fold is cut."""
    axes = whole_axes(form)
    if axes is None:
        return False
    kept = sum(map(len, form.joint.axes))
    return all(digits[0] >= kept or digits[-1] < kept for digits in map(sorted, axes) if digits)


def is_tiling(window: Window) -> bool:
    """Says whether windows lie side by side and cover the image, without padding."""
    return (
        window.stride == window.size and window.dilation == window.base_dilation == 1 and window.low == window.high == 0
    )


def read_pooling(tape: Tape, form: Form) -> Pooling | Difference | None:
    """Reads a fold as a reduction over windows; None where nothing slides."""
    reading = read_form(form)
    (image,) = reading.operands
    reduced = range(reading.kept, len(reading.extents))
    if any(d not in image.digits for d in range(len(reading.extents))) or 0 in reading.extents:
        return None
    seen: set[int] = set()
    for steps in image.steps:
        if seen & steps.keys():
            return None
        seen |= steps.keys()
    reading = flipped(reading, (d for d in reduced if any(axis.get(d, 0) < 0 for axis in image.steps)))
    (image,) = reading.operands
    axes = [read_axis(reading, image, k, frozenset()) for k in range(len(image.shape))]
    sliding = [axis for axis in axes if axis is not None and axis.kept and axis.reduced]
    if not sliding:
        return None
    known = [axis for axis in axes if axis is not None]
    guards = [axis.guard for axis in known if axis.guard is not None]
    if len(known) != len(axes) or len(guards) != len(image.guards):
        return Difference("view", "", "", "", 0, 1)
    if all(is_tiling(axis.window) for axis in sliding) and any(axis.kind == "channel" for axis in known):
        return None  # whole axes reduced together with parts of another: a norm's statistic, not a pool
    assert form.operation is not None  # `reduced` digits exist
    needed = neutral(form.operation, tape.type_of(form.bases[0]).dtype)
    fill = next((guard.fill for guard in guards if guard.fill != needed), None)
    if fill is not None:
        return Difference(
            "pad-fill",
            f"the pad fills with {fill:g}; a {form.operation} over windows that ignores its pad needs {needed:g}",
            f"a pad of {needed:g}", f"a pad of {fill:g}", 0, 2, {"fill": float(fill)},
        )  # fmt: skip
    windows = tuple(_window(reading, axis) for axis in known)
    facts = WindowReduceFacts(form.operation, windows, _result(reading, known), float(needed) if guards else None)
    return Pooling(image.value, facts)


def _window(reading: Reading, axis: Axis) -> Window:
    if axis.kind != "channel":
        return axis.window
    size = 1
    for digit in axis.reduced:
        size *= reading.extents[digit]
    return Window(size=size)


def _result(reading: Reading, axes: list[Axis]) -> Layout:
    names: dict[int, Piece] = {}
    for k, axis in enumerate(axes):
        for place, digit in enumerate(axis.kept):
            names[digit] = Piece(reading.extents[digit], str(k), place)
    rows: list[Row] = [[names[digit] for digit in row] for row in reading.axes]
    roles = [str(k) for k in range(len(axes))]
    return build(rows, roles, [roles], ("", ""))
