"""Windows: the axes of an operand read as `position * stride + tap * dilation - low`.

Everything here asks of one operand of a form which digits move along which axis of its base, and by how much.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from topos_core.matching.affine import Digit
from topos_core.matching.facts import Window
from topos_core.matching.form import Form
from topos_core.matching.tuples import new_tuple
from topos_core.matching.view import Bound, View, is_whole, pruned


class Difference(NamedTuple):
    """Why a form is not what a pattern needs.

    Args:
        code: A stable word.
        sentence, expected, found: For people.
        operand: The operand that is at fault, or -1.
        held: How many steps of the reading held.
        numbers: What decided.
    """

    code: str
    sentence: str
    expected: str
    found: str
    operand: int = -1
    held: int = 0
    numbers: Mapping[str, float] = {}


class Guard(NamedTuple):
    """A bound of an operand: coefficients by digit, offset, divisor, and the bound itself."""

    steps: Mapping[int, int]
    offset: int
    divisor: int
    bound: Bound


class Operand(NamedTuple):
    """One operand of a form. Digits are numbered: those that the result keeps first, then the reduced ones.

    `steps[k]` maps each digit that moves along base axis k to its coefficient; `digits` are all of those.
    """

    value: int
    shape: tuple[int, ...]
    steps: tuple[Mapping[int, int], ...]
    offsets: tuple[int, ...]
    divisors: tuple[int, ...]
    guards: tuple[Guard, ...]
    digits: frozenset[int]


class Reading(NamedTuple):
    """A form with its digits numbered.

    Args:
        extents: Per digit.
        kept: How many digits the result keeps; they come first.
        axes: Per axis of the result its digits, most significant first.
        operands: One or two.
    """

    extents: tuple[int, ...]
    kept: int
    axes: tuple[tuple[int, ...], ...]
    operands: tuple[Operand, ...]


_STILL: Final = Window()
"""How plain and channel axes are read: nothing slides."""

AxisKind = Literal["unit", "plain", "channel", "window"]


class Axis(NamedTuple):
    """One base axis of an image.

    Args:
        kind: `unit`: extent 1, nothing moves. `plain`: kept digits enumerate it. `channel`: reduced and group digits
            enumerate it. `window`: anything else that is a window.
        kept, reduced: Digits, most significant first.
        window: How it is read; the default for plain and channel axes.
        genuine: Whether it makes a window of its own accord: positions and taps together, a stride, a pad, zeros
            between elements. A crop alone does not.
        guard: The pad around it, or None.
    """

    kind: AxisKind
    kept: tuple[int, ...]
    reduced: tuple[int, ...]
    window: Window
    genuine: bool
    guard: Bound | None


def read_form(form: Form) -> Reading:
    """Numbers the digits of a form and splits it into its operands."""
    kept = form.joint.digits
    digits = kept + form.reduced
    axes: list[tuple[int, ...]] = []
    at = 0
    for row in form.joint.axes:
        axes.append(tuple(range(at, at + len(row))))
        at += len(row)
    operands = []
    moves: list[dict[int, int]] = [{} for _ in form.joint.offsets]  # by form, of each digit that moves along it
    for number, (_, coefficients) in enumerate(digits):
        for k, coefficient in enumerate(coefficients):
            if coefficient:
                moves[k][number] = coefficient
    first, guard = 0, sum(form.ranks)
    for base, rank, guards in zip(form.bases, form.ranks, form.guards, strict=True):
        if guards:
            forms = [*range(first, first + rank), *range(guard, guard + guards)]
            operands.append(_guarded(form.joint, base, rank, forms, guard - sum(form.ranks), digits))
        else:
            operands.append(_operand(form.joint, base, slice(first, first + rank), moves))
        first, guard = first + rank, guard + guards
    return Reading(tuple([extent for extent, _ in digits]), len(kept), tuple(axes), tuple(operands))


def whole_axes(form: Form) -> list[tuple[int, ...]] | None:
    """Lists, for every base axis, the digits that run through all of it in order, most significant first and numbered as
    `read_form` does; None where some axis is read otherwise: by windows, in steps, in part or padded.
    """
    joint = form.joint
    if any(joint.offsets) or not is_whole(joint):
        return None
    found: list[list[tuple[int, int, int]]] = [[] for _ in joint.base_shape]  # coefficient, number, extent
    number = 0
    for row in (*joint.axes, form.reduced):
        for extent, coefficients in row:
            for k, coefficient in enumerate(coefficients):
                if coefficient:
                    found[k].append((coefficient, number, extent))
            number += 1
    out: list[tuple[int, ...]] = []
    for digits, size in zip(found, joint.base_shape, strict=True):
        if len(digits) > 1:
            digits.sort(reverse=True)
        expected = 1
        for coefficient, _, extent in reversed(digits):
            if coefficient != expected:
                return None
            expected *= extent
        if expected != size:
            return None
        out.append(tuple([number for _, number, _ in digits]))
    return out


def read_axis(reading: Reading, operand: Operand, k: int, shared: frozenset[int]) -> Axis | None:
    """Reads one axis of an image; None where it is no window. `shared` are kept digits that the other operand has too."""
    size, steps, offset, divisor = operand.shape[k], operand.steps[k], operand.offsets[k], operand.divisors[k]
    guard = None
    for one in operand.guards:
        if one.steps == steps:
            guard = one
            break
    if not steps:
        return Axis("unit", (), (), _STILL, False, None) if size == 1 and guard is None else _fixed(size, offset)
    if len(steps) == 1 and guard is None and divisor == 1 and offset == 0:
        ((digit, step),) = steps.items()
        if step == 1 and reading.extents[digit] == size:  # the common case: one digit enumerates the axis
            if digit >= reading.kept:
                return Axis("channel", (), (digit,), _STILL, False, None)
            return Axis("channel" if digit in shared else "plain", (digit,), (), _STILL, False, None)
    kept = _chain(reading, {d: c for d, c in steps.items() if d < reading.kept})
    reduced = _chain(reading, {d: c for d, c in steps.items() if d >= reading.kept})
    if guard is None and divisor == 1 and offset == 0 and _enumerates(reading, steps, size):
        if kept is None or reduced is None:
            return None
        if not reduced.digits and not set(kept.digits) & shared:
            return Axis("plain", kept.digits, (), _STILL, False, None)
        if set(kept.digits) <= shared:
            leads = not kept.digits or not reduced.digits or kept.step > reduced.step
            return Axis("channel", kept.digits, reduced.digits, _STILL, False, None) if leads else None
    if kept is None or reduced is None or set(kept.digits) & shared:
        return None
    length = (size - 1) * divisor + 1
    if guard is not None and (
        guard.divisor != 1
        or guard.offset != offset
        or guard.bound.limit != length
        or (guard.bound.modulus != divisor and size > 1)
    ):
        return None  # the pad is not around the whole base axis
    if guard is None and divisor > 1:
        return None
    positions, taps = kept.size, reduced.size
    stride = kept.step if kept.digits else 1
    dilation = reduced.step if reduced.digits else 1
    if stride < 1 or dilation < 1:
        return None
    high = (positions - 1) * stride + (taps - 1) * dilation + 1 + offset - length
    window = Window(taps, stride, dilation, -offset, high, divisor)
    strided = stride > 1 and k > 0  # every other row of a batch is no window
    genuine = bool(kept.digits and reduced.digits) or strided or guard is not None
    return Axis("window", kept.digits, reduced.digits, window, genuine, guard.bound if guard else None)


def is_promising(reading: Reading) -> bool:
    """Says whether some axis of some operand holds positions and taps, a stride or a pad: worth a second look."""
    kept = reading.kept
    for k, operand in enumerate(reading.operands):
        if operand.guards:
            return True
        for steps in operand.steps:
            own = [d for d in steps if d < kept and all(d not in o.digits for o in reading.operands[k + 1 :])]
            if k:
                own = [d for d in own if d not in reading.operands[0].digits]
            if own and (max(steps) >= kept or min(map(abs, steps.values())) > 1):
                return True
    return False


def flipped(reading: Reading, digits: Iterable[int]) -> Reading:
    """Counts the given digits from their other end."""
    turn = set(digits)
    if not turn:
        return reading
    return reading._replace(operands=tuple(_flipped(reading, operand, turn) for operand in reading.operands))


class Chain(NamedTuple):
    """Digits that count one number: most significant first, how many values it has, and what its last digit adds."""

    digits: tuple[int, ...]
    size: int
    step: int


def _chain(reading: Reading, steps: Mapping[int, int]) -> Chain | None:
    ordered = sorted(steps, key=lambda d: -abs(steps[d]))
    count = 1
    for outer, inner in pairwise(ordered):
        if steps[outer] != steps[inner] * reading.extents[inner]:
            return None
    for digit in ordered:
        count *= reading.extents[digit]
    return Chain(tuple(ordered), count, steps[ordered[-1]] if ordered else 0)


def _enumerates(reading: Reading, steps: Mapping[int, int], size: int) -> bool:
    """Says whether the digits run through `size` positions, each once, in order."""
    expected = 1
    for digit in sorted(steps, key=lambda d: steps[d]):
        if steps[digit] != expected:
            return False
        expected *= reading.extents[digit]
    return expected == size


def _fixed(size: int, offset: int) -> Axis:
    """An axis at one fixed position: a crop to one element."""
    return Axis("window", (), (), Window(low=-offset, high=1 + offset - size), False, None)


def _operand(joint: View, base: int, own: slice, moves: Sequence[Mapping[int, int]]) -> Operand:
    steps = tuple(moves[own])
    digits: frozenset[int] = frozenset().union(*steps)
    return Operand(base, joint.base_shape[own], steps, joint.offsets[own], joint.divisors[own], (), digits)


def _guarded(joint: View, base: int, rank: int, forms: Sequence[int], bound: int, digits: Sequence[Digit]) -> Operand:
    shape = joint.base_shape[forms[0] : forms[0] + rank] if rank else ()
    view = View(
        base,
        shape,
        tuple([(new_tuple(Digit, (extent, tuple([c[f] for f in forms]))),) for extent, c in digits]),
        tuple([joint.offsets[f] for f in forms]),
        tuple([joint.divisors[f] for f in forms]),
        joint.bounds[bound : bound + len(forms) - rank],
    )
    view = pruned(view)
    columns = [axis[0].coefficients for axis in view.axes]
    steps = [{d: column[f] for d, column in enumerate(columns) if column[f]} for f in range(len(view.offsets))]
    guards = [
        Guard(steps[rank + k], view.offsets[rank + k], view.divisors[rank + k], bound)
        for k, bound in enumerate(view.bounds)
    ]
    index, offsets, divisors = tuple(steps[:rank]), view.offsets[:rank], view.divisors[:rank]
    return _adopted(Operand(base, shape, index, offsets, divisors, tuple(guards), frozenset().union(*index)))


def _adopted(operand: Operand) -> Operand:
    """Gives a pad over a base axis of extent 1, which leaves a bound and no index, to a free axis of extent 1.

    Sound: wherever the bound holds, the adopted index is 0, the only one that the axis has.
    """
    if all(guard.bound.limit != 1 for guard in operand.guards):
        return operand
    free = [k for k, e in enumerate(operand.shape) if e == 1 and not operand.steps[k] and not operand.offsets[k]]
    steps, offsets = list(operand.steps), list(operand.offsets)
    for guard in reversed(operand.guards):
        if guard.bound.limit == 1 and guard.divisor == 1 and free and guard.steps not in steps:
            k = free.pop()
            steps[k], offsets[k] = guard.steps, guard.offset
    return operand._replace(steps=tuple(steps), offsets=tuple(offsets), digits=frozenset().union(*steps))


def _flipped(reading: Reading, operand: Operand, turn: set[int]) -> Operand:
    def turned(steps: Mapping[int, int], offset: int) -> tuple[dict[int, int], int]:
        for digit in turn & steps.keys():
            offset += steps[digit] * (reading.extents[digit] - 1)
        return {d: -c if d in turn else c for d, c in steps.items()}, offset

    axes = [turned(steps, offset) for steps, offset in zip(operand.steps, operand.offsets, strict=True)]
    guards = []
    for guard in operand.guards:
        steps, offset = turned(guard.steps, guard.offset)
        guards.append(guard._replace(steps=steps, offset=offset))
    return operand._replace(steps=tuple(a[0] for a in axes), offsets=tuple(a[1] for a in axes), guards=tuple(guards))
