"""Which failures are worth telling: at most one for each anchor, and none that a full match explains."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from topos_core.matching.attempt import Attempt, Far
from topos_core.matching.binding import Found
from topos_core.matching.core import Keys
from topos_core.matching.func import DEPTH, digits_of, uncast
from topos_core.matching.solving import NumberFault, wrong_numbers
from topos_core.matching.term import Missed, Recognised

_STRUCTURE: Final = frozenset(("kind", "arity", "extra", "missing", "exponent"))
_ONE_MORE_HOLE: Final = frozenset(("axis", "axis-mixed", "constant", "identity"))


def sifted(keys: Keys, recognised: Recognised) -> tuple[list[Missed], Mapping[tuple[str, int], list[Missed]]]:
    """Gives the near misses, and by (pattern, root) of a full match why it did not go on to one more optional hole."""
    found = recognised.found
    owners: dict[int, list[Found]] = {}
    for match in found:
        for number in match.attempt.covered():
            owners.setdefault(number, []).append(match)
    roots = {(match.identifier, keys.funcs[match.root].number) for match in found}
    stopped: dict[tuple[str, int], list[Missed]] = {}
    best: dict[int, Missed] = {}
    known = _outermost([missed for missed in recognised.missed if missed.template.lookalike is not None])
    told = {id(missed) for missed in known}
    covered = {number for missed in known for number in missed.attempt.covered()}
    for missed in recognised.missed:
        if missed.template.lookalike is not None and id(missed) not in told:
            continue
        anchors = _anchors(keys, recognised, missed)
        if _is_bare(keys, missed, anchors):
            continue
        if missed.template.lookalike is None and covered.issuperset(anchors):
            continue  # what it is taken for is told by name
        around = [match for number in anchors for match in owners.get(number, ())]
        same = [match for match in around if match.identifier == missed.identifier]
        if same:
            _stop(same[-1], missed, stopped)
            continue
        if any((missed.identifier, number) in roots for number in anchors):
            continue
        if missed.template.lookalike is None and (missed.template.silent or not missed.template.anchors):
            continue
        others = [match for match in around if keys.funcs[match.root].number not in anchors]  # a part is no explanation
        code = missed.code
        if code in _STRUCTURE and others:
            continue
        if code != "axis-mixed" and any(
            len(match.attempt.covered()) >= missed.held or _is_sibling(keys, match, missed) for match in others
        ):
            continue
        for number in anchors:
            before = best.get(number)
            if (
                before is None
                or _key(keys, missed) > _key(keys, before)
                or (missed.identifier == before.identifier and _key(keys, missed) == _key(keys, before))
            ):
                best[number] = missed
    return list({id(missed): missed for missed in best.values()}.values()), stopped


def _is_sibling(keys: Keys, match: Found, missed: Missed) -> bool:
    """Says whether a match is of the same family at the same function: it is that, and the other is excluded there."""
    family = match.template.term.family
    return bool(family) and family == missed.template.term.family and keys.funcs[match.root] is keys.funcs[missed.root]


def _is_bare(keys: Keys, missed: Missed, anchors: Sequence[int]) -> bool:
    """Says whether there is nothing but the anchor: a softmax that no product reads is no attention that almost was."""
    template = missed.template
    own = template.anchor is template.root or template.lookalike is not None
    return not own and uncast(keys.funcs[missed.root]).number in anchors


def _outermost(missed: Sequence[Missed]) -> list[Missed]:
    """Leaves out look-alikes that a larger one covers, but for its own root: sums take their operands' operands in."""
    sets = [frozenset(one.attempt.covered()) for one in missed]
    tops = [one.attempt.top.number for one in missed]
    holders: dict[int, list[int]] = {}
    for k, numbers in enumerate(sets):
        for number in numbers:
            holders.setdefault(number, []).append(k)
    kept = []
    for k, one in enumerate(missed):
        core = sets[k] - {tops[k]}
        beside = holders[max(core)] if core else ()  # whatever covers it holds its last function
        if not any(j != k and core <= sets[j] and (len(sets[j]), -j) > (len(sets[k]), -k) for j in beside):
            kept.append(one)
    return kept


def _stop(match: Found, missed: Missed, stopped: dict[tuple[str, int], list[Missed]]) -> None:
    """Keeps a failure above a full match of the same pattern where it tells why one more hole was not taken in."""
    more = set(missed.template.holes) > set(match.template.holes)
    if missed.template.silent and (missed.code != "axis" or _is_whole(match, missed)):
        return
    if more and missed.template.form is match.template.form and missed.code in _ONE_MORE_HOLE:
        stopped.setdefault((match.identifier, match.root), []).append(missed)


def _is_whole(match: Found, missed: Missed) -> bool:
    """Says whether the hole that was not taken in varies along every axis: a residual is meant, and no bias gone wrong."""
    attempt = missed.attempt
    for hole in set(missed.template.holes) - set(match.template.holes):
        bound = attempt.bound.get(hole)
        if bound is not None and set(range(attempt.root_digits)) <= {attempt.root_of(d) for d in digits_of(bound[1])}:
            return True
    return False


def _anchors(keys: Keys, recognised: Recognised, missed: Missed) -> list[int]:
    """Lists the pattern's anchors below the root of a failure."""
    func = keys.funcs[missed.root]
    return recognised.anchors.below(missed.identifier, func, DEPTH) or [kid.func.number for kid in func.kids]


def _key(keys: Keys, missed: Missed) -> tuple[Far, int, float]:
    """Gives how near a failure is to a match: how far it came, how few numbers differ, and how near the first of them is."""
    fault = missed.failure.expected if missed.code == "constant" else None
    if not isinstance(fault, NumberFault) or not abs(fault.found * fault.expected) > 0:
        return missed.far, 0, -math.inf
    wrong = wrong_numbers(missed.attempt, keys, missed.root) if isinstance(missed.attempt, Attempt) else 1
    apart = abs(math.log(abs(fault.found / fault.expected)))
    return missed.far, -wrong, -apart if fault.found * fault.expected > 0 else -_OTHER_SIGN - apart


_OTHER_SIGN: Final = 1e3
"""How much further a number of the other sign is, in powers of e."""
