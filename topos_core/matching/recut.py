"""Second looks: reading a form over bases nearer to the root, where the deepest ones say more than facts can.

A reversed image, a crop below a pad, shuffled channels: the movement nearest to the base stays as recorded, and the value
above it is bound instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from topos_core.matching.closure import common_chain, interior
from topos_core.matching.context import Context
from topos_core.matching.contraction import Forms
from topos_core.matching.cut import Cut
from topos_core.matching.form import Form
from topos_core.matching.window import Reading, is_promising, read_form

T = TypeVar("T")

LIMIT = 8
"""Cuts tried per operand: chains of movement are short, and each look costs the size of the match."""


def recut(
    context: Context,
    root: int,
    form: Form,
    read: Callable[[Form], T | None],
    reading: Reading | None = None,
    beside: Sequence[int] = (),
) -> T | None:
    """Gives what `read` makes of the first form, deepest cuts first, that it accepts; `reading` is the form's, where known.

    The form is the root's own, or that of what a sum's terms `beside` it leave.
    """
    if not is_promising(reading or read_form(form)):
        return None
    within = interior(context.tape, root, (*form.bases, *beside))
    chains = [common_chain(context.tape, context.readers, within, base, root)[1 : LIMIT + 1] for base in form.bases]
    for at in _cuts(chains):
        forms = Forms(context.tape, context.readers, Cut(context.tape, context.views, at))
        other = _without(forms, root) if beside else forms.of(root)
        if isinstance(other, Form) and len(other.bases) == len(form.bases):
            answer = read(other)
            if answer is not None:
                return answer
    return None


def _without(forms: Forms, root: int) -> Form | None:
    found = forms.beside(root)
    return None if found is None else found[0]


def _cuts(chains: list[list[int]]) -> Iterator[frozenset[int]]:
    for chain in chains:
        for value in chain:
            yield frozenset((value,))
    if len(chains) == 2:
        for first in chains[0]:
            for second in chains[1]:
                yield frozenset((first, second))
