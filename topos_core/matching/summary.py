"""Facts of a scalar core out of what was found, and its formula run on the arrays that it binds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from topos_core.matching.arrangement import arranged, restored
from topos_core.matching.binding import Found
from topos_core.matching.facts import CoreFacts, Layout
from topos_core.matching.ideal import recorded


def core_facts(found: Found, **options: str) -> CoreFacts | None:
    """Gives layouts, extents and constants of a match; its roles are the term's labels.

    A hole that may broadcast, and does so along a part of a label, has an axis of extent 1 there; that label's digits are
    then axes of their own in every layout. None where such a digit lies in pieces.
    """
    labels = found.attempt.labels
    roles = {label: label for label in labels}
    order: dict[int, int] = {}
    for rows in (found.root_rows, *found.rows.values()):
        for row in rows:
            for _, digit, _ in row:
                if digit not in order:
                    order[digit] = len(order)
    apart: set[str] = set()
    for hole in found.template.term.free:
        if hole in found.rows:
            shown = {part.digit for row in found.rows[hole] for part in row}
            apart |= {label for label, digits in labels.items() if 0 < len(shown.intersection(digits)) < len(digits)}
    if apart:
        all_rows = (found.root_rows, *found.rows.values())
        split = {part.digit for rows in all_rows for row in rows for part in row if part.weight > 1}
        if any(digit in split for label in apart for digit in labels[label]):
            return None
    dtype = found.keys.tape.ops[found.root].type.dtype
    constants = [name for name in found.template.constants if name in found.attempt.known]
    return CoreFacts(
        {hole: found.layout(rows, roles, order, apart) for hole, rows in found.rows.items()},
        found.layout(found.root_rows, roles, order, apart),
        {label: found.count(label) for label in labels},
        {name: recorded(found.constant(name), dtype) for name in constants},
        options,
    )


def shift_of(found: Found) -> str:
    """Says how a softmax that subtracts the maximum does so: `yes`, or `finite` where the op logsumexp does, if it is finite.

    At +inf each is another result: NaN throughout, or in its own place only.
    """
    ops = found.keys.tape.ops
    return "finite" if any(ops[value].name == "logsumexp" for value in found.interior) else "yes"


def evaluated(
    holes: Mapping[str, str],
    facts: CoreFacts,
    arrays: Mapping[str, np.ndarray],
    result: str,
    formula: Callable[..., Any],
) -> dict[str, np.ndarray]:
    """Runs a formula on bound arrays.

    Args:
        holes: Labels of each hole's axes; a hole without an array is None.
        result: Labels of the formula's axes.

    Returns:
        `root`, in the root's layout.
    """
    given: dict[str, Any] = dict.fromkeys(holes)
    for hole, array in arrays.items():
        layout = facts.layouts[hole]
        given[hole] = arranged(*_widened(array, layout, facts), holes[hole].split())
    answer = formula(**given, **facts.constants)
    shape = [facts.extents[label] for label in result.split()]
    return {"root": restored(np.broadcast_to(answer, shape), facts.result, result.split())}


def _widened(array: np.ndarray, layout: Layout, facts: CoreFacts) -> tuple[np.ndarray, Layout]:
    """Repeats an array along axes of extent 1 that are longer where another layout shows the same role and rank."""
    full: dict[tuple[str, int], int] = {}
    for other in (facts.result, *facts.layouts.values()):
        for extent, role, rank in zip(other.shape, other.roles, other.rank, strict=True):
            full[role, rank] = max(extent, full.get((role, rank), 1))
    axes = list(zip(layout.shape, layout.roles, layout.rank, strict=True))
    partly = {role for extent, role, _ in axes if extent == 1}
    shape = tuple(full[role, rank] if role in partly else extent for extent, role, rank in axes)
    return np.broadcast_to(array.reshape(layout.shape), shape), Layout(shape, layout.roles, layout.rank)
