"""Layouts out of digits: which axis of a value plays which role, and where axes of extent 1 get their roles back.

Digits are identities and an axis of extent 1 has none, so its role is given back by rule: by the usual orders of axes
where the recorded rank fits one of them, else by filling in, first role first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from topos_core.matching.facts import Layout


class Piece(NamedTuple):
    """One digit of an axis: its extent, its role, and its place among the digits of that role (0 is the greatest)."""

    extent: int
    role: str
    place: int


Row = Sequence[Piece]  # one axis, most significant first; empty where its extent is 1


def build(rows: Sequence[Row], wanted: Sequence[str], orders: Sequence[Sequence[str]], ends: tuple[str, str]) -> Layout:
    """Builds the layout of a value.

    Args:
        rows: Its axes.
        wanted: Every role that should appear, units included.
        orders: Usual orders of roles, best first; the first that fits the recorded axes names its units.
        ends: Roles that are inserted first and last where no axis is left for them.
    """
    shown = {piece.role for row in rows for piece in row}
    missing = [role for role in wanted if role not in shown]
    units = _unit_roles(rows, missing, orders, ends) if missing else {}
    axes: list[Piece] = []
    for k, row in enumerate(rows):
        if row:
            axes += row
        elif k in units:
            missing.remove(units[k])
            axes.append(Piece(1, units[k], 0))
    for role in missing:
        axes.insert(_place(axes, role, ends), Piece(1, role, 0))
    return _finished(axes)


def fits(rows: Sequence[Row], order: Sequence[str]) -> bool:
    """Says whether every recorded axis that has digits plays the role that an order gives it."""
    return len(rows) == len(order) and all(
        _same(piece.role, role) for row, role in zip(rows, order, strict=True) for piece in row
    )


@lru_cache(256)
def usual(spatial: int, *patterns: str) -> tuple[tuple[str, ...], ...]:
    """Spells out orders of axes: `bfS` with two spatial axes is `b f 0 1`."""
    axes = tuple(str(k) for k in range(spatial))
    return tuple(tuple(role for letter in p for role in (axes if letter == "S" else (letter,))) for p in patterns)


def order_of(layout: Layout, numbers: Sequence[Sequence[str]]) -> tuple[tuple[int, int, int], ...]:
    """Lists a layout's axes as they stand, as (which number, place in it, extent): neighbours that continue it are one.

    A number is made of one or several roles, greatest first; axes of other roles have number -1 and count as they stand.
    Two layouts of one value with the same list number the same elements alike.
    """
    members: dict[int, tuple[int, int]] = {}
    for number, roles in enumerate(numbers):
        own = [axis for axis, role in enumerate(layout.roles) if role in roles and layout.shape[axis] != 1]
        ranked = sorted(own, key=lambda axis: (roles.index(layout.roles[axis]), layout.rank[axis]))
        members |= {axis: (number, place) for place, axis in enumerate(ranked)}
    merged: list[tuple[int, int, int]] = []
    for axis, extent in enumerate(layout.shape):
        if extent == 1:
            continue
        number, place = members.get(axis, (-1, 0))
        if merged and merged[-1][0] == number and (number < 0 or merged[-1][1] + 1 == place):
            merged[-1] = (number, place, merged[-1][2] * extent)
        else:
            merged.append((number, place, extent))
    places = sorted((number, place) for number, place, _ in merged)
    first = {number: places.index((number, place)) for number, place in reversed(places)}
    return tuple((n, places.index((n, place)) - first[n] if n >= 0 else 0, extent) for n, place, extent in merged)


def _unit_roles(
    rows: Sequence[Row], missing: Sequence[str], orders: Sequence[Sequence[str]], ends: tuple[str, str]
) -> dict[int, str]:
    for order in orders:
        if fits(rows, order):
            left = list(missing)
            named: dict[int, str] = {}
            for k, role in enumerate(order):
                if not rows[k] and role in left:
                    left.remove(role)
                    named[k] = role
            return named
    left = list(missing)
    named = {}
    for k, role in ((0, ends[0]), (len(rows) - 1, ends[1])):
        if role in left and rows and not rows[k] and k not in named:
            left.remove(role)
            named[k] = role
    free = [k for k, row in enumerate(rows) if not row and k not in named]
    inner = [role for role in left if role not in ends]
    return named | dict(zip(free, inner, strict=False))


def _same(role: str, wanted: str) -> bool:
    """Groups are the major part of `o` and of `f`."""
    return role == wanted or (role == "g" and wanted in "of")


def _place(axes: Sequence[Piece], role: str, ends: tuple[str, str]) -> int:
    roles = [piece.role for piece in axes]
    if role == ends[0]:
        return 0
    if role == ends[1]:
        return len(axes)
    if not role.isdigit():
        return 1 if roles and roles[0] == ends[0] else 0
    after = [k for k, other in enumerate(roles) if other.isdigit() and int(other) > int(role)]
    before = [k for k, other in enumerate(roles) if other.isdigit() and int(other) < int(role)]
    if after:
        return after[0]
    if before:
        return before[-1] + 1
    return len(axes) - 1 if roles and roles[-1] == ends[1] else len(axes)


def _finished(axes: Sequence[Piece]) -> Layout:
    """Joins neighbours that continue one number and counts the ranks anew."""
    order: dict[str, list[int]] = {}
    for piece in axes:
        order.setdefault(piece.role, []).append(piece.place)
    if len(order) == len(axes):
        return Layout(tuple([piece.extent for piece in axes]), tuple(order), (0,) * len(axes))
    out: list[Piece] = []
    for piece in axes:
        rank = sorted(order[piece.role]).index(piece.place)
        if out and out[-1].role == piece.role and out[-1].place + 1 == rank:
            out[-1] = Piece(out[-1].extent * piece.extent, piece.role, rank)
        else:
            out.append(Piece(piece.extent, piece.role, rank))
    ranks: dict[str, list[int]] = {}
    for piece in out:
        ranks.setdefault(piece.role, []).append(piece.place)
    return Layout(
        tuple(piece.extent for piece in out),
        tuple(piece.role for piece in out),
        tuple(sorted(ranks[piece.role]).index(piece.place) for piece in out),
    )
