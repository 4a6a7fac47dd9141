"""How a match's result lies in a value that only moves it: reshapes and permutations behind a product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from topos_core.matching.affine import Digit, Digits, regrouped
from topos_core.matching.facts import Layout
from topos_core.matching.layout import Piece, build
from topos_core.matching.movement import moved
from topos_core.matching.view import View

if TYPE_CHECKING:
    from topos_core.matching.context import Context

CANONICAL: Final = -2
"""The base of a result's view: the result with one axis per role."""
MOVES: Final = ("reshape", "permute")


def view_of(layout: Layout, roles: Sequence[str], shape: Sequence[int]) -> View:
    """Gives the view of a value of `shape` over a base with one axis per role."""
    extents = dict.fromkeys(roles, 1)
    steps: dict[int, int] = {}
    for role in roles:
        own = sorted((k for k, r in enumerate(layout.roles) if r == role), key=lambda k: -layout.rank[k])
        for k in own:
            steps[k] = extents[role]
            extents[role] *= layout.shape[k]
    digits = [
        Digit(extent, tuple(steps[k] if other == role else 0 for other in roles))
        for k, (extent, role) in enumerate(zip(layout.shape, layout.roles, strict=True))
    ]
    axes: tuple[Digits, ...] = tuple((digit,) if digit.extent > 1 else () for digit in digits)
    view = View(CANONICAL, tuple(extents.values()), axes, (0,) * len(roles), (1,) * len(roles), ())
    groups = regrouped(view.digits, shape)
    assert groups is not None  # a layout's axes refine the recorded ones
    return view._replace(axes=groups)


def moved_layout(context: Context, layout: Layout, roles: Sequence[str], root: int, value: int) -> Layout | None:
    """Gives the layout of a value that moves `root`, which has the given one; None where a digit mixes roles."""
    path = []
    while value != root:
        path.append(context.op(value))
        (value,) = context.op(value).operands
    view = view_of(layout, roles, context.op(root).type.shape)
    for op in reversed(path):
        below = view
        found = moved(context.tape, op, lambda _, below=below: below)  # type: ignore[misc]
        if found is None:
            return None
        view = found
    rows: list[list[Piece]] = []
    for axis in view.axes:
        row = []
        for digit in axis:
            terms = [(form, step) for form, step in enumerate(digit.coefficients) if step]
            if len(terms) != 1:
                return None
            row.append(Piece(digit.extent, roles[terms[0][0]], -terms[0][1]))
        rows.append(row)
    return build(rows, list(roles), [tuple(roles)], (roles[0], roles[-1]))
