"""Runs the normalisation kernels on dense [outer, channels, inner] arrays."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from topos_core.kernels.folding import is_usual
from topos_core.kernels.launch import AHEAD, Scratch, address_of, aligned, launch, spaced, streamed, template
from topos_core.kernels.library import kernel
from topos_core.kernels.norms.shape import NARROW, Extents, block_rows
from topos_core.kernels.vocabulary.blocks import NORM

THREAD_BYTES: Final = 64 << 10
"""Of an image, below which another thread costs more than it does."""
CHANNEL_BYTES: Final = 448 << 10
"""Of a channel, twice which fit the second-level cache."""

STRIP: Final = 128
"""Columns whose sums are merged side by side, in the first-level cache."""


class Vectors(NamedTuple):
    """A pass over an image: (x - center) * factor + summand, one value per channel."""

    center: np.ndarray
    factor: np.ndarray
    summand: np.ndarray


def statistics_and_result(
    x: np.ndarray,
    extents: Extents,
    scale: np.ndarray | None,
    shift: np.ndarray | None,
    epsilon: float,
    out: np.ndarray,
    threads: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Normalises x [outer, channels, inner] by its own statistics into `out`.

    Returns:
        Mean and (biased) variance, f64[channels].
    """
    mean, variance, limit = np.empty(extents.channels), np.empty(extents.channels), np.array([epsilon])
    words = {
        "outer": extents.outer, "channels": extents.channels, "inner": extents.inner, "x": address_of(x),
        "out": address_of(out), "mean": address_of(mean), "variance": address_of(variance),
        "scale": 0 if scale is None else address_of(scale), "shift": 0 if shift is None else address_of(shift),
        "epsilon": address_of(limit),
    }  # fmt: skip
    threads = threads if x.nbytes > THREAD_BYTES else 1
    if extents.inner >= NARROW:
        _by_channels(x, extents, words, out, threads)
    elif not _by_rows(x, extents, words, out, threads, scale):
        _unfolded(x, extents, mean, variance + epsilon, scale, shift, out, threads)
    return mean, variance


def _unfolded(
    x: np.ndarray,
    extents: Extents,
    mean: np.ndarray,
    spread: np.ndarray,
    scale: np.ndarray | None,
    shift: np.ndarray | None,
    out: np.ndarray,
    threads: int,
) -> None:
    """Normalises by known statistics, and scales by a pass of its own."""
    with np.errstate(all="ignore"):
        root, center = 1.0 / np.sqrt(spread), mean.astype(x.dtype)
        off = mean - center
        late = np.where(np.isfinite(root) & np.isfinite(off), -off * root, 0.0)
        normalise(x, extents, Vectors(center, root.astype(x.dtype), late.astype(x.dtype)), out, threads)
        ones, zeros = np.ones_like(center), np.zeros_like(center)
        vectors = Vectors(zeros, ones if scale is None else scale, zeros if shift is None else shift)
        normalise(out, extents, vectors, out, threads)


def _by_channels(x: np.ndarray, extents: Extents, words: dict[str, int], out: np.ndarray, threads: int) -> None:
    slot = spaced(64, threads)
    scratch = Scratch(slot * threads)
    plane = extents.inner * x.itemsize
    # one worker comes to the channel that lies behind each plane next, where both stay in the second-level cache
    ahead = plane if threads == 1 and extents.outer * plane <= CHANNEL_BYTES else AHEAD
    own = {
        "items": extents.channels, "scratch": scratch.address, "slot_bytes": slot, "streamed": streamed(out.nbytes, ahead),
    }  # fmt: skip
    launch(kernel("channel_norm", _name(x)), template(NORM, {**words, **own}), threads)


def _by_rows(
    x: np.ndarray, extents: Extents, words: dict[str, int], out: np.ndarray, threads: int, scale: np.ndarray | None
) -> bool:
    """Three kernels: sums of row blocks, their merger, the result; False where statistics and scale make no factor together."""
    width, size = extents.channels * extents.inner, x.itemsize
    rows = block_rows(extents.outer, width * size)
    items = -(-extents.outer // rows)
    strip = max(1, STRIP // extents.inner)
    slot = spaced(max(3 * width * size, 5 * strip * extents.inner * 8), threads)
    scratch = Scratch(slot * threads)
    sums = Scratch(3 * items * width * 8)
    vectors = Scratch(3 * aligned(width * size))
    lines = {
        "streamed": streamed(out.nbytes),
        "outer": extents.outer,
        "channels": width,
        "inner": 1,
        "items": items,
        "block_rows": rows,
    }
    own = {
        "first_totals": sums.address, "totals": sums.address + items * width * 8, "scratch": scratch.address,
        "slot_bytes": slot,
        **{name: vectors.address + k * aligned(width * size) for k, name in enumerate(("center", "factor", "summand"))},
    }  # fmt: skip
    name = _name(x)
    launch(kernel("row_statistics", name), template(NORM, {**words, **own, **lines}), threads)
    merged = {
        **words, **own, "items": -(-extents.channels // strip), "strip": strip, "blocks": items, "block_rows": rows,
    }  # fmt: skip
    launch(kernel("merge_statistics", name), template(NORM, merged), threads)
    if scale is not None:
        at = own["factor"] - address_of(vectors.owner)
        if not is_usual(np.ndarray(width, x.dtype, vectors.owner, at)) and scale.any():
            return False
    launch(kernel("normalise", name, "rows"), template(NORM, {**words, **own, **lines}), threads)
    return True


def normalise(x: np.ndarray, extents: Extents, given: Vectors, out: np.ndarray, threads: int) -> None:
    """Makes a pass; the result may take the place of x."""
    vectors = [np.ascontiguousarray(v, x.dtype) for v in given]
    narrow = extents.inner < NARROW
    outer, channels, inner = extents
    items, rows = outer * channels, 1
    if narrow:
        vectors = [np.repeat(v, inner) for v in vectors] if inner > 1 else vectors
        channels, inner = channels * inner, 1
        rows = block_rows(outer, channels * x.itemsize)
        items = -(-outer // rows)
    block = template(NORM, {
        "items": items, "outer": outer, "channels": channels, "inner": inner, "block_rows": rows,
        "x": address_of(x), "out": address_of(out), "center": address_of(vectors[0]),
        "factor": address_of(vectors[1]), "summand": address_of(vectors[2]), "streamed": streamed(out.nbytes),
    })  # fmt: skip
    threads = threads if x.nbytes > THREAD_BYTES else 1
    launch(kernel("normalise", _name(x), "rows" if narrow else "planes"), block, threads)


def _name(x: np.ndarray) -> str:
    return "f64" if x.dtype == np.float64 else "f32"
