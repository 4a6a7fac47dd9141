"""Where a convolution's taps read: padded planes, or the image itself, and one list of offsets for all positions.

Positions are flat: position p stands at row p // pitch and column p % pitch of a plane, so that tap k of every position
reads at p + offsets[k]. Columns beyond the result's width are computed and thrown away; the pitch is as small as shared
zero columns allow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from topos_core.kernels.margins import Margins
from topos_core.matching.facts import ConvolutionFacts, DepthwisePointwiseFacts, Layout, Window

SPATIAL = ("0", "1", "2")
BEHIND = 256
"""Elements that the widest tile of any machine may read behind the last plane, beside a row of it."""
KNOWN = 1024
"""Convolutions whose geometry is remembered: what is matched with each of several epilogues is one convolution."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A convolution with three spatial axes (depth, height, width), absent ones of extent 1.

    Args:
        batch, groups, rows, channels: Images, groups, output channels per group, input channels per group.
        image, result: Extents of the three axes.
        windows: Of the three axes.
        roles: The layout's role of each axis; "" for an absent one.
    """

    batch: int
    groups: int
    rows: int
    channels: int
    image: tuple[int, int, int]
    result: tuple[int, int, int]
    windows: tuple[Window, Window, Window]
    roles: tuple[str, str, str]

    @property
    def taps(self) -> int:
        """Counts kernel positions."""
        return self.windows[0].size * self.windows[1].size * self.windows[2].size

    @property
    def steps(self) -> int:
        """Counts products per result element."""
        return self.channels * self.taps

    @property
    def positions(self) -> int:
        """Counts result positions of one image and channel."""
        return self.result[0] * self.result[1] * self.result[2]

    @property
    def flops(self) -> int:
        """Counts a multiply-add as two."""
        return 2 * self.batch * self.groups * self.rows * self.positions * self.steps


@lru_cache(maxsize=KNOWN)
def problem(facts: ConvolutionFacts) -> Problem:
    """Reads a match's facts; leading axes are filled up with unit axes, the last axis is the width."""
    rank = len(facts.windows)
    fill = 3 - rank
    windows = (Window(),) * fill + tuple(facts.windows)
    roles = ("",) * fill + SPATIAL[:rank]
    image = (1,) * fill + tuple(_extent(facts.image, role) for role in SPATIAL[:rank])
    result = tuple(_positions(extent, window) for extent, window in zip(image, windows, strict=True))
    return Problem(
        facts.batch, facts.groups, facts.out_channels // facts.groups, max(1, facts.in_channels),
        three(image), three(result), three(windows), three(roles),
    )  # fmt: skip


def pair(facts: DepthwisePointwiseFacts) -> tuple[Problem, Problem]:
    """Gives a depthwise and a pointwise convolution as problems over the same positions."""
    first = problem(facts.depthwise.convolution)
    channels, rows = first.groups * first.rows, facts.pointwise.convolution.out_channels
    plain = (Window(), Window(), Window())
    return first, Problem(first.batch, 1, rows, channels, first.result, first.result, plain, first.roles)


def three(items: tuple) -> tuple:
    """Gives three items as what they are: it narrows the type alone."""
    first, second, third = items
    return (first, second, third)


def _extent(layout: Layout, role: str) -> int:
    extent = 1
    for size, name in zip(layout.shape, layout.roles, strict=True):
        if name == role:
            extent *= size
    return extent


def _positions(extent: int, window: Window) -> int:
    dilated = (extent - 1) * window.base_dilation + 1 if extent else 0
    reach = (window.size - 1) * window.dilation + 1
    return max(0, (dilated + window.low + window.high - reach) // window.stride + 1)


@dataclass(frozen=True, slots=True)
class Planes:
    """How an image is copied: one zero-padded plane per channel and residue of the stride.

    Args:
        residues: Per axis, the residues (tap * dilation) % stride that any tap reads.
        extents: Of one plane, in positions.
        pitch: Elements from row to row; below the plane's width where trailing zeros serve as leading ones.
        slice: Elements from depth to depth.
        phase: Elements of one plane, its tail included.
        tail: Elements behind the last row that must be zero.
        offsets: i64[steps]: from a position to what its tap reads, channel by channel.
    """

    residues: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    extents: tuple[int, int, int]
    pitch: int
    slice: int
    phase: int
    tail: int
    offsets: np.ndarray

    @property
    def channel(self) -> int:
        """Counts the elements of one channel: all its planes."""
        return len(self.residues[0]) * len(self.residues[1]) * len(self.residues[2]) * self.phase


def planes(convolution: Problem) -> Planes:
    """Lays out the planes of a convolution."""
    residues, extents, pitch, slice_, phase, shared = _laid(convolution)
    offsets = _plane_offsets(convolution, list(residues), pitch, slice_, phase)
    return Planes(three(residues), three(extents), pitch, slice_, phase, shared, offsets)


def plane_elements(convolution: Problem) -> int:
    """Counts the elements of all planes of a convolution."""
    residues, *_, phase, _ = _laid(convolution)
    return convolution.batch * convolution.groups * convolution.channels * math.prod(map(len, residues)) * phase


def plane_margins(convolution: Problem, strides: Sequence[str]) -> Margins | None:
    """Tells how an image lies that is read without a copy into planes; None where its planes are not whole images.

    Args:
        convolution: What reads it, through planes.
        strides: The role of each of the image's axes: b, f or a spatial one.
    """
    sliding = convolution.windows[1:]
    if convolution.image[0] != 1 or convolution.result[0] != 1 or convolution.windows[0].low:
        return None
    if any(w.stride != 1 or w.base_dilation != 1 or w.low < 0 or w.high < 0 for w in sliding):
        return None
    laid, channels = _laid(convolution), convolution.groups * convolution.channels
    steps = {"b": channels * laid.phase, "f": laid.phase, convolution.roles[1]: laid.pitch, convolution.roles[2]: 1}
    return Margins(
        strides=tuple(steps[role] for role in strides), planes=convolution.batch * channels, plane=laid.phase,
        pitch=laid.pitch, top=sliding[0].low, left=sliding[1].low, height=convolution.image[1],
        width=convolution.image[2], behind=BEHIND + laid.pitch,
    )  # fmt: skip


class _Laid(NamedTuple):
    """What `Planes` says, its offsets left out."""

    residues: tuple[tuple[int, ...], ...]
    extents: tuple[int, ...]
    pitch: int
    slice: int
    phase: int
    tail: int


def _laid(convolution: Problem) -> _Laid:
    residues, reaches = [], []
    for window in convolution.windows:
        taps = [tap * window.dilation for tap in range(window.size)]
        residues.append(tuple(sorted({tap % window.stride for tap in taps})))
        reaches.append(max(tap // window.stride for tap in taps))
    extents = tuple(extent + reach for extent, reach in zip(convolution.result, reaches, strict=True))
    shared = _shared_columns(convolution, residues[2], extents[2])
    pitch = extents[2] - shared
    slice_ = extents[1] * pitch
    phase = extents[0] * slice_ + shared
    return _Laid(tuple(residues), extents, pitch, slice_, phase, shared)


def _shared_columns(convolution: Problem, residues: tuple[int, ...], width: int) -> int:
    """Counts columns that are zero at the end of every row and at the start of the next one, in every plane."""
    window, extent = convolution.windows[2], convolution.image[2]
    last = (extent - 1) * window.base_dilation
    shared = width - convolution.result[2]  # a row of results stays inside its pitch
    for residue in residues:
        positions = [column * window.stride + residue - window.low for column in (0, width - 1)]
        leading = max(0, -(positions[0] // window.stride)) if positions[0] < 0 else 0
        trailing = max(0, -((last - positions[1]) // window.stride)) if positions[1] > last else 0
        shared = min(shared, leading, trailing)
    return max(shared, 0)


def _plane_offsets(
    convolution: Problem, residues: list[tuple[int, ...]], pitch: int, slice_: int, phase: int
) -> np.ndarray:
    parts = []
    for window, axis_residues in zip(convolution.windows, residues, strict=True):
        taps = np.arange(window.size, dtype=np.int64) * window.dilation
        parts.append((np.searchsorted(axis_residues, taps % window.stride), taps // window.stride))
    planes_per_channel = len(residues[0]) * len(residues[1]) * len(residues[2])
    (depth_phase, depth), (height_phase, height), (width_phase, width) = parts
    which = (depth_phase[:, None, None] * len(residues[1]) + height_phase[:, None]) * len(residues[2]) + width_phase
    within = depth[:, None, None] * slice_ + height[:, None] * pitch + width
    channels = np.arange(convolution.channels, dtype=np.int64) * (planes_per_channel * phase)
    return np.ascontiguousarray((channels[:, None] + (which * phase + within).reshape(-1)).reshape(-1))


def reads_in_place(convolution: Problem) -> bool:
    """Tells whether taps can read the image itself: no padding, no stride, no base dilation."""
    return all(
        window.low == window.high == 0 and window.stride == 1 and window.base_dilation == 1
        for window in convolution.windows
    )


def lies_densely(convolution: Problem, strides: Sequence[int]) -> bool:
    """Tells whether image rows follow each other closely enough to be read as flat positions.

    Args:
        convolution: What reads them.
        strides: Of batch, channel, depth, height, width, in elements.
    """
    height, width = strides[3:]
    if min(strides) < 0 or (convolution.image[2] > 1 and width != 1):
        return False
    return convolution.result[1] == 1 or convolution.result[2] <= height <= 2 * convolution.result[2]


def masks_fit(convolution: Problem, strides: Sequence[int]) -> bool:
    """Tells whether taps can read the image itself, those outside of it masked; strides as for `lies_densely`."""
    if convolution.image[0] != 1 or convolution.result[0] != 1:
        return False
    if any(window.stride != 1 or window.base_dilation != 1 for window in convolution.windows):
        return False
    return lies_densely(convolution, strides)


def columns_follow(convolution: Problem, strides: Sequence[int]) -> bool:
    """Tells whether registers can read columns of the image itself, those outside of it masked; strides as for `lies_densely`."""
    return strides[4] == 1 or convolution.image[2] == 1


def image_offsets(convolution: Problem, channel: int, depth: int, height: int, width: int) -> np.ndarray:
    """Lists what each tap reads relative to its position, from the image's own strides in elements."""
    steps = [
        np.arange(window.size, dtype=np.int64) * (window.dilation * stride)
        for window, stride in zip(convolution.windows, (depth, height, width), strict=True)
    ]
    taps = (steps[0][:, None, None] + steps[1][:, None] + steps[2]).reshape(-1)
    channels = np.arange(convolution.channels, dtype=np.int64) * channel
    return np.ascontiguousarray((channels[:, None] + taps).reshape(-1))
