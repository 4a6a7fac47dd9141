"""One convolution in many spellings, other convolutions, and programs that are nearly one."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from topos_core import nn
from topos_core.recording.windows import as_strided

STRIDE, DILATION, PADS = (2, 1), (1, 2), ((1, 2), (0, 3))
SPECS = {"x": "f32[2,3,9,10]", "w": "f32[4,3,3,2]"}
(SH, SW), (DH, DW), (KH, KW) = STRIDE, DILATION, (3, 2)


def padded(x):
    return np.pad(x, ((0, 0), (0, 0), *PADS))


def extents(y):
    return (y.shape[2] - DH * (KH - 1) - 1) // SH + 1, (y.shape[3] - DW * (KW - 1) - 1) // SW + 1


def windows(x):
    y = sliding_window_view(padded(x), (DH * (KH - 1) + 1, DW * (KW - 1) + 1), axis=(2, 3))
    return y[:, :, ::SH, ::SW, ::DH, ::DW]


def cut(y, i, j):
    oh, ow = extents(y)
    return y[:, :, i * DH : i * DH + (oh - 1) * SH + 1 : SH, j * DW : j * DW + (ow - 1) * SW + 1 : SW]


def windows_einsum(x, w):
    return np.einsum("bchwij,ocij->bohw", windows(x), w)


def einsum_kernel_first(x, w):
    return np.einsum("ocij,bchwij->bohw", w, windows(x))


def windows_tensordot(x, w):
    return np.moveaxis(np.tensordot(w, windows(x), axes=([1, 2, 3], [1, 4, 5])), 0, 1)


def slices_stacked(x, w):
    y = padded(x)
    taps = [cut(y, i, j) for i in range(KH) for j in range(KW)]
    return (np.stack(taps, axis=2)[:, None] * w.reshape(1, 4, 3, KH * KW, 1, 1)).sum(axis=(2, 3))


def shifted_sum(x, w):
    y = padded(x)
    total = 0
    for i in range(KH):
        for j in range(KW):
            total = total + np.einsum("bchw,oc->bohw", cut(y, i, j), w[:, :, i, j])
    return total


def shifted_sum_commuted(x, w):
    y = padded(x)
    terms = [
        (w[None, :, :, i, j, None, None] * cut(y, i, j)[:, None]).sum(axis=2) for i in range(KH) for j in range(KW)
    ]
    return (terms[5] + (terms[1] + terms[3])) + (terms[0] + (terms[2] + terms[4]))


def gathered(x, w):
    y = padded(x)
    oh, ow = extents(y)
    rows = (np.arange(KH)[:, None] * DH + np.arange(oh) * SH).ravel()
    columns = (np.arange(KW)[:, None] * DW + np.arange(ow) * SW).ravel()
    u = np.take(np.take(y, rows, axis=2), columns, axis=3).reshape(2, 3, KH, oh, KW, ow)
    return (w.reshape(4, -1) @ u.transpose(0, 1, 2, 4, 3, 5).reshape(2, 3 * KH * KW, oh * ow)).reshape(2, 4, oh, ow)


def strided(x, w):
    y = padded(x)
    (oh, ow), (b, c, h, wd) = extents(y), y.shape
    u = as_strided(y, (b, oh, ow, c, KH, KW), (c * h * wd, SH * wd, SW, h * wd, DH * wd, DW))
    return np.transpose(u.reshape(b * oh * ow, -1) @ w.reshape(4, -1).T).reshape(4, b, oh, ow).swapaxes(0, 1)


def multiplied_and_summed(x, w):
    return (windows(x)[:, None] * w[None, :, :, None, None]).sum(axis=(2, 5, 6))


def im2col(x, w):
    u = windows(x).transpose(0, 2, 3, 1, 4, 5)
    b, oh, ow = u.shape[:3]
    y = u.reshape(b * oh * ow, -1) @ w.transpose(1, 2, 3, 0).reshape(-1, 4)
    return y.reshape(b, oh, ow, 4).transpose(0, 3, 1, 2)


def products_stacked(x, w):
    y = padded(x)
    taps = [np.einsum("bchw,oc->bohw", cut(y, i, j), w[:, :, i, j]) for i in range(KH) for j in range(KW)]
    return np.stack(taps).sum(axis=0)


def library(x, w):
    return nn.conv2d(x, w, stride=STRIDE, dilation=DILATION, padding=PADS)


def padded_by_concatenation(x, w):
    y = np.concatenate([np.zeros((2, 3, 1, 10), np.float32), x, np.zeros_like(x[:, :, :2])], axis=2)
    y = np.concatenate([y, np.zeros_like(y[:, :, :, :3])], axis=3)
    u = sliding_window_view(y, (DH * (KH - 1) + 1, DW * (KW - 1) + 1), axis=(2, 3))[:, :, ::SH, ::SW, ::DH, ::DW]
    return np.einsum("bchwij,ocij->bohw", u, w)


def one_position_at_a_time(x, w):
    y = padded(x)
    oh, ow = extents(y)
    reach = (slice(None), slice(None))

    def at(i, j):
        patch = y[
            (*reach, slice(i * SH, i * SH + DH * (KH - 1) + 1, DH), slice(j * SW, j * SW + DW * (KW - 1) + 1, DW))
        ]
        return (patch[:, None] * w).sum(axis=(2, 3, 4))

    return np.stack([np.stack([at(i, j) for j in range(ow)], axis=-1) for i in range(oh)], axis=-2)


def filters_one_by_one(x, w):
    return np.stack([np.einsum("bchwij,cij->bhw", windows(x), w[k]) for k in range(4)], axis=1)


SPELLINGS = [
    library, products_stacked, padded_by_concatenation, one_position_at_a_time, filters_one_by_one, windows_einsum, einsum_kernel_first, windows_tensordot, slices_stacked, shifted_sum, shifted_sum_commuted, gathered,
    strided, multiplied_and_summed, im2col,
]  # fmt: skip


def depthwise(x, w):
    u = sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3))
    return (u * w[None, :, None, None, :, :]).sum(axis=(-2, -1))


def depthwise_shifted(x, w):
    y = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return sum(
        y[:, :, i : i + x.shape[2], j : j + x.shape[3]] * w[None, :, i, j, None, None]
        for i in range(3)
        for j in range(3)
    )


def grouped(x, w):
    u = sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3))
    u = u.reshape(2, 2, 2, *u.shape[2:])
    y = np.einsum("bgchwij,gocij->bgohw", u, w.reshape(2, 3, 2, 3, 3))
    return y.reshape(2, 6, *y.shape[3:])


def conv1d(x, w):
    u = sliding_window_view(np.pad(x, ((0, 0), (0, 0), (2, 2))), 3, axis=2)[:, :, ::3]
    return np.einsum("bclk,ock->bol", u, w)


def conv3d(x, w):
    y = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1), (1, 1)))
    return np.einsum("bcdhwijk,ocijk->bodhw", sliding_window_view(y, (3, 3, 3), axis=(2, 3, 4)), w)


def channels_last(x, w):
    return np.tensordot(sliding_window_view(x, (3, 3), axis=(1, 2)), w, axes=([3, 4, 5], [2, 0, 1]))


def transposed(x, w):
    """Zero insertion, then a convolution with the flipped kernel."""
    b, c, h, _ = x.shape
    y = np.pad(x.reshape(b, c, h, 1, h, 1), ((0, 0),) * 3 + ((0, 1),) + ((0, 0),) + ((0, 1),))
    y = y.reshape(b, c, 2 * h, 2 * h)[:, :, : 2 * h - 1, : 2 * h - 1]
    u = sliding_window_view(np.pad(y, ((0, 0), (0, 0), (2, 2), (2, 2))), (3, 3), axis=(2, 3))
    return np.einsum("bchwij,ocij->bohw", u, w[:, :, ::-1, ::-1])


def patches(x, w):
    b, c, h, wd = x.shape
    y = x.reshape(b, c, h // 4, 4, wd // 4, 4).transpose(0, 2, 4, 1, 3, 5)
    return y.reshape(b, -1, c * 16) @ w.reshape(w.shape[0], -1).T


def pointwise(x, w):
    return np.einsum("bchw,oc->bohw", x, w)


def filter_1d(x, w):
    return sliding_window_view(x, 3) @ w


def reversed_image(x, w):
    u = sliding_window_view(x[:, :, ::-1, ::-1], (3, 3), axis=(2, 3))
    return np.einsum("bchwij,ocij->bohw", u, w)


def cropped_then_padded(x, w):
    y = np.pad(x[:, :, 1:-1, 1:-1], ((0, 0), (0, 0), (1, 1), (1, 1)))
    return np.einsum("bchwij,ocij->bohw", sliding_window_view(y, (3, 3), axis=(2, 3)), w)


def half_the_channels(x, w):
    return np.einsum("bchwij,ocij->bohw", sliding_window_view(x[:, 2:], (3, 3), axis=(2, 3)), w)


def shuffled_channels(x, w):
    b, c, h, wd = x.shape
    y = x.reshape(b, 2, c // 2, h, wd).swapaxes(1, 2).reshape(b, c, h, wd)
    u = sliding_window_view(y, (3, 3), axis=(2, 3))
    u = u.reshape(b, 2, c // 2, *u.shape[2:])
    return np.einsum("bgchwij,gocij->bgohw", u, w.reshape(2, 3, 2, 3, 3)).reshape(b, 6, h - 2, wd - 2)


def frames_in_the_batch(x, w):
    return np.einsum("btchwij,ocij->btohw", sliding_window_view(x, (3, 3), axis=(3, 4)), w)


def one_sided_kernel(x, w):
    return np.einsum("bchwij,ocij->bohw", sliding_window_view(x, (1, 3), axis=(2, 3)), w)


def unit_everything(x, w):
    u = sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3))
    return np.einsum("bchwij,ocij->bohw", u, w)


def groups_joined(x, w):
    u = sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3))
    parts = [np.einsum("bchwij,ocij->bohw", u[:, 2 * g : 2 * g + 2], w[3 * g : 3 * g + 3]) for g in range(2)]
    return np.concatenate(parts, axis=1)


OTHERS = [
    (groups_joined, {"x": "f32[2,4,6,6]", "w": "f32[6,2,3,3]"}),
    (depthwise, {"x": "f32[2,4,6,6]", "w": "f32[4,3,3]"}),
    (depthwise_shifted, {"x": "f32[2,4,6,6]", "w": "f32[4,3,3]"}),
    (grouped, {"x": "f32[2,4,6,6]", "w": "f32[6,2,3,3]"}),
    (conv1d, {"x": "f32[2,4,13]", "w": "f32[5,4,3]"}),
    (conv3d, {"x": "f32[1,2,5,5,5]", "w": "f32[3,2,3,3,3]"}),
    (channels_last, {"x": "f32[2,8,8,3]", "w": "f32[3,3,3,5]"}),
    (transposed, {"x": "f32[1,2,5,5]", "w": "f32[3,2,3,3]"}),
    (patches, {"x": "f32[2,3,8,12]", "w": "f32[5,3,4,4]"}),
    (pointwise, {"x": "f32[2,3,5,6]", "w": "f32[4,3]"}),
    (filter_1d, {"x": "f32[9]", "w": "f32[3]"}),
    (reversed_image, {"x": "f32[2,3,6,7]", "w": "f32[4,3,3,3]"}),
    (cropped_then_padded, {"x": "f32[2,3,8,9]", "w": "f32[4,3,3,3]"}),
    (half_the_channels, {"x": "f32[2,4,6,6]", "w": "f32[4,2,3,3]"}),
    (shuffled_channels, {"x": "f32[2,4,6,6]", "w": "f32[6,2,3,3]"}),
    (frames_in_the_batch, {"x": "f32[2,2,3,6,6]", "w": "f32[4,3,3,3]"}),
    (one_sided_kernel, {"x": "f32[2,3,6,6]", "w": "f32[4,3,1,3]"}),
    (unit_everything, {"x": "f32[1,1,1,1]", "w": "f32[1,1,3,3]"}),
    (unit_everything, {"x": "f32[1,1,6,6]", "w": "f32[2,1,3,3]"}),
    (unit_everything, {"x": "f32[3,3,3,3]", "w": "f32[3,3,3,3]"}),
]
