"""A tape as a function of torch: one call an op, as recorded.

This is what the recorded ops cost in torch, which is more than a module costs that was written for torch: a softmax is
its five ops here. `topos bench` says so beside the figures. Edge cases follow torch where they differ from the tape's rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from topos_core.tape.op import Op
from topos_core.tape.tape import Tape

Call = Callable[[Any, Op, Sequence[Any]], Any]

_SAME_NAME: Final = (
    "neg", "abs", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "tanh", "erf", "sin", "cos", "floor", "ceil", "round",
    "sign", "logical_not", "add", "sub", "mul", "pow", "maximum", "minimum", "remainder",
)  # fmt: skip


class Untranslated(Exception):
    """An op that this form does not have."""


def torch_function(tape: Tape) -> tuple[Callable[..., tuple[Any, ...]], list[Any]]:
    """Gives a function of the inputs, and the parameters and constants that it reads, made ready as tensors.

    The function takes the inputs, then those tensors.

    Raises:
        Untranslated: An op has no counterpart, as `opaque`.
    """
    import torch

    table = calls()
    held: dict[int, Any] = {}
    for value, op in enumerate(tape.ops):
        if op.name == "parameter":
            held[value] = tensor_of(tape.defaults[value])
        elif op.name in ("constant", "iota"):
            held[value] = table[op.name](torch, op, ())
        elif op.name != "input" and op.name not in table:
            raise Untranslated(f"{op.name} has no form in torch here")
    steps = [
        (value, op, table[op.name], op.operands)
        for value, op in enumerate(tape.ops)
        if value not in held and op.name != "input"
    ]
    frees = _last_reads(tape, [value for value, *_ in steps])

    def function(*arguments: Any) -> tuple[Any, ...]:
        values = dict(zip((*tape.inputs, *held), arguments, strict=True))
        for value, op, call, operands in steps:
            values[value] = call(torch, op, [values[operand] for operand in operands])
            for each in frees.get(value, ()):
                del values[each]
        return tuple(values[value] for value in tape.results)

    return function, list(held.values())


def tensor_of(array: Any) -> Any:
    """Gives a tensor of an array's elements; bf16 goes through its bits."""
    import numpy as np
    import torch

    plain = np.array(array, order="C")
    if plain.dtype.name == "bfloat16":
        return torch.from_numpy(plain.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(plain)


def array_of(tensor: Any) -> Any:
    """Gives an array of a tensor's elements; bf16 becomes f32."""
    import torch

    plain = tensor.detach()
    return (plain.float() if plain.dtype == torch.bfloat16 else plain).contiguous().numpy()


def _last_reads(tape: Tape, order: Sequence[int]) -> Mapping[int, Sequence[int]]:
    made, last = set(order), {}
    for value in order:
        for operand in tape.ops[value].operands:
            if operand in made and operand not in tape.results:
                last[operand] = value
    frees: dict[int, list[int]] = {}
    for operand, value in last.items():
        frees.setdefault(value, []).append(operand)
    return frees


@cache
def calls() -> Mapping[str, Call]:
    """Maps every op that has a form in torch to what writes it."""
    table: dict[str, Call] = {name: _plain(name) for name in _SAME_NAME}
    table |= {"and": _plain("bitwise_and"), "or": _plain("bitwise_or"), "xor": _plain("bitwise_xor")}
    table |= {
        "constant": lambda torch, op, x: tensor_of(_filled(op)),
        "iota": _iota,
        "compare": lambda torch, op, x: getattr(torch, op.attributes["kind"])(*x),
        "div": lambda torch, op, x: torch.div(*x, rounding_mode=None if x[0].is_floating_point() else "trunc"),
        "select": lambda torch, op, x: torch.where(*x),
        "cast": lambda torch, op, x: x[0].to(_dtype(torch, op.type.dtype)),
        "reshape": lambda torch, op, x: x[0].reshape(op.type.shape),
        "broadcast": lambda torch, op, x: x[0].expand(op.type.shape),
        "permute": lambda torch, op, x: x[0].permute(op.attributes["order"]),
        "reverse": lambda torch, op, x: x[0].flip(op.attributes["axes"]),
        "concat": lambda torch, op, x: torch.cat(tuple(x), op.attributes["axis"]),
        "pad": _pad,
        "slice": lambda torch, op, x: x[0][
            tuple(map(slice, op.attributes["start"], op.attributes["stop"], op.attributes["step"]))
        ],
        "unfold": _unfold,
        "strided": _strided,
        "sum": lambda torch, op, x: _summed(torch, op, x[0]),
        "prod": _product,
        "max": lambda torch, op, x: _extreme(torch, op, x[0], "amax"),
        "min": lambda torch, op, x: _extreme(torch, op, x[0], "amin"),
        "logsumexp": lambda torch, op, x: x[0].logsumexp(op.attributes["axes"]) if op.attributes["axes"] else x[0],
        "argmax": lambda torch, op, x: (x[0].byte() if x[0].dtype == torch.bool else x[0]).argmax(op.attributes["axis"]),
        "cumsum": lambda torch, op, x: x[0].cumsum(
            op.attributes["axis"], dtype=_running(torch, op)
        ).to(_dtype(torch, op.type.dtype)),
        "matmul": lambda torch, op, x: torch.matmul(*x),
        "gather": _gather,
        "scatter_add": _scatter_add,
        "within": lambda torch, op, x: x[0],
    }  # fmt: skip
    return table


def _plain(name: str) -> Call:
    return lambda torch, op, x: getattr(torch, name)(*x)


def _dtype(torch: Any, name: str) -> Any:
    from topos_core.importers.torch_export.dtypes import torch_dtype

    return torch_dtype(name)


def _filled(op: Op) -> Any:
    import numpy as np

    value = op.attributes["value"]
    return value if isinstance(value, np.ndarray) else np.full(op.type.shape, value)


def _iota(torch: Any, op: Op, x: Sequence[Any]) -> Any:
    axis, shape = op.attributes["axis"], op.type.shape
    column = torch.arange(shape[axis], dtype=_dtype(torch, op.type.dtype))
    return column.reshape([-1 if k == axis else 1 for k in range(len(shape))]).expand(shape).contiguous()


def _pad(torch: Any, op: Op, x: Sequence[Any]) -> Any:
    low, high, between = (op.attributes[name] for name in ("low", "high", "interior"))
    fill = op.attributes["fill"].item()
    if not any(between) and min((*low, *high), default=0) >= 0:
        flat = [side for pair in zip(reversed(low), reversed(high), strict=True) for side in pair]
        return torch.nn.functional.pad(x[0], flat, value=fill)
    padded = torch.full(op.type.shape, fill, dtype=x[0].dtype)
    target, source = [], []
    for extent, before, gap, total in zip(x[0].shape, low, between, op.type.shape, strict=True):
        apart = gap + 1
        first = max(0, -(before // apart))
        count = min(extent, -((before - total) // apart)) - first
        if count <= 0:
            return padded
        at = before + first * apart
        target.append(slice(at, at + (count - 1) * apart + 1, apart))
        source.append(slice(first, first + count))
    padded[tuple(target)] = x[0][tuple(source)]
    return padded


def _unfold(torch: Any, op: Op, x: Sequence[Any]) -> Any:
    axis, size, step, dilation = (op.attributes[name] for name in ("axis", "size", "step", "dilation"))
    return x[0].unfold(axis, dilation * (size - 1) + 1, step)[..., ::dilation]


def _strided(torch: Any, op: Op, x: Sequence[Any]) -> Any:
    shape, strides, offset = (op.attributes[name] for name in ("shape", "strides", "offset"))
    if min(strides, default=0) >= 0:
        return x[0].contiguous().as_strided(shape, strides, offset)
    places = torch.tensor(offset)  # torch has no negative strides
    for axis, stride in enumerate(strides):
        places = places[..., None] + torch.arange(shape[axis]) * stride
    return x[0].reshape(-1)[places]


def _running(torch: Any, op: Op) -> Any:
    """Gives the dtype of a running value; torch adds no wide unsigned integers, and signed ones wrap to the same bits."""
    name = op.attributes["accumulate"]
    return torch.int64 if name in ("u16", "u32", "u64") else _dtype(torch, name)


def _extreme(torch: Any, op: Op, x: Any, name: str) -> Any:
    axes = op.attributes["axes"]
    return getattr(x, name)(axes) if axes else x


def _summed(torch: Any, op: Op, x: Any) -> Any:
    axes, running = op.attributes["axes"], _running(torch, op)
    total = x.sum(axes, dtype=running) if axes else x.to(running)
    return total.to(_dtype(torch, op.type.dtype))


def _product(torch: Any, op: Op, x: Sequence[Any]) -> Any:
    total = x[0].to(_running(torch, op))
    for axis in reversed(op.attributes["axes"]):
        total = total.prod(axis)
    return total.to(_dtype(torch, op.type.dtype))


def _gather(torch: Any, op: Op, x: Sequence[Any]) -> Any:
    axis, (table, indices) = op.attributes["axis"], x
    return table.index_select(axis, indices.reshape(-1)).reshape(op.type.shape)


def _scatter_add(torch: Any, op: Op, x: Sequence[Any]) -> Any:
    axis, (table, indices, updates) = op.attributes["axis"], x
    count = math.prod(indices.shape)
    flat = updates.reshape((*table.shape[:axis], count, *table.shape[axis + 1 :]))
    return table.index_add(axis, indices.reshape(-1), flat)
