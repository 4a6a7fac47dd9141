"""Drawn probes: a pattern's examples at other extents, around where vectors and tiles end, of every dtype and kind.

One place says what is drawn; who draws passes how. The law of every kernel draws with Hypothesis, and
`benchmarks/measure_envelopes.py` with seeds, so that a shipped error has been measured on what the law draws.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from topos_core import nn
from topos_core.kernels.convolution.choice import by_tiles
from topos_core.kernels.convolution.winograd import FORMS, LEAST_CHANNELS, Form
from topos_core.kernels.home.manifest import CONVOLUTIONS
from topos_core.kernels.probes import KINDS, Probe, Program, matched
from topos_core.matching.catalog import patterns

EXTENTS: Final = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 47, 48, 49, 63, 64, 65)
"""Around the lanes of 128 to 512 bits and the registers of a tile's row."""
NUMBER: Final = re.compile(r"(?<=[\[,])\d+")

FOUND: Final[Mapping[str, tuple[Mapping[str, str], ...]]] = {
    "add_norm": ({"x": "f32[5,5,2]", "y": "f32[5,5,2]", "scale": "f32[2]", "shift": "f32[2]"},),
    "batch_norm_training": (
        {"x": "f32[17,65,23,47]", "scale": "f32[65]", "shift": "f32[65]"},
        {"x": "f32[12,1]"},  # one row whose values overflow when squared
    ),
    "cross_entropy": tuple({"logits": f"f32[{n},7]", "target": f"f32[{n},7]"} for n in (1, 15, 32)),
    "gated_mlp": (
        {"x": "f32[3,31]", "gate": "f32[31,4]", "up": "f32[31,4]", "down": "f32[4,31]"},
        {"x": "f32[3,1]", "w": "f32[1,2]"},  # in bf16 its results are no normal numbers
        {"x": "f32[24,48]", "gate": "f32[48,15]", "up": "f32[48,15]", "down": "f32[15,48]"},
    ),
    "group_norm": ({"x": "f32[48,9,7,47]", "scale": "f32[9]", "shift": "f32[9]"},),
    "layer_norm": ({"x": "f32[2,64,64]"},),
    "layer_norm_linear": ({"x": "f32[24,5,6]", "scale": "f32[6]", "shift": "f32[6]", "w": "f32[6,49]"},),
    "linear_bias_activation": ({"x": "f32[65,65]", "w": "f32[65,6]"}, {"x": "f32[4,63]", "w": "f32[63,48]"}),
}
"""Inputs at which a kernel was once further off than the table of that day said, or had NaN elsewhere."""

Choose = Callable[[Sequence[Any]], Any]
"""Gives one of several."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A probe and what it was made of.

    Args:
        dtype: What f32 was replaced by.
        specs: The program's inputs by name, in f32.
        probe: The match, recorded at these extents, and the kind of its bindings.
    """

    dtype: str
    specs: Mapping[str, str]
    probe: Probe


TILES: Final[Mapping[str, Form]] = {each.name: each for each in FORMS}
RESULTS: Final[Mapping[int, Sequence[int]]] = {
    2: (6, 7, 8, 9, 10, 11, 12),
    4: (5, 7, 8, 13, 14, 15, 16, 17, 29, 31, 33),
}
"""Extents of results that one or two registers of Winograd's tiles make, by the side of a tile."""


def form(probe: Probe) -> Form | None:
    """Tells which of Winograd's tiles run a probe of a convolution; None where none do."""
    return by_tiles(probe.tape, probe.match, ())


def drawn(pattern: str, dtypes: Sequence[str], choose: Choose) -> Drawn | None:
    """Draws a program, a dtype, extents for some of its extents, and the kind of values or memory.

    None where the program cannot be traced so, or has no such match at this dtype. `pattern` may be the name of one of Winograd's
    forms.
    """
    if pattern in TILES:
        return _tiled(TILES[pattern], choose)
    function, given = choose(_programs(pattern))
    numbers = sorted({number for spec in given.values() for number in NUMBER.findall(spec)})
    extents = {number: choose(EXTENTS) if choose((False, True)) else int(number) for number in numbers}
    dtype = choose(dtypes)
    kind = choose(KINDS)
    specs = {name: NUMBER.sub(lambda found: str(extents[found[0]]), spec) for name, spec in given.items()}
    whole = matched(pattern, dtype, (function, specs))
    return None if whole is None else Drawn(dtype, specs, Probe(*whole, kind))


def found(pattern: str, dtype: str) -> Iterator[Probe]:
    """Gives every kind of probe for the inputs of `FOUND`, of each example that takes inputs of these names."""
    for specs in FOUND.get(pattern, ()):
        for function, given in _programs(pattern):
            same = given.keys() == specs.keys() and matched(pattern, dtype, (function, specs))
            if same:
                yield from (Probe(*same, kind) for kind in KINDS)


def _programs(pattern: str) -> Sequence[Program]:
    """Gives a pattern's examples, or a program for one whose examples write their extents down."""
    if pattern == "multi_head_attention":
        return [(_heads, {"x": "f32[2,5,12]", **dict.fromkeys(("wq", "wk", "wv", "wo"), "f32[12,12]")})]
    return [(example.function, example.specs) for example in patterns()[pattern].examples]


def _tiled(wanted: Form, choose: Choose) -> Drawn | None:
    """Draws a convolution for one of Winograd's forms: extents, padding, what is added and what follows; None where it gets another."""
    rows, channels = (choose([extent for extent in EXTENTS if extent >= LEAST_CHANNELS]) for _ in range(2))
    batch, *result = choose((1, 1, 2, 7)), *(choose(RESULTS[wanted.side]) for _ in range(2))
    pads = tuple((choose((1, 0, 2)), choose((1, 0, 2))) for _ in range(2))
    finish, added = choose((False, True)), choose((False, True))
    random = np.random.default_rng(channels)
    weights = (random.standard_normal((rows, channels, 3, 3)) / math.sqrt(9 * channels)).astype(np.float32)
    vector = random.random(rows).astype(np.float32) + np.float32(0.5)

    def plain(x: Any) -> Any:
        y = nn.conv2d(x, weights, padding=pads)
        return nn.batch_norm(y, vector, vector, vector, vector) if finish else y

    def summed(x: Any, other: Any) -> Any:
        return nn.relu(plain(x) + other)

    height, width = (extent + 2 - low - high for extent, (low, high) in zip(result, pads, strict=True))
    specs = {"x": f"f32[{batch},{channels},{height},{width}]"}
    if added:
        specs["other"] = f"f32[{batch},{rows},{result[0]},{result[1]}]"
    kind = choose(KINDS)
    for pattern in reversed(CONVOLUTIONS):  # the one that takes more in first
        whole = matched(pattern, "f32", (summed if added else plain, specs))
        probe = whole and Probe(*whole, kind)
        if probe and form(probe) is wanted:
            return Drawn("f32", specs, probe)
    return None


def _heads(x: Any, wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
    q, k, v = ((x @ w).reshape(*x.shape[:2], 3, -1).swapaxes(1, 2) for w in (wq, wk, wv))
    return nn.attention(q, k, v).swapaxes(1, 2).reshape(*x.shape[:2], -1) @ wo
