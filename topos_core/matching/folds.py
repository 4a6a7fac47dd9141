"""Reductions with the elementwise ops before and behind them, as one expression."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from topos_core.matching.chains import Group, Grouping, groupings, squeezed
from topos_core.matching.context import Context
from topos_core.matching.expression import REDUCTIONS
from topos_core.matching.gathering import Gathering
from topos_core.matching.match import Match


class Fold(NamedTuple):
    """A reduction and what could run with it.

    Args:
        value: The reduction.
        extents, reduced: Of its operand, without axes of extent 1, and which of them it takes away.
        before: The group whose exit it alone reads.
        kept: The group that reads its result as it is.
        whole: The group that reads its result, or the kept group's, repeated along the reduced axes.
    """

    value: int
    extents: tuple[int, ...]
    reduced: tuple[int, ...]
    before: Group | None
    kept: Group | None
    whole: Group | None


def elementwise_reductions(context: Context) -> dict[int, Match]:
    """Gives, by its root, every reduction with the ops before it."""
    found: dict[int, Match] = {}
    for fold in _folds(context):
        if fold.before is not None and fold.value not in found:
            match = _gathered(context, "elementwise_reduction", fold, fold.value)
            if match is not None:
                found[fold.value] = match
    return found


def reductions_elementwise(context: Context) -> dict[int, Match]:
    """Gives, by its root, every reduction with the ops behind it, and with those before it that nothing else reads."""
    found: dict[int, Match] = {}
    for fold in _folds(context):
        # where a member is read along other axes than it has (a square is as wide as it is high), less is tried
        for part in (fold, fold._replace(whole=None)):
            last = part.whole or part.kept
            if last is None:
                break
            if last.exit in found:
                break
            match = _gathered(context, "reduction_elementwise", part, last.exit)
            if match is not None:
                found[last.exit] = match
                break
    return found


def _folds(context: Context) -> list[Fold]:
    return context.once(_every_fold)


def _every_fold(context: Context) -> list[Fold]:
    """Lists reductions of every grouping that leaves out what other patterns have."""
    every = context.once(groupings)
    return [fold for grouping in every if grouping.excluded == every[0].excluded for fold in _of(context, grouping)]


def _of(context: Context, grouping: Grouping) -> Iterator[Fold]:
    for value in context.made_by(REDUCTIONS):
        if value in grouping.excluded or not context.is_live(value):
            continue
        op = context.op(value)
        shape = context.op(op.operands[0]).type.shape
        longer = [axis for axis, extent in enumerate(shape) if extent != 1]
        reduced = tuple(longer.index(axis) for axis in op.attributes["axes"] if axis in longer)
        if not reduced:
            continue
        source = grouping.tables.source(op.operands[0])
        before = grouping.groups.get(source)
        if before is not None and grouping.tables.readers(source) != [value]:
            before = None
        yield Fold(value, squeezed(shape), reduced, before, *_behind(context, grouping, value, squeezed(shape)))


def _behind(
    context: Context, grouping: Grouping, value: int, extents: tuple[int, ...]
) -> tuple[Group | None, Group | None]:
    """Gives the groups behind a reduction: what reads it as it is, and what reads that, or itself, repeated."""
    readers = grouping.tables.readers(value, spread=True)
    if readers is None or any(reader not in grouping.exits for reader in readers):
        return None, None
    groups = {grouping.exits[reader]: grouping.groups[grouping.exits[reader]] for reader in readers}
    whole = [group for group in groups.values() if _space(context, group) == extents]
    kept = [group for group in groups.values() if _space(context, group) != extents]
    if len(whole) > 1 or len(kept) > 1 or (kept and _space(context, kept[0]) != squeezed(context.op(value).type.shape)):
        return None, None
    if not kept:
        return None, whole[0] if whole else None
    behind = grouping.one_group(grouping.tables.readers(kept[0].exit, spread=True))
    if behind is not None and _space(context, behind) == extents and whole in ([], [behind]):
        return kept[0], behind
    return (kept[0], None) if not whole else (None, None)


def _space(context: Context, group: Group) -> tuple[int, ...]:
    return squeezed(context.op(group.exit).type.shape)


def _gathered(context: Context, pattern: str, fold: Fold, root: int) -> Match | None:
    before = fold.before.members if fold.before is not None else ()
    kept = (fold.value, *(fold.kept.members if fold.kept is not None and root != fold.value else ()))
    whole = fold.whole.members if fold.whole is not None and root != fold.value else ()
    members = sorted((*before, *kept, *whole))
    return Gathering(context.tape, fold.extents, members, frozenset(kept), fold.reduced).match(pattern, root)
