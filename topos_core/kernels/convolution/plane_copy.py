"""The copy of an image into padded planes: its argument block."""

from __future__ import annotations

from array import array

import numpy as np

from topos_core.kernels.convolution.geometry import Planes, Problem
from topos_core.kernels.launch import address_of, template
from topos_core.kernels.vocabulary.blocks import PLANES


def residues_of(laid: Planes) -> np.ndarray:
    """Lists the residues of all axes, i64; the block points at them."""
    return np.array([residue for axis in laid.residues for residue in axis], np.int64)


def copy_block(convolution: Problem, laid: Planes, residues: np.ndarray, strides: tuple[int, ...]) -> array[int]:
    """Gives the words of the copy; addresses of the image and the planes are missing.

    Args:
        convolution: Whose image it is.
        laid: Its planes.
        residues: What `residues_of` gives; kept alive by the caller.
        strides: Of the image in elements: batch, channel, depth, height, width.
    """
    values = {
        "items": convolution.batch * convolution.groups * convolution.channels,
        "channels": convolution.groups * convolution.channels, "residues": address_of(residues),
        "pitch": laid.pitch, "slice": laid.slice, "phase": laid.phase, "tail": laid.tail,
    }  # fmt: skip
    for axis, name in enumerate(("depth", "height", "width")):
        window = convolution.windows[axis]
        values[name] = convolution.image[axis]
        values[f"{name}_low"] = window.low
        values[f"{name}_stride"] = window.stride
        values[f"{name}_base"] = window.base_dilation
        values[f"{name}_phases"] = len(laid.residues[axis])
        values[f"plane_{name}"] = laid.extents[axis]
    for name, stride in zip(("batch", "channel", "depth", "height", "width"), strides, strict=True):
        values[f"x_{name}"] = stride
    return template(PLANES, values)
