"""Brings values from recorded layouts to the axes that a named op wants, one axis a letter, and back.

A letter stands for one role or for two (`g` is the major part of `o` and of `f`). Axes of one letter are one mixed-radix
number; reshapes alone do where they already stand together, most significant first, else a transpose does the rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from topos_core.emission.builder import Builder, Ssa
from topos_core.matching.facts import Layout


class Lettered(NamedTuple):
    """A value with one axis a letter."""

    value: Ssa
    letters: tuple[str, ...]


def merged(layout: Layout, letter_of: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[int, ...]] | None:
    """Gives letters and extents after joining neighbours of one letter; None where a letter stands apart or out of order.

    Axes of extent 1 hinder nothing: one is dropped where its letter has another axis.
    """
    letters: list[str] = []
    sizes: list[int] = []
    previous: tuple[int, int] | None = None
    for axis in _standing(layout, letter_of):
        letter, weight = letter_of[layout.roles[axis]], _weight(layout, axis)
        if letters and letters[-1] == letter and previous is not None and previous < weight:
            sizes[-1] *= layout.shape[axis]
        elif letter in letters:
            return None
        else:
            letters.append(letter)
            sizes.append(layout.shape[axis])
        previous = weight
    return tuple(letters), tuple(sizes)


def complete(
    letters: Sequence[str], sizes: Sequence[int], first: str, last: str, rank: int
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Puts absent letters back as axes of extent 1: `first` in front, `last` at the end, spatial axes in their order."""
    named, extents = list(letters), list(sizes)

    def insert(at: int, letter: str) -> None:
        named.insert(at, letter)
        extents.insert(at, 1)

    for k in range(rank):
        if str(k) not in named:
            if k and str(k - 1) in named:
                insert(named.index(str(k - 1)) + 1, str(k))
            else:
                later = [at for at, letter in enumerate(named) if letter.isdigit() and int(letter) > k]
                insert(later[0] if later else len(named) - (named[-1:] == [last]), str(k))
    if first not in named:
        insert(0, first)
    if last not in named:
        insert(len(named), last)
    return tuple(named), tuple(extents)


def lettered(
    builder: Builder, x: Ssa, layout: Layout, letter_of: Mapping[str, str], order: Sequence[str], word: str
) -> Lettered:
    """Gives x with one axis a letter: in the order in which they stand where a reshape does, else in `order`."""
    found = merged(layout, letter_of)
    if found is None:
        axes = _canonical(layout, letter_of, order)
        digits = builder.reshape(x, layout.shape, f"{word}_digits")
        x = builder.transpose(digits, axes, f"{word}_order")
        found = _joined(layout, letter_of, axes)
    letters, sizes = complete(*found, order[0], order[-1], len(order) - 2)
    return Lettered(builder.reshape(x, sizes, word), letters)


def recorded(
    builder: Builder, y: Lettered, layout: Layout, letter_of: Mapping[str, str], shape: tuple[int, ...], word: str = ""
) -> Ssa:
    """Brings a lettered value to the recorded layout and shape: the inverse of `lettered`."""
    have = tuple(letter for letter, extent in zip(y.letters, y.value.shape, strict=True) if extent != 1)
    found = merged(layout, letter_of)
    want = None if found is None else tuple(letter for letter, extent in zip(*found, strict=True) if extent != 1)
    if have == want:
        return builder.reshape(y.value, shape, word)
    axes = _canonical(layout, letter_of, y.letters)
    digits = builder.reshape(y.value, tuple(layout.shape[axis] for axis in axes), f"{word}_digits".lstrip("_"))
    back = [axes.index(axis) for axis in range(len(axes))]
    moved = word if layout.shape == shape else f"{word}_order".lstrip("_")
    return builder.reshape(builder.transpose(digits, back, moved), shape, word)


def extents(layout: Layout, letter_of: Mapping[str, str]) -> dict[str, int]:
    """Gives every letter's extent."""
    sizes: dict[str, int] = {}
    for role, extent in zip(layout.roles, layout.shape, strict=True):
        sizes[letter_of[role]] = sizes.get(letter_of[role], 1) * extent
    return sizes


def _standing(layout: Layout, letter_of: Mapping[str, str]) -> list[int]:
    """Lists axes without those of extent 1 whose letter has another axis."""
    kept: list[int] = []
    for axis, (extent, role) in enumerate(zip(layout.shape, layout.roles, strict=True)):
        others = [k for k, other in enumerate(layout.roles) if k != axis and letter_of[other] == letter_of[role]]
        redundant = extent == 1 and any(layout.shape[k] != 1 or k < axis for k in others)
        if not redundant:
            kept.append(axis)
    return kept


def _weight(layout: Layout, axis: int) -> tuple[int, int]:
    """Orders axes of one letter: the group is the major part, then the smaller rank."""
    return (layout.roles[axis] != "g", layout.rank[axis])


def _canonical(layout: Layout, letter_of: Mapping[str, str], order: Sequence[str]) -> list[int]:
    """Sorts axes by letter, then by significance."""
    axes = range(len(layout.shape))
    return sorted(axes, key=lambda axis: (order.index(letter_of[layout.roles[axis]]), *_weight(layout, axis)))


def _joined(
    layout: Layout, letter_of: Mapping[str, str], axes: Sequence[int]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    letters = tuple(dict.fromkeys(letter_of[layout.roles[axis]] for axis in axes))
    sizes = tuple(
        math.prod(layout.shape[axis] for axis in axes if letter_of[layout.roles[axis]] == letter) for letter in letters
    )
    return letters, sizes
