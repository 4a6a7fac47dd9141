"""Shapes: reshapes, permutations, slices, joins, repeats and paddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from topos_core.importers.torch_export.call import Call, NoFormula, Table
from topos_core.recording import constant, elementwise, lookup, movement
from topos_core.recording.value import Value

_LAST: Final = 2**62  # what torch writes for "to the end" is larger


def bounds(x: Value, dim: int, start: Any, end: Any) -> tuple[int, int, int]:
    """Gives the axis and the clamped bounds of a slice."""
    axis = dim % x.ndim
    extent = x.type.shape[axis]
    low = 0 if start is None else int(start)
    high = extent if end is None or int(end) > _LAST else int(end)
    low = min(max(low + extent if low < 0 else low, 0), extent)
    high = min(max(high + extent if high < 0 else high, low), extent)
    return axis, low, high


def sliced(x: Value, axis: int, low: int, high: int, step: int) -> Value:
    """Slices one axis by checked bounds."""
    if step == 1:
        return movement.cut_axis(x, axis, low, high)
    lows, highs, steps = [0] * x.ndim, list(x.type.shape), [1] * x.ndim
    lows[axis], highs[axis], steps[axis] = low, high, step
    return movement.cut(x, lows, highs, steps)


def swapped(x: Value, first: int, second: int) -> tuple[int, ...]:
    """Gives the order that exchanges two axes."""
    order = list(range(x.ndim))
    if x.ndim:
        one, other = first % x.ndim, second % x.ndim
        order[one], order[other] = other, one
    return tuple(order)


def _itself(call: Call, x: Any, *rest: Any) -> Any:
    return x


def _cast(call: Call, x: Any, *rest: Any) -> Any:
    return call.cast(x)


def _reshaped(call: Call, x: Value, *rest: Any) -> Value:
    return movement.reshape(x, call.shape)


def _transpose(call: Call, x: Value, first: int, second: int) -> Value:
    return movement.permute(x, swapped(x, first, second))


def _permute(call: Call, x: Value, dims: Sequence[int]) -> Value:
    return movement.permute(x, [dim % x.ndim for dim in dims])


def _turned(call: Call, x: Value) -> Value:
    return movement.permute(x, range(x.ndim)[::-1])


def _matrix_turned(call: Call, x: Value) -> Value:
    return movement.permute(x, swapped(x, -1, -2))


def _moved(call: Call, x: Value, source: Any, destination: Any) -> Value:
    return movement.moveaxis(x, source, destination)


def _expanded(call: Call, x: Value, *rest: Any) -> Value:
    return movement.spread(x, call.shape)


def _select(call: Call, x: Value, dim: int, index: int) -> Value:
    axis = dim % x.ndim
    at = index % x.type.shape[axis]
    return movement.reshape(movement.cut_axis(x, axis, at, at + 1), call.shape)


def _slice(call: Call, x: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Value:
    axis, low, high = bounds(x, dim, start, end)
    return sliced(x, axis, low, high, step)


def _narrow(call: Call, x: Value, dim: int, start: int, length: int) -> Value:
    axis = dim % x.ndim
    low = start % x.type.shape[axis] if start < 0 else start
    return movement.cut_axis(x, axis, low, low + length)


def _parts(x: Value, dim: int, sizes: Sequence[int]) -> list[Value]:
    axis = dim % x.ndim
    ends = [sum(sizes[: at + 1]) for at in range(len(sizes))]
    return [movement.cut_axis(x, axis, end - size, end) for size, end in zip(sizes, ends, strict=True)]


def _split(call: Call, x: Value, size: Any, dim: int = 0) -> list[Value]:
    if isinstance(size, (list, tuple)):
        return _parts(x, dim, size)
    extent = x.type.shape[dim % x.ndim]
    return _parts(x, dim, [min(size, extent - at) for at in range(0, extent, size)] or [0])


def _pieces(call: Call, x: Value, count: Any, dim: int = 0) -> list[Value]:
    """Chunks and tensor_split: the results' types say how long each part is."""
    axis = dim % x.ndim
    sizes = [each.shape[axis] for each in call.results if each is not None]
    return _parts(x, dim, sizes)


def _unbind(call: Call, x: Value, dim: int = 0) -> list[Value]:
    axis = dim % x.ndim
    shape = (*x.type.shape[:axis], *x.type.shape[axis + 1 :])
    return [movement.reshape(movement.cut_axis(x, axis, at, at + 1), shape) for at in range(x.type.shape[axis])]


def _cat(call: Call, tensors: Sequence[Value], dim: int = 0) -> Any:
    kept = [call.cast(each) for each in tensors if each.type.shape != (0,) or len(call.shape) == 1]
    return np.concatenate(kept, axis=dim) if len(kept) > 1 else kept[0]


def _stack(call: Call, tensors: Sequence[Value], dim: int = 0) -> Any:
    return np.stack([call.cast(each) for each in tensors], axis=dim)


def _repeat(call: Call, x: Value, counts: Sequence[int]) -> Any:
    return np.tile(x, tuple(counts))


def _repeat_interleave(call: Call, x: Value, repeats: Any, dim: Any = None, output_size: Any = None) -> Any:
    if not isinstance(repeats, int):
        raise NoFormula("its counts are recorded values")
    return np.repeat(x, repeats, axis=dim)


def _flip(call: Call, x: Value, dims: Sequence[int]) -> Value:
    return movement.flip(x, tuple(dims))


def _roll(call: Call, x: Value, shifts: Sequence[int], dims: Sequence[int] = ()) -> Any:
    if not dims:
        return np.roll(x, shifts[0])
    return np.roll(x, tuple(shifts), tuple(dims))


def _constant_pad(call: Call, x: Value, pads: Sequence[int], value: Any = 0) -> Value:
    low, high = [0] * x.ndim, [0] * x.ndim
    for at in range(len(pads) // 2):
        low[x.ndim - 1 - at], high[x.ndim - 1 - at] = pads[2 * at], pads[2 * at + 1]
    return movement.pad_with(x, low, high, value or 0)


def _pad(call: Call, x: Value, pads: Sequence[int], mode: str = "constant", value: Any = None) -> Any:
    if mode == "constant":
        return _constant_pad(call, x, pads, value or 0)
    modes = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    if mode not in modes:
        raise NoFormula(f"padding mode {mode!r}")
    return _pad_by_index(x, pads, modes[mode])


def _pad_by_index(x: Any, pads: Sequence[int], mode: Any) -> Any:
    widths = [(0, 0)] * x.ndim
    for at in range(len(pads) // 2):
        widths[x.ndim - 1 - at] = (pads[2 * at], pads[2 * at + 1])
    if any(side < 0 for width in widths for side in width):
        raise NoFormula("a negative padding that is not constant")
    return np.pad(x, widths, mode=mode)


def _padded_by(mode: str) -> Any:
    def formula(call: Call, x: Value, pads: Sequence[int]) -> Any:
        return _pad_by_index(x, pads, mode)

    return formula


def _pixel_shuffle(call: Call, x: Value, factor: int) -> Value:
    *lead, channels, height, width = x.type.shape
    split = movement.reshape(x, (*lead, channels // factor**2, factor, factor, height, width))
    at = len(lead)
    order = (*range(at), at, at + 3, at + 1, at + 4, at + 2)
    return movement.reshape(movement.permute(split, order), call.shape)


def _pixel_unshuffle(call: Call, x: Value, factor: int) -> Value:
    *lead, channels, height, width = x.type.shape
    split = movement.reshape(x, (*lead, channels, height // factor, factor, width // factor, factor))
    at = len(lead)
    order = (*range(at), at, at + 2, at + 4, at + 1, at + 3)
    return movement.reshape(movement.permute(split, order), call.shape)


def _channel_shuffle(call: Call, x: Value, groups: int) -> Value:
    batch, channels, *spatial = x.type.shape
    split = movement.reshape(x, (batch, groups, channels // groups, *spatial))
    return movement.reshape(movement.permute(split, (0, 2, 1, *range(3, split.ndim))), call.shape)


def _windows(call: Call, x: Value, dim: int, size: int, step: int) -> Value:
    if x.ndim == 0:
        return movement.reshape(x, call.shape)
    axis = dim % x.ndim
    attributes = {"axis": axis, "size": size, "step": step, "dilation": 1}
    return x.recorder.record("unfold", (x,), attributes)


def _image_columns(
    call: Call, x: Value, kernel: Sequence[int], dilation: Sequence[int], padding: Sequence[int], stride: Sequence[int]
) -> Value:
    """im2col: channels and window positions become rows, image positions columns."""
    batched = x if x.ndim == 4 else movement.reshape(x, (1, *x.type.shape))
    low = (0, 0, *padding)
    padded = movement.pad_with(batched, low, low, 0)
    for axis in (0, 1):
        attributes = {"axis": 2 + axis, "size": kernel[axis], "step": stride[axis], "dilation": dilation[axis]}
        padded = padded.recorder.record("unfold", (padded,), attributes)
    turned = movement.permute(padded, (0, 1, 4, 5, 2, 3))
    return movement.reshape(turned, call.shape)


def _triangle(upper: bool) -> Any:
    def formula(call: Call, x: Value, diagonal: int = 0) -> Any:
        return np.triu(x, diagonal) if upper else np.tril(x, diagonal)

    return formula


def _diagonal(call: Call, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    return movement.diagonal(x, offset, dim1, dim2)


def _strided(call: Call, x: Value, size: Sequence[int], stride: Sequence[int], offset: Any = None) -> Value:
    raise NoFormula("as_strided reads storage, not elements")


def _nearest(call: Call, x: Any, size: Any, *scales: Any) -> Any:
    """Picks the nearest source element per axis: a repeat where the factor is whole, else a gather."""
    given = [each for each in scales if each is not None]
    factors = list(given[-1]) if given and isinstance(given[-1], (list, tuple)) else [None] * (x.ndim - 2)
    for axis in range(2, x.ndim):
        before, after = x.type.shape[axis], call.shape[axis]
        if after == before:
            continue
        scale = factors[axis - 2]
        ratio = 1 / scale if scale else before / after
        index = np.minimum(
            np.floor(np.arange(after, dtype=np.float32) * np.float32(ratio)).astype(np.int64), before - 1
        )
        if after % before == 0 and np.array_equal(index, np.arange(after) // (after // before)):
            x = np.repeat(x, after // before, axis=axis)
        else:
            table = constant.table(x.recorder, index, "i64")
            x = x.recorder.record("gather", (x, table), {"axis": axis})
    return x


def _bilinear(call: Call, x: Value, size: Any, corners: bool, *scales: Any) -> Value:
    """Interpolates each spatial axis between two neighbours."""
    given = [each for each in scales if each is not None]
    factors = list(given[-1]) if given and isinstance(given[-1], (list, tuple)) else [None] * (x.ndim - 2)
    for axis in range(2, x.ndim):
        before, after = x.type.shape[axis], call.shape[axis]
        if after == before:
            continue
        scale = factors[axis - 2]
        places = np.arange(after, dtype=np.float64)
        if corners:
            places = places * ((before - 1) / (after - 1) if after > 1 else 0.0)
        else:
            places = np.maximum((places + 0.5) * (1 / scale if scale else before / after) - 0.5, 0)
        low = np.minimum(np.floor(places).astype(np.int64), before - 1)
        high = np.minimum(low + 1, before - 1)
        share = (places - low).reshape(-1, *(1,) * (x.ndim - 1 - axis)).astype(np.float32)
        ends = [
            x.recorder.record("gather", (x, constant.table(x.recorder, index, "i64")), {"axis": axis})
            for index in (low, high)
        ]
        weight = constant.table(x.recorder, share, "f32")
        weight = elementwise.cast(weight, x.type.dtype)
        x = ends[0] * (1 - weight) + ends[1] * weight
    return x


def _broadcast_all(call: Call, tensors: Sequence[Value]) -> list[Value]:
    shape = np.broadcast_shapes(*[each.type.shape for each in tensors])
    return [movement.spread(each, shape) for each in tensors]


def _meshgrid(call: Call, tensors: Sequence[Any], indexing: Any = "ij") -> Any:
    return list(np.meshgrid(*tensors, indexing=indexing))


def _one_hot(call: Call, x: Value, classes: int = -1) -> Any:
    count = call.shape[-1]
    return movement.reshape(lookup.inside(x, count, from_end=False), (*x.type.shape, 1)) == np.arange(count)


def _filled_columns(call: Call, tensors: Sequence[Value], *rest: Any) -> Any:
    axis = 0 if tensors[0].ndim == 1 else 1
    return np.concatenate([call.cast(each) for each in tensors], axis=axis)


TABLE: Final[Table] = {
    **dict.fromkeys(
        ("contiguous", "clone", "detach", "alias", "lift_fresh", "lift_fresh_copy", "requires_grad", "view_as_real_copy",
         "conj", "resolve_conj", "resolve_neg", "positive", "real", "_to_memory_format"),
        _itself,
    ),
    **dict.fromkeys(("to", "_to_copy", "type_as", "_autocast_to_reduced_precision", "_autocast_to_full_precision"), _cast),
    **dict.fromkeys(
        ("view", "reshape", "_unsafe_view", "flatten", "unflatten", "unsqueeze", "squeeze", "view_as", "reshape_as",
         "ravel", "atleast_1d", "atleast_2d", "_reshape_alias", "squeeze_copy", "unsqueeze_copy"),
        _reshaped,
    ),
    "transpose": _transpose, "swapaxes": _transpose, "swapdims": _transpose, "permute": _permute, "t": _turned,
    "numpy_T": _turned, "mT": _matrix_turned, "adjoint": _matrix_turned, "matrix_H": _matrix_turned,
    "movedim": _moved, "moveaxis": _moved,
    "expand": _expanded, "expand_as": _expanded, "broadcast_to": _expanded,
    "select": _select, "slice": _slice, "narrow": _narrow,
    "split": _split, "split_with_sizes": _split, "chunk": _pieces, "tensor_split": _pieces, "unbind": _unbind,
    "unsafe_split": _split, "unsafe_chunk": _pieces,
    "cat": _cat, "concat": _cat, "concatenate": _cat, "stack": _stack, "hstack": _filled_columns,
    "repeat": _repeat, "tile": _repeat, "repeat_interleave": _repeat_interleave, "flip": _flip, "roll": _roll,
    "constant_pad_nd": _constant_pad, "pad": _pad,
    **dict.fromkeys(("reflection_pad1d", "reflection_pad2d", "reflection_pad3d"), _padded_by("reflect")),
    **dict.fromkeys(("replication_pad1d", "replication_pad2d", "replication_pad3d"), _padded_by("edge")),
    "pixel_shuffle": _pixel_shuffle, "pixel_unshuffle": _pixel_unshuffle, "channel_shuffle": _channel_shuffle,
    "unfold": _windows, "im2col": _image_columns, "tril": _triangle(False), "triu": _triangle(True),
    "diagonal": _diagonal, "as_strided": _strided,
    **dict.fromkeys(("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d"), _nearest),
    **dict.fromkeys(("upsample_bilinear2d", "upsample_linear1d", "upsample_trilinear3d"), _bilinear),
    "broadcast_tensors": _broadcast_all, "meshgrid": _meshgrid, "one_hot": _one_hot,
}  # fmt: skip
