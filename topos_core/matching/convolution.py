"""Reading a contraction as a convolution: roles of digits, of axes, and of axes of extent 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from topos_core.matching.affine import NOWHERE, Digits, lone
from topos_core.matching.facts import ConvolutionFacts, Window
from topos_core.matching.form import Form
from topos_core.matching.image import image_roles
from topos_core.matching.kernel_layout import KernelSteps, kernel_layout
from topos_core.matching.layout import Piece, Row, build, usual
from topos_core.matching.view import View, is_whole
from topos_core.matching.window import Axis, Difference, Operand, Reading, flipped, read_axis, whole_axes
from topos_core.tape.tape import Tape

STEPS = ("a product summed", "a window", "a pad of zeros", "one kernel")


class Convolution(NamedTuple):
    """A contraction read as a convolution.

    Args:
        image, kernel: The bound values.
        facts: What kernels and raises need.
        kernel_rows: Per axis of the kernel its digits' roles.
        kernel_steps: Per axis of the kernel (coefficient, extent, piece), most significant first.
        pointwise: Whether no window, stride, pad or group made it one, but the order of the image's axes.
    """

    image: int
    kernel: int
    facts: ConvolutionFacts
    kernel_steps: KernelSteps
    pointwise: bool


def is_linear(form: Form) -> bool:
    """Says whether no window is in a form, and its operands share positions or the last axis of either is summed or shared: no
    convolution, however it is cut. It tells the products of linear layers and of attention before anything is read.
    """
    axes = whole_axes(form)
    if axes is None:
        return False
    kept = sum(map(len, form.joint.axes))
    rank = form.ranks[0]
    batch = {digit for digits in axes[:rank] for digit in digits if digit < kept}
    batch.intersection_update([digit for digits in axes[rank:] for digit in digits])
    if batch and not _is_windowed(axes[:rank], kept, batch) and not _is_windowed(axes[rank:], kept, batch):
        return True
    for mine, other in ((axes[:rank], axes[rank:]), (axes[rank:], axes[:rank])):
        shared = {digit for digits in other for digit in digits if digit < kept}
        is_channel = False
        for digits in mine:
            if len(digits) == 1:
                is_channel = digits[0] >= kept or digits[0] in shared
                continue
            channel = [digit >= kept or digit in shared for digit in digits]
            is_channel = any(channel)
            gone = [digit >= kept for digit in digits]
            if is_channel and not (all(channel) and gone == sorted(gone)):
                return False  # positions and taps, or a group inside a channel
        if len(mine) > 2 and not is_channel:
            return False  # a pointwise convolution has an axis behind its channel
    return True


def _is_windowed(axes: Sequence[tuple[int, ...]], kept: int, batch: set[int]) -> bool:
    """Says whether an axis of an operand holds summed digits beside kept ones: positions and taps, or, from rank 3 on, groups of
    channels."""
    mixed = [digits for digits in axes if len(digits) > 1 and min(digits) < kept <= max(digits)]
    return bool(mixed) and (len(axes) > 2 or any(d < kept and d not in batch for digits in mixed for d in digits))


def is_linear_product(a: View, b: View) -> bool:
    """Says whether `is_linear` holds of a matrix product because its operands show it: every axis of what they read is one
    digit, and the last one is summed. It spares the form of most products.
    """
    for x, y in zip(a.axes[:-2], b.axes[:-2], strict=True):
        if len(x) != len(y) or any(one.extent != other.extent for one, other in zip(x, y, strict=True)):
            return False  # digits that the other operand cuts
    return _ends_summed(a, a.axes[-1]) and _ends_summed(b, b.axes[-2])


def _ends_summed(view: View, summed: Digits) -> bool:
    sizes = view.base_shape
    if any(view.offsets) or not is_whole(view):
        return False
    left = set(range(len(sizes)))
    for row in view.axes:
        for extent, coefficients in row:
            place = lone(coefficients)
            if place == NOWHERE:
                continue
            if place not in left or extent != sizes[place]:
                return False
            left.remove(place)
    if any(sizes[place] != 1 for place in left):
        return False
    return len(sizes) <= 2 or any(lone(digit.coefficients) == len(sizes) - 1 for digit in summed)


def read_convolution(tape: Tape, form: Form, reading: Reading) -> Convolution | Difference | None:
    """Reads a form as a convolution, either operand as the image; None where nothing looks like one."""
    if 0 in reading.extents or 0 in form.joint.base_shape:
        return None  # nothing to multiply
    likely = int(tape.ops[form.bases[0]].name in ("parameter", "constant", "input"))
    answers = [_read(tape, reading, likely)]
    if isinstance(answers[0], Convolution) and not answers[0].pointwise:
        return answers[0]  # windows have one side only
    answers.append(_read(tape, reading, 1 - likely))
    answers = answers[::-1] if likely else answers  # the recorded order decides where both would do
    found = [answer for answer in answers if isinstance(answer, Convolution)]
    if found:
        return min(found, key=lambda c: (c.pointwise, _is_weight(tape, c.image), not _is_weight(tape, c.kernel)))
    differences = [answer for answer in answers if isinstance(answer, Difference)]
    return max(differences, key=lambda d: d.held) if differences else None


def _read(tape: Tape, reading: Reading, which: int) -> Convolution | Difference | None:
    image, kernel = reading.operands[which], reading.operands[1 - which]
    kept = range(reading.kept)
    reduced = range(reading.kept, len(reading.extents))
    both = image.digits & kernel.digits
    shared = both.intersection(kept)
    if not both.issuperset(reduced) or not (image.digits | kernel.digits).issuperset(kept):
        return None
    if not _apart(image) or not _apart(kernel):
        return None
    reading = flipped(reading, [d for steps in image.steps for d, step in steps.items() if step < 0 and d in reduced])
    image, kernel = reading.operands[which], reading.operands[1 - which]
    axes = [read_axis(reading, image, k, shared) for k in range(len(image.shape))]
    genuine = any(axis is not None and axis.genuine for axis in axes)
    if any(axis is None for axis in axes):
        return Difference("view", "", "", "", which, 1) if genuine else None
    known = [axis for axis in axes if axis is not None]
    guards = [axis.guard for axis in known if axis.guard is not None]
    if len(guards) != len(image.guards):
        return Difference("view", "", "", "", which, 1)
    if not genuine:
        return _pointwise(tape, reading, which, known, shared)
    padded = [axis for axis in known if axis.guard is not None and axis.guard.fill != 0]
    fill = next((axis.guard.fill for axis in padded if axis.guard is not None), None)
    if fill is not None:
        if not any(axis.kept and axis.reduced for axis in padded):
            return Difference("view", "", "", "", which, 2)  # nothing slides over the pad: a column of ones for a bias
        return Difference(
            "pad-fill",
            f"the image is padded with {fill:g}; a convolution reads 0 outside its image",
            "a pad of 0", f"a pad of {fill:g}", which, 2, {"fill": float(fill)},
        )  # fmt: skip
    if kernel.guards:
        return Difference("view", "", "", "", 1 - which, 3)
    spatial = image_roles(known, kernel.shape)
    if spatial is None:
        return Difference("view", "", "", "", which, 3)
    tiles = all(_is_tiling(axis) for axis in known if axis.genuine)
    windows = [k for k, role in enumerate(spatial) if role.isdigit()]
    if tiles and "b" in spatial[min(windows, default=0) :]:
        return None  # heads that come together again: an image has its batch first
    if tiles and (
        "f" not in spatial or (_has_outputs(reading, which, shared) and not _splits_outputs(reading, which, shared))
    ):
        return None  # cutting an axis into heads, with one product per head, is no window
    return _facts(reading, which, known, spatial, pointwise=False)


def _pointwise(
    tape: Tape, reading: Reading, which: int, axes: Sequence[Axis], shared: frozenset[int]
) -> Convolution | Difference | None:
    """A 1x1 convolution: an unbatched kernel over an image of rank >= 3 whose channel axis precedes a spatial one."""
    image, kernel = reading.operands[which], reading.operands[1 - which]
    rank = len(image.shape)
    if rank < 3 or kernel.guards or any(axis.kind == "window" for axis in axes):
        return None
    channel = [k for k, axis in enumerate(axes) if axis.kind == "channel"]
    if not channel:
        if len(kernel.shape) != rank or axes[1].kind != "unit":
            return None  # one channel is told from none by the recorded ranks alone
        channel = [1]
    if any(d in shared for axis in axes for d in axis.kept) and not _is_grouped(reading, which, axes, shared):
        return None
    first, last = channel[0], channel[-1]
    if last == rank - 1 or channel != list(range(first, last + 1)):
        return None
    told = len(kernel.shape) == rank and kernel.shape[1:] == (image.shape[channel[0]], *(1,) * (rank - 2))
    flat = len(reading.axes) < 3 and not told
    if flat and all(extent == 1 for extent in image.shape[last + 1 :]):
        return None  # one pixel, no axis of which the kernel or the result has: a flattened image that meets a linear layer
    if not told and _is_rows(reading, which):
        return None
    roles = ["b"] * first + ["f"] * len(channel) + [str(k) for k in range(rank - 1 - last)]
    if any(axis.kind == "plain" and axis.kept and role == "f" for axis, role in zip(axes, roles, strict=True)):
        return None
    return _facts(reading, which, axes, roles, pointwise=True)


def _is_rows(reading: Reading, which: int) -> bool:
    """Says whether what would be the kernel is rather the x of a linear layer, and the image its weight: `[batch, time, width]`
    that meets `[width, heads, head]` or `[heads, width, head]`, of as many axes as the image at least, two or more of them kept and the last one summed.
    """
    kernel = reading.operands[1 - which]
    if len(kernel.shape) < len(reading.operands[which].shape):
        return False
    is_summed = [any(digit >= reading.kept for digit in steps) for steps in kernel.steps]
    kept = sum(extent > 1 and not summed for extent, summed in zip(kernel.shape, is_summed, strict=True))
    return kept > 1 and is_summed[-1]


def _is_grouped(reading: Reading, which: int, axes: Sequence[Axis], shared: frozenset[int]) -> bool:
    """Says whether groups split a channel axis of the image and an output axis of the kernel: else they are a batch."""
    if not any(axis.kept and axis.reduced for axis in axes if axis.kind == "channel"):
        return False
    return _splits_outputs(reading, which, shared)


def _splits_outputs(reading: Reading, which: int, shared: frozenset[int]) -> bool:
    """Says whether the axes of the kernel that run along groups run along outputs too."""
    return all(
        not (steps.keys() & shared) or any(d < reading.kept and d not in shared for d in steps)
        for steps in reading.operands[1 - which].steps
    )


def _has_outputs(reading: Reading, which: int, shared: frozenset[int]) -> bool:
    """Says whether there are groups with several outputs each: a kernel of one output each only has its groups."""
    kernel = reading.operands[1 - which]
    return bool(shared) and any(d < reading.kept and d not in shared for steps in kernel.steps for d in steps)


def _is_tiling(axis: Axis) -> bool:
    """Says whether windows lie side by side, over all of an axis or over a slice of it."""
    w = axis.window
    return w.stride == w.size and w.dilation == w.base_dilation == 1 and w.low <= 0 and w.high <= 0


def _facts(
    reading: Reading, which: int, axes: Sequence[Axis], roles: Sequence[str], *, pointwise: bool
) -> Convolution | Difference | None:
    """Puts roles on digits and builds the three layouts."""
    image, kernel = reading.operands[which], reading.operands[1 - which]
    extents = reading.extents
    names: dict[int, Piece] = {}
    places: dict[str, int] = {}

    def name(digit: int, role: str) -> None:
        names[digit] = Piece(extents[digit], role, places.setdefault(role, 0))
        places[role] += 1

    taps: dict[str, tuple[int, ...]] = {}
    windows: dict[str, Window] = {}
    for axis, role in zip(axes, roles, strict=True):
        if role == "b":
            for digit in axis.kept:
                name(digit, "b")
        elif role == "f":
            if axis.kept and "i" in places:
                return Difference("view", "", "", "", which, 3)  # a group inside a channel
            for digit in axis.kept:
                name(digit, "g")
            for digit in axis.reduced:
                name(digit, "i")
        elif role:
            for digit in axis.kept:
                name(digit, role)
            taps[role] = axis.reduced
            full = axis.kind == "channel"
            windows[role] = Window(size=_size(extents, axis.reduced)) if full else axis.window
    kernel_rows = _kernel_rows(reading, kernel, names, taps, windows)
    if kernel_rows is None:
        return Difference("view", "", "", "", 1 - which, 3)
    if any(d not in names for row in reading.axes for d in row):
        return None
    spatial = tuple(windows[str(k)] for k in range(len(windows)))
    groups = _count(names, "g")
    inputs, outputs, batch = _count(names, "i"), _count(names, "f") * groups, _count(names, "b")
    image_rows: list[Row] = []
    for k, (axis, role) in enumerate(zip(axes, roles, strict=True)):
        image_rows.append([Piece(image.shape[k], role, k)] if role and axis.kind != "unit" else [])
    letters = [str(k) for k in range(len(spatial))]
    image_layout = build(
        image_rows, ["b", "f", *letters], [roles, *usual(len(spatial), "bfS", "bSf", "fS", "Sf", "S")], ("b", "")
    )
    if any(image_layout.roles.count(role) != 1 for role in image_layout.roles):
        return Difference("view", "", "", "", which, 3)
    result_rows: list[Row] = [[names[d] for d in row] for row in reading.axes]
    result = build(
        result_rows,
        ["b", *(["f"] if outputs > groups or groups == 1 else []), *letters],
        usual(len(spatial), "bfS", "bSf", "fS", "Sf", "bS", "S"),
        ("b", "f"),
    )
    laid = kernel_layout([[p for _, p in row] for row in kernel_rows], len(spatial), groups, outputs)
    facts = ConvolutionFacts(image_layout, laid, result, spatial, groups, batch, inputs, outputs)
    return Convolution(image.value, kernel.value, facts, kernel_rows, pointwise)


def _kernel_rows(
    reading: Reading,
    kernel: Operand,
    names: dict[int, Piece],
    taps: dict[str, tuple[int, ...]],
    windows: dict[str, Window],
) -> KernelSteps | None:
    """Reads the kernel's axes, which its digits must enumerate; taps may run backwards. Names output channels."""
    backwards: dict[str, set[bool]] = {}
    role_of = {digit: (role, place) for role, digits in taps.items() for place, digit in enumerate(digits)}
    rows = []
    outputs = 0
    for steps, offset, divisor, size in zip(kernel.steps, kernel.offsets, kernel.divisors, kernel.shape, strict=True):
        row: list[tuple[int, Piece]] = []
        expected = 1
        for digit in sorted(steps, key=lambda d: abs(steps[d])):
            coefficient, extent = steps[digit], reading.extents[digit]
            if digit in role_of:
                role, place = role_of[digit]
                backwards.setdefault(role, set()).add(coefficient < 0)
                if coefficient < 0:
                    offset, coefficient = offset + coefficient * (extent - 1), -coefficient
                piece = Piece(extent, role, place)
            else:
                known = names.get(digit)
                piece = known if known is not None else Piece(extent, "o", -1)
                if piece.role not in ("g", "i", "o"):
                    return None
            if coefficient != expected:
                return None
            expected *= extent
            row.append((coefficient, piece))
        if expected != size or offset != 0 or divisor != 1:
            return None
        row.reverse()
        for at, (coefficient, piece) in enumerate(row):
            if piece.role == "o":
                digit = next(d for d in steps if abs(steps[d]) == coefficient)
                row[at] = (coefficient, Piece(piece.extent, "o", outputs))
                names[digit] = Piece(piece.extent, "f", outputs)
                outputs += 1
        rows.append(tuple(row))
    for role, signs in backwards.items():
        if len(signs) > 1:
            return None
        if signs == {True}:
            windows[role] = replace(windows[role], reversed=True)
    return tuple(rows)


def _apart(operand: Operand) -> bool:
    """Says whether no digit moves along two axes, as a diagonal's does."""
    return sum(map(len, operand.steps)) == len(operand.digits)


def _size(extents: Sequence[int], digits: Sequence[int]) -> int:
    out = 1
    for digit in digits:
        out *= extents[digit]
    return out


def _count(names: dict[int, Piece], role: str) -> int:
    out = 1
    for piece in names.values():
        if piece.role == role:
            out *= piece.extent
    return out


def _is_weight(tape: Tape, value: int) -> bool:
    return tape.ops[value].name in ("parameter", "constant")
