"""Convolutions with zeros between image elements (transposed ones), as one dense convolution for each residue of a position.

Along an axis with base dilation b and stride s, the positions r, r + P, r + 2 P, ... with P = b / gcd(b, s) meet image elements
at the same taps, every b / gcd(b, dilation)-th one, and zeros at all others. So no product with an inserted zero is made. Such
a product is zero where the kernel is finite; where it is not, the caller runs the convolution as it is recorded.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from topos_core.kernels.convolution.engine import Engine, Epilogue, Operands
from topos_core.kernels.convolution.geometry import Problem, three
from topos_core.kernels.launch import address_of
from topos_core.matching.facts import Window

LAUNCH_FLOPS: Final = 800_000
"""What each phase must save on average: its launch costs about as much, 9 us (4 phases of 1.4 Mflop took 0.107 ms, not 0.136)."""


class AxisPhase(NamedTuple):
    """Every `step`-th position of an axis from `first` on; `taps` is None where none of them meets an element."""

    first: int
    step: int
    positions: int
    taps: slice | None
    window: Window


class Phase(NamedTuple):
    """One dense convolution, and where its positions lie in the whole result."""

    axes: tuple[AxisPhase, ...]
    problem: Problem


def phases_of(convolution: Problem) -> list[Phase]:
    """Lists the dense convolutions; none where no zeros are inserted, or where their launches cost more than they save."""
    if all(window.base_dilation == 1 for window in convolution.windows) or 0 in convolution.image:
        return []
    along = [
        axis_phases(extent, result, window)
        for extent, result, window in zip(convolution.image, convolution.result, convolution.windows, strict=True)
    ]
    count = math.prod(map(len, along))
    if convolution.flops < count * LAUNCH_FLOPS:
        return []
    found = [
        Phase(
            axes,
            replace(
                convolution,
                result=three(tuple(a.positions for a in axes)),
                windows=three(tuple(a.window for a in axes)),
            ),
        )
        for axes in itertools.product(*along)
    ]
    saved = convolution.flops - sum(phase.problem.flops for phase in found)
    return found if saved >= count * LAUNCH_FLOPS else []


def axis_phases(extent: int, result: int, window: Window) -> list[AxisPhase]:
    """Lists one axis' phases."""
    base, stride, dilation = window.base_dilation, window.stride, window.dilation
    step, apart = base // math.gcd(base, stride), base // math.gcd(base, dilation)
    found = []
    for first in range(min(step, result)):
        positions = -(-(result - first) // step)
        start = first * stride - window.low
        tap = next((k for k in range(min(apart, window.size)) if (start + k * dilation) % base == 0), None)
        if tap is None:  # one tap that reads padding alone
            dense = replace(
                window, size=1, stride=1, dilation=1, base_dilation=1, low=positions, high=-extent, reversed=False
            )
            found.append(AxisPhase(first, step, positions, None, dense))
            continue
        size, low = -(-(window.size - tap) // apart), -((start + tap * dilation) // base)
        strides, reach = step * stride // base, (size - 1) * (apart * dilation // base)
        dense = replace(
            window, size=size, stride=strides, dilation=apart * dilation // base, base_dilation=1, low=low,
            high=(positions - 1) * strides + reach + 1 - low - extent, reversed=False,
        )  # fmt: skip
        found.append(AxisPhase(first, step, positions, slice(tap, None, apart), dense))
    return found


def least_flops(convolution: Problem) -> int:
    """Counts the flops of all phases; of the convolution itself where there are none."""
    found = phases_of(convolution)
    return sum(phase.problem.flops for phase in found) if found else convolution.flops


class Phases:
    """A convolution's phases, ready to run; safe to run from several threads."""

    def __init__(self, convolution: Problem, found: Sequence[Phase], dtype: str, epilogue: Epilogue) -> None:
        self.convolution = convolution
        self.runs = [(phase, Engine(phase.problem, dtype, epilogue)) for phase in found]

    def pieces(self, left: np.ndarray) -> list[np.ndarray] | None:
        """Gives each phase's part of a kernel [groups * rows, channels * taps]; None where it is not finite."""
        if not np.isfinite(left).all():
            return None
        convolution = self.convolution
        sizes = [window.size for window in convolution.windows]
        whole = left.reshape(convolution.groups * convolution.rows, convolution.channels, *sizes)
        found = []
        for phase, _ in self.runs:
            if any(axis.taps is None for axis in phase.axes):
                found.append(np.zeros((len(whole), phase.problem.steps), left.dtype))
            else:
                part = whole[(slice(None), slice(None), *(axis.taps for axis in phase.axes))]
                found.append(np.ascontiguousarray(part.reshape(len(whole), phase.problem.steps)))
        return found

    def run(
        self,
        image: tuple[int, ...],
        out: tuple[int, ...],
        operands: Operands,
        pieces: Sequence[np.ndarray],
        threads: int,
    ) -> None:
        """Runs all phases; see `Engine.run`. `pieces` stand for the operands' kernel."""
        for (phase, engine), piece in zip(self.runs, pieces, strict=True):
            steps = [axis.step * stride for axis, stride in zip(phase.axes, out[3:], strict=True)]
            first = sum(axis.first * stride for axis, stride in zip(phase.axes, out[3:], strict=True))
            moved = first * engine.dtype.itemsize
            here = operands._replace(
                left=address_of(piece), out=operands.out + moved,
                residual=operands.residual + moved if operands.residual else 0,
            )  # fmt: skip
            engine.run(image, (*out[:3], *steps), here, threads)
