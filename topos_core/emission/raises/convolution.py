"""`stablehlo.convolution`.

The kernel operand is the recorded value nearest to the root that is a bijection of its base: the match binds it. Results
put batch before feature, since the reference interpreter aborts on the other order; a transpose follows where the
recorded layout differs. A kernel that runs backwards is reversed by `stablehlo.reverse`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from topos_core.emission.builder import Builder, Ssa
from topos_core.emission.raises.layout import Lettered, complete, extents, lettered, merged, recorded
from topos_core.emission.syntax import ints, signature
from topos_core.errors import InternalError
from topos_core.matching.facts import ConvolutionFacts, Layout, Window
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape
from topos_core.tape.type import TensorType

_SPATIAL: Final = {str(axis): str(axis) for axis in range(16)}
KERNEL_LETTERS: Final = {"g": "o", "o": "o", "i": "i", **_SPATIAL}
RESULT_LETTERS: Final = {"b": "b", "g": "f", "f": "f", **_SPATIAL}


def raise_match(builder: Builder, tape: Tape, match: Match, bindings: Mapping[str, Ssa]) -> Mapping[int, Ssa]:
    """Writes the convolution and brings its result to the root's layout."""
    facts: ConvolutionFacts = match.facts
    shape = tape.ops[match.root].type.shape
    produced = convolve(builder, facts, bindings["x"], bindings["kernel"], facts.result, shape)
    return {match.root: recorded(builder, produced, facts.result, RESULT_LETTERS, shape)}


def convolve(
    builder: Builder, facts: ConvolutionFacts, x: Ssa, kernel: Ssa, result: Layout, shape: tuple[int, ...] | None
) -> Lettered:
    """Writes the convolution with one result axis a letter; it bears the value's own name where nothing follows."""
    rank = len(facts.windows)
    image = builder.reshape(x, facts.image.shape, "image")
    weights = lettered(builder, kernel, facts.kernel, KERNEL_LETTERS, ["i", *map(str, range(rank)), "o"], "kernel")
    backwards = [weights.letters.index(str(axis)) for axis, window in enumerate(facts.windows) if window.reversed]
    operand = builder.reverse(weights.value, backwards, "reversed")
    letters, sizes = _result_axes(facts, result, rank)
    _check(facts, weights, letters, sizes)
    kind = TensorType(x.dtype, sizes)
    numbers = f"[{', '.join(facts.image.roles)}]x[{', '.join(weights.letters)}]->[{', '.join(letters)}]"
    text = (
        f"stablehlo.convolution({image.name}, {operand.name}) dim_numbers = {numbers}, window = {{{_window(facts.windows)}}}"
        f" {{batch_group_count = 1 : i64, feature_group_count = {facts.groups} : i64}}"
    )
    word = "" if sizes == shape and _stays(result, letters) else "windows"
    return Lettered(builder.define(text, kind, signature([image.type, operand.type], kind), word), letters)


def _result_axes(facts: ConvolutionFacts, result: Layout, rank: int) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Takes the recorded order where it is one axis a letter with batch before feature, else b, spatial, f."""
    found = merged(result, RESULT_LETTERS)
    if found is not None:
        letters, sizes = complete(*found, "b", "f", rank)
        if letters.index("b") < letters.index("f"):
            return letters, sizes
    have = extents(result, RESULT_LETTERS)
    canonical = ("b", *map(str, range(rank)), "f")
    return canonical, tuple(have.get(letter, 1) for letter in canonical)


def _stays(result: Layout, letters: tuple[str, ...]) -> bool:
    found = merged(result, RESULT_LETTERS)
    return found is not None and found[0] == tuple(letter for letter in letters if letter in found[0])


def _window(windows: tuple[Window, ...]) -> str:
    if not windows:
        return ""
    pads = ", ".join(f"[{window.low}, {window.high}]" for window in windows)
    text = f"stride = [{ints(window.stride for window in windows)}], pad = [{pads}]"
    if any(window.base_dilation != 1 for window in windows):
        text += f", lhs_dilate = [{ints(window.base_dilation for window in windows)}]"
    if any(window.dilation != 1 for window in windows):
        text += f", rhs_dilate = [{ints(window.dilation for window in windows)}]"
    return text


def _check(facts: ConvolutionFacts, kernel: Lettered, letters: tuple[str, ...], sizes: tuple[int, ...]) -> None:
    """Facts that contradict each other must not become text that somebody runs."""
    have = dict(zip(letters, sizes, strict=True))
    weights = dict(zip(kernel.letters, kernel.value.shape, strict=True))
    image = dict(zip(facts.image.roles, facts.image.shape, strict=True))
    expected = {"b": image["b"], "f": facts.out_channels}
    for axis, window in enumerate(facts.windows):
        expected[str(axis)] = positions(image[str(axis)], window)
    taps = {"i": facts.in_channels, "o": facts.out_channels}
    taps |= {str(axis): window.size for axis, window in enumerate(facts.windows)}
    if have != expected or weights != taps or image["f"] != facts.in_channels * facts.groups:
        raise InternalError(f"convolution facts contradict each other: {facts}")


def positions(extent: int, window: Window) -> int:
    """Counts the positions of a window along an axis."""
    spread = (extent - 1) * window.base_dilation + 1 if extent else 0
    room = spread + window.low + window.high - ((window.size - 1) * window.dilation + 1)
    return room // window.stride + 1 if room >= 0 else 0
