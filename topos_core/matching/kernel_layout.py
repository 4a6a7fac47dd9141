"""Layouts of convolution kernels, and of values that rearrange a whole kernel."""

from __future__ import annotations

from collections.abc import Sequence

from topos_core.matching.affine import Digit
from topos_core.matching.facts import ConvolutionFacts, Layout
from topos_core.matching.layout import Piece, Row, build, fits, usual
from topos_core.matching.view import View

KernelSteps = tuple[tuple[tuple[int, Piece], ...], ...]
"""Per axis of a kernel (coefficient, piece) of its digits, most significant first."""


def moved_kernel(steps: KernelSteps, facts: ConvolutionFacts, view: View) -> Layout | None:
    """Gives the layout of a value that rearranges the whole kernel; None where it does not, or reads it backwards."""
    if view.bounds or any(q != 1 for q in view.divisors) or any(view.offsets):
        return None
    rows: list[Row] = []
    for axis in view.axes:
        row: list[Piece] = []
        for digit in axis:
            part = _pieces(steps, digit)
            if part is None:
                return None
            row.extend(part)
        rows.append(row)
    if not _covers(view):
        return None
    return kernel_layout(rows, len(facts.windows), facts.groups, facts.out_channels)


def kernel_layout(rows: Sequence[Row], spatial: int, groups: int, outputs: int) -> Layout:
    """Builds a kernel's layout: usual orders for recorded units, else inputs first and outputs last."""
    depthwise = groups > 1 and outputs == groups
    wanted = ["i", *([] if depthwise else ["o"]), *(str(k) for k in range(spatial))]
    orders = usual(spatial, "oiS", "Sio", "oSi", "ioS", "oS")
    if not any(fits(rows, order) for order in orders):
        orders = ()
    return build(rows, wanted, orders, ("i", "o"))


def _pieces(steps: KernelSteps, digit: Digit) -> list[Piece] | None:
    """Translates a digit of a rearranged kernel into roles, splitting where it spans several."""
    along = [(k, c) for k, c in enumerate(digit.coefficients) if c]
    if len(along) != 1 or along[0][1] < 0:
        return None
    axis, step = along[0]
    top = step * digit.extent
    out: list[Piece] = []
    for coefficient, piece in steps[axis]:
        low, high = max(step, coefficient), min(top, coefficient * piece.extent)
        if low >= high:
            continue
        if high % low or (low != coefficient and low % coefficient) or high != coefficient * piece.extent:
            return None  # a role is split: its parts would need places of their own
        if low != coefficient:
            return None
        out.append(piece)
    covered = 1
    for piece in out:
        covered *= piece.extent
    return out if covered == digit.extent else None


def _covers(view: View) -> bool:
    """Says whether a view reads every element of its base once: no digit stands still, none repeats another."""
    seen: list[tuple[int, int, int]] = []
    for digit in view.digits:
        along = [(k, c) for k, c in enumerate(digit.coefficients) if c]
        if len(along) != 1:
            return False
        seen.append((along[0][0], along[0][1], digit.extent))
    seen.sort()
    expected: dict[int, int] = {}
    for axis, step, extent in seen:
        if expected.get(axis, 1) != step:
            return False
        expected[axis] = step * extent
    return all(expected.get(k, 1) == extent for k, extent in enumerate(view.base_shape))
