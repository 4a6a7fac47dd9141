"""Runs the normalisation kernels on dense [outer, channels, inner] arrays."""

from __future__ import annotations

from typing import Final

import numpy as np

from topos_core.kernels.launch import Scratch, address_of, aligned, launch, template
from topos_core.kernels.library import kernel
from topos_core.kernels.norms.shape import Extents
from topos_core.kernels.vocabulary.blocks import NORM

NARROW: Final = 16
"""Rows of fewer inner elements are too short for a pass per channel; channels then lie beside each other in a row."""
CACHED_BYTES: Final = 256 << 10  # of a block of rows between its two passes


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
    if extents.inner < NARROW:
        center, offset, variance = row_statistics(x, extents, threads)
        with np.errstate(all="ignore"):
            factor = 1.0 / np.sqrt(variance + epsilon)
            if scale is not None:
                factor = factor * scale
            summand = -offset * factor
            if shift is not None:
                summand = summand + shift
            # an infinite element makes the offset NaN, not the mean
            mean = np.where(np.isfinite(center), center + offset, center)
        normalise(x, extents, center, factor, summand, out, threads)
        return mean, variance
    mean, variance = np.empty(extents.channels), np.empty(extents.channels)
    limit = np.array([epsilon])
    slot = 64
    scratch = Scratch(slot * threads)
    block = template(NORM, {
        "items": extents.channels, "outer": extents.outer, "channels": extents.channels, "inner": extents.inner,
        "x": address_of(x), "out": address_of(out), "mean": address_of(mean), "variance": address_of(variance),
        "scale": 0 if scale is None else address_of(scale), "shift": 0 if shift is None else address_of(shift),
        "epsilon": address_of(limit), "scratch": scratch.address, "slot_bytes": slot,
    })  # fmt: skip
    launch(kernel("channel_norm", _name(x)), block, threads)
    return mean, variance


def row_statistics(x: np.ndarray, extents: Extents, threads: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gives the statistics of [outer, channels, inner] from blocks of rows, f64[channels].

    Returns:
        The mean rounded to x's dtype, what is missing to the mean, and the variance.
    """
    width = extents.channels * extents.inner
    rows = max(1, min(64, CACHED_BYTES // (width * x.itemsize) or 1))
    items = -(-extents.outer // rows)
    centers, sums = np.empty((items, width)), np.empty((items, 2, width))
    slot = aligned(3 * width * x.itemsize)
    scratch = Scratch(slot * threads)
    block = template(NORM, {
        "items": items, "outer": extents.outer, "channels": width, "block_rows": rows, "x": address_of(x),
        "first_totals": address_of(centers), "totals": address_of(sums), "scratch": scratch.address,
        "slot_bytes": slot,
    })  # fmt: skip
    launch(kernel("row_statistics", _name(x)), block, threads)
    counts = np.full((items, 1, 1), float(rows))
    counts[-1] = extents.outer - rows * (items - 1)
    shape = (items, extents.channels, extents.inner)
    with np.errstate(all="ignore"):
        return _merged(centers.reshape(shape), sums[:, 0].reshape(shape), sums[:, 1].reshape(shape), counts, x.dtype)


def _merged(
    centers: np.ndarray, first: np.ndarray, second: np.ndarray, counts: np.ndarray, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Merges blocks [items, channels, inner] by Chan's rule; differences of centres keep the digits that means lose."""
    total = float(counts.sum() * centers.shape[2])
    off = first / counts

    def offset_from(center: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        each = (centers - center[:, None]) + off
        return each, (each * counts).sum((0, 2)) / total

    anchor = centers[0, :, 0]
    center = (anchor + offset_from(anchor)[1]).astype(dtype).astype(np.float64)
    plain = (centers * counts).sum((0, 2)) / total
    center = np.where(np.isfinite(plain), center, plain)
    each, offset = offset_from(center)
    within = second - counts * off * off
    between = counts * (each - offset[:, None]) ** 2
    variance = np.maximum((within + between).sum((0, 2)) / total, 0.0)
    # squares that overflow make an infinite variance, as recorded
    return center, offset, np.where(np.isinf(second).any((0, 2)), np.inf, variance)


def normalise(
    x: np.ndarray,
    extents: Extents,
    center: np.ndarray,
    factor: np.ndarray,
    summand: np.ndarray,
    out: np.ndarray,
    threads: int,
) -> None:
    """Writes (x - center) * factor + summand, each one value per channel."""
    vectors = [np.ascontiguousarray(v, x.dtype) for v in (center, factor, summand)]
    narrow = extents.inner < NARROW
    outer, channels, inner = extents
    items, rows = outer * channels, 1
    if narrow:
        vectors = [np.repeat(v, inner) for v in vectors]
        channels, inner = channels * inner, 1
        rows = max(1, min(64, CACHED_BYTES // (channels * x.itemsize) or 1))
        items = -(-outer // rows)
    block = template(NORM, {
        "items": items, "outer": outer, "channels": channels, "inner": inner, "block_rows": rows,
        "x": address_of(x), "out": address_of(out), "center": address_of(vectors[0]),
        "factor": address_of(vectors[1]), "summand": address_of(vectors[2]),
    })  # fmt: skip
    launch(kernel("normalise", _name(x), "rows" if narrow else "planes"), block, threads)


def _name(x: np.ndarray) -> str:
    return "f64" if x.dtype == np.float64 else "f32"
