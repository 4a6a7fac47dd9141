"""What decides between a match and those that are chosen on its ops: one comparison, which holds in every election.

Where the best subset is searched for, those in a match's place are worth at least what it is worth, else it would stand in
theirs; where the greatest goes first, one of them alone is.
"""

from __future__ import annotations

from collections.abc import Sequence

from topos_core.plan.ballots import Ballot
from topos_core.plan.decision import Number, Outbid


def outbid(ballot: Ballot, chosen: Sequence[Ballot], *, by_ops: bool) -> tuple[int, Outbid]:
    """Compares a ballot that pays with those that are chosen on its ops: gives the number of the one that is told, and why.

    `by_ops` says that what covers more ops is elected.
    """
    own, claims = ballot.candidate, ballot.candidate.claims
    rivals = [one for one in chosen if not one.candidate.last]  # elected before it or with it
    if own.last and not rivals:
        rivals = list(chosen)
    first = min([one.candidate for one in rivals], key=lambda one: (-len(one.claims & claims), one.root, one.number))
    count, covered = len(rivals), sum([len(one.candidate.claims) for one in rivals])
    worth = sum([one.candidate.weight for one in rivals])
    if own.last and not first.last:
        return first.number, Outbid("first", count)
    if first.claims == claims and (first.rank, first.root, first.number) < (own.rank, own.root, own.number):
        return first.number, Outbid("listed", count)
    if worth < own.weight:
        return first.number, Outbid("aside", count)
    if by_ops and covered > len(claims):
        ops = Number(covered, "op", "counted"), Number(len(claims), "op", "counted")
        return first.number, Outbid("ops", count, *ops)
    if worth == own.weight:
        return first.number, Outbid("order", count)
    saved = Number(sum([one.standing.benefit for one in rivals]), "second", "modelled")
    return first.number, Outbid(
        "even" if by_ops else "seconds", count, saved, Number(ballot.standing.benefit, "second", "modelled")
    )
