"""Axes: every digit of a try must vary with exactly the holes that own its label."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from topos_core.matching.attempt import Attempt
from topos_core.matching.func import digits_of


class AxisFault(NamedTuple):
    """What is wrong with a digit: its label where one is meant, itself, its extent, and the holes that should or do vary with it."""

    label: str | None
    digit: int
    extent: int
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    users: tuple[str, ...]


def labelled(attempt: Attempt) -> bool:
    """Sorts the digits of a try into labels; the failure tells which hole varies along a wrong axis."""
    template = attempt.template
    bits, owners, free, bound = template.bits, template.owners, template.free, attempt.bound
    users: dict[int, int] = dict.fromkeys(range(attempt.root_digits), 0)
    alias = attempt.alias
    for hole in template.holes:
        if hole not in bound:
            attempt.fail("unbound", hole, None, attempt.top)
            return False
        bit = bits[hole]
        for digit in digits_of(bound[hole][1]):
            while digit in alias:
                digit = alias[digit]
            users[digit] = users.get(digit, 0) | bit
    reduced = _reduced(attempt)
    if reduced is None:
        return False
    for digit in reduced:
        users.setdefault(digit, 0)
    kept = [label for label in owners if label not in template.reduced]  # with or without digits here
    found: dict[str, list[int]] = {label: [] for label in owners}
    for digit in sorted(users):
        using = users[digit]
        allowed = reduced.get(digit, kept)
        for label in allowed:
            owner = owners.get(label, 0)
            if not (owner ^ using) & ~free and not using & free & ~owner:
                found[label].append(digit)
                break
        else:
            _misfit(attempt, digit, using, allowed, digit in reduced)
            return False
    attempt.labels = found
    return True


def _misfit(attempt: Attempt, digit: int, using: int, allowed: Iterable[str], reduced: bool) -> None:
    template = attempt.template

    def names(mask: int) -> frozenset[str]:
        return frozenset(hole for hole, bit in template.bits.items() if mask & bit)

    owners = {label: names(mask) for label, mask in template.owners.items()}
    fault = _fault(attempt, digit, names(using), allowed, owners, reduced)
    who = next(iter(fault.missing or fault.extra or fault.users), None)
    attempt.fail("axis", fault, who, attempt.bound[who][0] if who is not None else attempt.top)


def _reduced(attempt: Attempt) -> dict[int, tuple[str, ...]] | None:
    """Gives the labels of every reduced digit; all reductions over the same labels must reduce the same digits."""
    sets: dict[tuple[str, ...], frozenset[int]] = {}
    for labels, digits, func in attempt.reductions:
        roots = frozenset(attempt.root_of(digit) for digit in digits)
        if sets.setdefault(labels, roots) != roots:
            wanted = sorted(attempt.extents[d] for d in sets[labels])
            got = sorted(attempt.extents[d] for d in roots)
            attempt.fail("axis-mixed", (" ".join(labels), wanted), (func, got), func)
            return None
    reduced: dict[int, tuple[str, ...]] = {}
    for digit, labels in attempt.reduced.items():
        root = attempt.root_of(digit)
        if reduced.setdefault(root, labels) != labels:
            fault = AxisFault(" ".join(labels), root, attempt.extents[root], (), (), ())
            attempt.fail("axis", fault, None, attempt.top)
            return None
    return reduced


def _fault(
    attempt: Attempt,
    digit: int,
    using: frozenset[str],
    allowed: Iterable[str],
    owners: dict[str, frozenset[str]],
    reduced: bool,
) -> AxisFault:
    free = attempt.template.term.free
    nearest: tuple[int, int, str, frozenset[str]] | None = None
    for label in allowed:
        differ = frozenset((owners.get(label, frozenset()) ^ using) - free)
        key = (len(differ), not differ <= using, label, differ)
        if nearest is None or key[:3] < nearest[:3]:
            nearest = key
    extent, users = attempt.extents[digit], tuple(sorted(using))
    if nearest is None or (nearest[0] != 1 and not reduced):
        return AxisFault(None, digit, extent, (), (), users)
    differ = nearest[3]
    return AxisFault(nearest[2], digit, extent, tuple(sorted(differ - using)), tuple(sorted(differ & using)), users)
