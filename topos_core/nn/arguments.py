"""How the formulas read their arguments: one number or one per axis, paddings by number, pair or name."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

from topos_core.errors import RecordingError
from topos_core.recording.value import Value
from topos_core.tape.type import TensorType, dtype_name

Array: TypeAlias = Any  # a recorded Value, or an ndarray outside of a trace: the formulas take either


def refusal(message: str, *arrays: Array) -> RecordingError:
    """Makes the error for arguments that do not fit, at the caller's expression while recording."""
    for array in arrays:
        if isinstance(array, Value):
            return array.recorder.error(message)
    return RecordingError(message)


def described(array: Array) -> str:
    """Gives `f32[2,3]` for values and arrays alike."""
    if isinstance(array, Value):
        return str(array.type)
    return str(TensorType(dtype_name(array.dtype) or str(array.dtype), array.shape))


def per_axis(name: str, given: Any, rank: int, *arrays: Array) -> tuple[int, ...]:
    """Reads one integer for all spatial axes, or one for each."""
    numbers = tuple(given) if isinstance(given, (tuple, list)) else (given,) * rank
    if len(numbers) != rank:
        raise refusal(f"{name}={given!r} for {rank} spatial axes; give one number or {rank}", *arrays)
    return tuple(operator.index(number) for number in numbers)


def paddings(
    given: Any, rank: int, window: Sequence[int], stride: Sequence[int], dilation: Sequence[int], *arrays: Array
) -> list[tuple[int, int]]:
    """Reads `1`, `(1, 2)`, `((0, 1), (2, 2))`, `"valid"` or `"same"` as (before, after) per spatial axis."""
    if given == "valid":
        return [(0, 0)] * rank
    if given == "same":
        if any(step != 1 for step in stride):
            raise refusal(
                f'padding="same" with stride {tuple(stride)}: it is defined for stride 1; give numbers', *arrays
            )
        spare = [reach * (extent - 1) for extent, reach in zip(window, dilation, strict=True)]
        return [(each // 2, each - each // 2) for each in spare]
    if isinstance(given, str):
        raise refusal(f"padding={given!r}: write 'same', 'valid', a number, or (before, after) per axis", *arrays)
    sides = tuple(given) if isinstance(given, (tuple, list)) else (given,) * rank
    if len(sides) != rank:
        raise refusal(
            f"padding={given!r} for {rank} spatial axes; give one number, or {rank} numbers or pairs", *arrays
        )
    return [tuple(side) if isinstance(side, (tuple, list)) else (side, side) for side in sides]
