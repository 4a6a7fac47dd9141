"""Convolution matches built by hand, and the plain formula that they stand for."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from tests.support.tapes import TapeBuilder
from topos_core.matching.facts import ConvolutionFacts, Layout, Window
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape


def layout(shape: Sequence[int], roles: Sequence[str]) -> Layout:
    return Layout(tuple(shape), tuple(roles), tuple(range(len(shape))))


def positions(extent: int, window: Window) -> int:
    dilated = (extent - 1) * window.base_dilation + 1 if extent else 0
    return (dilated + window.low + window.high - (window.size - 1) * window.dilation - 1) // window.stride + 1


def facts(
    batch: int, groups: int, channels: int, rows: int, image: Sequence[int], windows: Sequence[Window]
) -> ConvolutionFacts:
    """Describes x[b, g * c, ...], kernel[g, o, c, ...] and result[b, g, o, ...]."""
    spatial = tuple("012"[: len(image)])
    result = [positions(extent, window) for extent, window in zip(image, windows, strict=True)]
    return ConvolutionFacts(
        image=layout((batch, groups * channels, *image), ("b", "f", *spatial)),
        kernel=layout((groups, rows, channels, *(w.size for w in windows)), ("g", "o", "i", *spatial)),
        result=layout((batch, groups, rows, *result), ("b", "g", "f", *spatial)),
        windows=tuple(windows),
        groups=groups,
        batch=batch,
        in_channels=channels,
        out_channels=groups * rows,
    )


def formula(x: np.ndarray, kernel: np.ndarray, windows: Sequence[Window]) -> np.ndarray:
    """Convolves in f64: x[b, g * c, ...], kernel[g, o, c, ...] -> [b, g, o, ...], every window rule spelled out."""
    rank = len(windows)
    groups, _, channels = kernel.shape[:3]
    kernel = kernel.astype(np.float64)
    dilated = np.zeros(
        (*x.shape[:2], *(max(0, (e - 1) * w.base_dilation + 1) for e, w in zip(x.shape[2:], windows, strict=True)))
    )
    dilated[(..., *(slice(None, None, w.base_dilation) for w in windows))] = x
    dilated = np.pad(dilated, [(0, 0), (0, 0), *((max(w.low, 0), max(w.high, 0)) for w in windows)])
    crop = [slice(max(-w.low, 0), dilated.shape[2 + k] - max(-w.high, 0)) for k, w in enumerate(windows)]
    dilated = dilated[(slice(None), slice(None), *crop)]
    kernel = np.flip(kernel, [3 + k for k, w in enumerate(windows) if w.reversed])
    result = [(dilated.shape[2 + k] - (w.size - 1) * w.dilation - 1) // w.stride + 1 for k, w in enumerate(windows)]
    grouped = dilated.reshape(x.shape[0], groups, channels, *dilated.shape[2:])
    total = np.zeros((x.shape[0], groups, kernel.shape[1], *result))
    for taps in itertools.product(*(range(w.size) for w in windows)):
        places = [
            slice(t * w.dilation, t * w.dilation + (n - 1) * w.stride + 1, w.stride)
            for t, w, n in zip(taps, windows, result, strict=True)
        ]
        part = grouped[(slice(None), slice(None), slice(None), *places)]
        with np.errstate(all="ignore"):
            total += np.einsum("bgc...,goc->bgo...", part, kernel[(..., *taps)] if rank else kernel)
    return total


def match_of(described: ConvolutionFacts, dtype: str, pattern: str = "convolution") -> tuple[Tape, Match]:
    """Gives a tape that has the match's values, and the match."""

    def kind(shape: Sequence[int]) -> str:
        return f"{dtype}[{','.join(map(str, shape))}]"

    builder = TapeBuilder()
    x = builder.input("x", kind(described.image.shape))
    kernel = builder.input("kernel", kind(described.kernel.shape))
    root = builder.input("result", kind(described.result.shape))
    match = Match(pattern, root, {"x": x, "kernel": kernel}, frozenset(), frozenset({root}), {}, described)
    return builder.tape(root), match


@st.composite
def convolutions(draw: st.DrawFn) -> ConvolutionFacts:
    """Draws convolutions of any kind that have at least one result."""
    rank = draw(st.integers(1, 3))
    windows = [draw(_windows()) for _ in range(rank)]
    image = []
    for window in windows:
        least = 1
        while positions(least, window) < 1:
            least += 1
        image.append(draw(st.integers(least, least + (40, 20, 6)[rank - 1])))
    return facts(
        draw(st.integers(1, 2)),
        draw(st.sampled_from((1, 1, 2, 3))),
        draw(st.integers(1, 4)),
        draw(st.integers(1, 18)),
        image,
        windows,
    )


@st.composite
def _windows(draw: st.DrawFn) -> Window:
    if draw(st.booleans()):
        return Window(draw(st.integers(1, 3)))
    return Window(
        size=draw(st.integers(1, 4)),
        stride=draw(st.integers(1, 3)),
        dilation=draw(st.integers(1, 2)),
        low=draw(st.integers(-1, 3)),
        high=draw(st.integers(-1, 3)),
        base_dilation=draw(st.sampled_from((1, 1, 1, 2, 3))),
        reversed=draw(st.booleans()),
    )
