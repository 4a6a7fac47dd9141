"""Which values lie in planes with zeros around them along a chain of kernels, so that none of the chain copies its image.

A convolution with padding reads its image through planes that it copies. Where the image is what another kernel makes, and
nobody else needs it dense, that kernel writes into the planes at once. Values that are added to each other lie alike, so
that the one is added where the other is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from topos_core.kernels.convolution.reading import ReadAlike, ReadImage
from topos_core.kernels.kernel import Offer
from topos_core.kernels.margins import Margins
from topos_core.plan.schedule import Schedule, Step
from topos_core.tape.tape import Tape


def margins_of(
    tape: Tape, schedule: Schedule, offers: Mapping[int, Offer], folded: Collection[int] = ()
) -> dict[int, Margins]:
    """Chooses how roots of taken matches lie; those that are not named are dense. Linear in the steps.

    Args:
        tape: The spec.
        schedule: What runs.
        offers: What was offered for taken matches, by root.
        folded: Values that are computed before the run.
    """
    able = {root for root, offer in offers.items() if offer.apart is not None}
    able.difference_update(schedule.kept, folded)
    for step in schedule.steps if able else ():
        able.difference_update(_read_densely(step, offers))
    if not able:
        return {}
    groups = _Groups(tape, offers, able)
    for step in schedule.steps:
        groups.read(step)
    return groups.chosen()


def _read_densely(step: Step, offers: Mapping[int, Offer]) -> set[int]:
    """Lists what a step should find dense: all but images that it copies, and what it adds to its result."""
    ways = _ways(step, offers)
    if step.match is None:
        return set(step.reads)
    bindings = step.match.bindings
    free = {
        name
        for name, way in ways.items()
        if isinstance(way, ReadAlike) or not way.reads_in_place(made_in_columns(bindings[name], offers))
    }
    return {value for name, value in bindings.items() if name not in free}


def made_in_columns(value: int, offers: Mapping[int, Offer]) -> bool:
    """Tells whether a value's kernel writes it so that its columns follow each other."""
    return value in offers and offers[value].columns is not None


def _ways(step: Step, offers: Mapping[int, Offer]) -> dict[str, ReadAlike | ReadImage]:
    """Tells how a step reads images and what it adds to its result, by binding."""
    offer = offers.get(step.value) if step.match is not None else None
    if offer is None or len(offer.stages) != 1:
        return {}
    return {name: way for name, way in offer.stages[0].reads if isinstance(way, ReadAlike | ReadImage)}


class _Groups:
    """Values that lie alike, and what their readers spare if they lie in planes."""

    def __init__(self, tape: Tape, offers: Mapping[int, Offer], able: set[int]) -> None:
        self.tape, self.offers = tape, offers
        self.parents: dict[int, int] = {value: value for value in able}
        self.spared: dict[int, Counter[Margins]] = {}
        self.dense: set[int] = set()

    def read(self, step: Step) -> None:
        """Looks at what a step reads, and how."""
        for name, way in _ways(step, self.offers).items():
            assert step.match is not None
            value = step.match.bindings[name]
            kind = self.tape.ops[value].type
            if isinstance(way, ReadImage):
                wanted = way.margins(kind, made_in_columns(value, self.offers)) if value in self.parents else None
                if wanted is not None:
                    self.spared.setdefault(value, Counter())[wanted] += kind.bytes
                continue
            pair = {value, step.value}
            if pair <= self.parents.keys() and kind == self.tape.ops[step.value].type:
                self.parents[self.group(value)] = self.group(step.value)
            else:  # bringing what is added to where the result lies takes longer than a copy into planes
                self.dense |= pair

    def group(self, value: int) -> int:
        """Finds the value that stands for a value's group."""
        while self.parents[value] != value:
            self.parents[value] = value = self.parents[self.parents[value]]
        return value

    def chosen(self) -> dict[int, Margins]:
        """Gives each group the planes that spare most."""
        members: dict[int, list[int]] = {}
        for value in self.parents:
            members.setdefault(self.group(value), []).append(value)
        found: dict[int, Margins] = {}
        for values in members.values():
            counted: Counter[Margins] = Counter()
            for value in values:
                counted.update(self.spared.get(value, {}))
            margins = max(counted, key=lambda each: (counted[each], each), default=None)
            if margins is None or not self.dense.isdisjoint(values):
                continue
            if all(self.reaches(value, margins) for value in values):
                found.update(dict.fromkeys(values, margins))
        return found

    def reaches(self, value: int, margins: Margins) -> bool:
        """Tells whether a value's kernel writes into such planes."""
        apart = self.offers[value].apart
        return apart is not None and apart.reaches(self.tape.ops[value].type, margins.strides)
