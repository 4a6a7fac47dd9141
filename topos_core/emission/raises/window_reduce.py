"""`stablehlo.reduce_window`.

The op reads its identity outside the image (-inf for max, 0 for sum). Where the recorded program pads with anything
else, the pad stays an op in front and only the window is raised. An average is a sum divided by the count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from topos_core.emission.builder import Builder, Ssa, identity
from topos_core.emission.raises.convolution import positions
from topos_core.emission.raises.layout import Lettered, merged, recorded
from topos_core.matching.counting import divisors
from topos_core.matching.facts import WindowReduceFacts
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape
from topos_core.tape.type import FLOATS, TensorType, numpy_dtype

_REDUCERS: Final = {"max": "maximum", "min": "minimum", "sum": "add"}


def raise_match(builder: Builder, tape: Tape, match: Match, bindings: Mapping[str, Ssa]) -> Mapping[int, Ssa]:
    """Writes the reduction, its scale, and what brings it to the root's layout."""
    facts: WindowReduceFacts = match.facts
    root, shape = tape.ops[match.root].type, tape.ops[match.root].type.shape
    x = bindings["x"]
    running = _running_dtype(tape, match)
    source = builder.convert(_padded(builder, facts, x), running, "wide")
    letters = tuple(str(axis) for axis in range(len(facts.windows)))
    sizes = tuple(positions(extent, window) for extent, window in zip(x.shape, facts.windows, strict=True))
    in_place = sizes == shape and merged(facts.result, _letters(letters)) == (letters, sizes)
    plain = in_place and running == root.dtype and not facts.is_average
    folded = pad_is_identity(facts, x.dtype)
    total = builder.reduce_window(
        source,
        _REDUCERS[facts.reducer],
        sizes,
        [window.size for window in facts.windows],
        [window.stride for window in facts.windows],
        dilations=[window.dilation for window in facts.windows],
        base_dilations=[window.base_dilation for window in facts.windows] if folded else (),
        padding=[(window.low, window.high) for window in facts.windows] if folded else (),
        word="" if plain else "windows",
    )
    word = "" if in_place and running == root.dtype else "average"
    scaled = _scaled(builder, total, facts.scale, word)
    if facts.counted is not None:
        scaled = _counted(builder, total, divisors(facts.windows, facts.counted, x.shape), word)
    narrow = builder.convert(scaled, root.dtype, "" if in_place else "narrow")
    return {match.root: recorded(builder, Lettered(narrow, letters), facts.result, _letters(letters), shape)}


def pad_is_identity(facts: WindowReduceFacts, dtype: str) -> bool:
    """Tells whether what the program reads outside the image is what the reduction starts from."""
    if facts.pad_fill is None:
        return True
    number = numpy_dtype(dtype).type
    return bool(number(facts.pad_fill) == number(identity(_REDUCERS[facts.reducer], dtype)))


def _letters(letters: tuple[str, ...]) -> dict[str, str]:
    return {letter: letter for letter in letters}


def _padded(builder: Builder, facts: WindowReduceFacts, x: Ssa) -> Ssa:
    if pad_is_identity(facts, x.dtype):
        return x
    low, high = [window.low for window in facts.windows], [window.high for window in facts.windows]
    return builder.pad(x, facts.pad_fill, low, high, [window.base_dilation - 1 for window in facts.windows], "padded")


def _running_dtype(tape: Tape, match: Match) -> str:
    """Gives the dtype of the recorded running value; a maximum has the operand's."""
    own = tape.ops[match.bindings["x"]].type.dtype
    sums = [tape.ops[value] for value in match.computing | {match.root} if tape.ops[value].name == "sum"]
    candidates: set[str] = {op.attributes["accumulate"] for op in sums} or {own}
    return max(candidates, key=lambda name: (numpy_dtype(name).itemsize, name in FLOATS))


def _counted(builder: Builder, total: Ssa, counts: np.ndarray, word: str) -> Ssa:
    """Divides by what each position counts."""
    axes = [axis for axis, extent in enumerate(counts.shape) if extent != 1]
    kind = TensorType(total.dtype, tuple(counts.shape[axis] for axis in axes))
    table = builder.constant(counts.reshape(kind.shape).astype(numpy_dtype(total.dtype)), kind, "counts")
    return builder.same("divide", total, builder.broadcast(table, total.shape, axes, "count"), word=word)


def _scaled(builder: Builder, total: Ssa, scale: float, word: str) -> Ssa:
    """Divides by the count where the scale is one over a count: that is what programs record, and it rounds once."""
    if scale == 1.0:
        return total
    count = round(1 / scale) if scale and np.isfinite(1 / scale) else 0
    if count and abs(scale * count - 1) < 1e-6:
        return builder.same("divide", total, builder.constant(count, total.type, "count"), word=word)
    return builder.same("multiply", total, builder.constant(scale, total.type, "scale"), word=word)
