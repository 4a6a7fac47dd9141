"""Sums of alike products of which some are subtracted: what would be a window sum but for a sign."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from topos_core.matching.form import Form
from topos_core.matching.grid import place, slides

if TYPE_CHECKING:
    from topos_core.matching.context import Context

FEWEST: Final = 3
"""Products that a sum has at least: of two it is not known which sign was meant."""


class Signed(NamedTuple):
    """A sum of products of slices of the same two values, the lesser part of which is subtracted.

    Args:
        root: The last value of the sum.
        form: What it would be if all products were added.
        terms: How many products there are.
        subtracted: Where each of those is subtracted, ascending.
        offset: Where the first of these reads, in words.
        inside: Every value of the sum.
    """

    root: int
    form: Form
    terms: int
    subtracted: tuple[int, ...]
    offset: str
    inside: frozenset[int]


def signed_sums(context: Context) -> dict[int, Signed]:
    """Gives every such sum by each of its values. Looks at subtractions of products and at the sums around these."""
    found: dict[int, Signed] = {}
    seen: set[int] = set()
    for value in context.made_by(("sub", "neg")):
        if value not in seen and context.is_live(value):
            kind = context.forms.signature(context.op(value).operands[-1], "add")
            if kind is not None and len(kind) > 1:
                signed = _read(context, value, kind, seen)
                if signed is not None:
                    found.update(dict.fromkeys(signed.inside, signed))
    return found


def _read(context: Context, value: int, kind: tuple[int, ...], seen: set[int]) -> Signed | None:
    top = value
    while len(readers := context.readers[top]) == 1 and context.op(readers[0]).name in _SIGNED:
        (top,) = readers
    inside: set[int] = set()
    terms: dict[int, tuple[bool, int]] = {}  # of each product whether it is subtracted, and who reads it
    others = 0
    stack = [(top, False, top)]
    while stack:
        node, minus, reader = stack.pop()
        op = context.op(node)
        if op.name in _SIGNED and (node == top or len(context.readers[node]) == 1):
            inside.add(node)
            signs = {"add": (minus, minus), "sub": (minus, not minus), "neg": (not minus,)}[op.name]
            stack += [(operand, sign, node) for operand, sign in zip(op.operands, signs, strict=True)]
            continue
        own = context.forms.signature(node, "add")
        if own == kind and node not in terms:
            terms[node] = minus, reader
        elif own is not None:
            others += 1
    seen |= inside
    less = [node for node, (minus, _) in terms.items() if minus]
    if others > 2 or len(terms) < FEWEST or not 0 < 2 * len(less) < len(terms):
        return None
    form = context.forms.stacked(list(terms), "sum")
    own_forms = [context.forms.of(node) for node in terms]
    if not isinstance(form, Form) or not form.is_product:
        return None
    views = [one.joint for one in own_forms if isinstance(one, Form)]
    if not slides(views, form.ranks):
        return None
    offset = place(views, form.ranks, list(terms).index(min(less)))
    return Signed(
        top, form, len(terms), tuple(sorted(terms[node][1] for node in less)), offset, frozenset(inside)
    )  # fmt: skip


_SIGNED: Final = ("add", "sub", "neg")
