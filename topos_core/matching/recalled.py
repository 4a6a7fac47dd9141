"""What a remembered try came to, and the same try at another function."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from topos_core.matching.alike import most_alike
from topos_core.matching.attempt import Attempt, Equation, Failure, Far, Held
from topos_core.matching.func import Func, Kid, Map
from topos_core.matching.labelling import labelled
from topos_core.matching.late import Late
from topos_core.matching.met import Met
from topos_core.matching.passed import Passed, Stride, length, worked_out
from topos_core.matching.template import Template
from topos_core.matching.tuples import new_tuple

Script = tuple[int, ...]
"""Which candidate comes first at each choice of a try."""


class Outcome(NamedTuple):
    """How a try ended, in terms of what it met: functions by their place in that order.

    The fields are those of `Attempt`; of an anchor's try and of one that failed early most are empty.

    Args:
        is_scaled: Whether a bound map has a coefficient, which is another for other functions.
        grown_by: The functions whose reduced digits the try took in, in that order.
        covered: The functions that are held, each once.
    """

    fits: bool
    stage: int
    failure: tuple[Any, ...] | None
    choices: list[int]
    compared: int
    steps: int
    front: Any = None
    bound: tuple[tuple[str, int, Map], ...] = ()
    is_scaled: bool = False
    reductions: tuple[tuple[tuple[str, ...], tuple[int, ...], int], ...] = ()
    grown_by: tuple[int, ...] = ()
    reduced: Any = None
    alias: Any = None
    labels: Any = None
    equations: tuple[tuple[Any, Any, str, int], ...] = ()
    signs: tuple[tuple[Any, float, int], ...] = ()
    held: tuple[tuple[Func, int, Map, Any], ...] = ()
    covered: tuple[int, ...] = ()


def _of_whole(name: str) -> Late:
    return Late(lambda refusal: getattr(refusal.whole, name))


class Refusal:
    """A try that is known to fail, without what it would tell: that is put together where somebody asks."""

    far: Far | None
    code: str | None

    def __init__(self, known: Outcome, template: Template, met: Met, script: Script) -> None:
        self.stage, self.choices, self.compared, self.top = known.stage, known.choices, known.compared, met.order[0]
        failure = known.failure
        self.far, self.code = (None, None) if failure is None else ((failure[0], failure[1], failure[2]), failure[3])
        self._known, self._template, self._met, self._script = known, template, met, script

    def _made(self) -> Recalled:
        return Recalled(self._known, self._template, self._met, self._script)

    whole: Any = Late(_made)
    """The try as it would have been made, and what is asked of it."""
    failure: Any = _of_whole("failure")
    held: Any = _of_whole("held")
    reductions: Any = _of_whole("reductions")
    root_digits: Any = _of_whole("root_digits")
    root_of: Any = _of_whole("root_of")

    @property
    def bound(self) -> dict[str, tuple[Func, Map]]:
        """Gives what its holes are bound to; not to be changed."""
        return bound(self._known, self._met)

    def covered(self) -> set[int]:
        """Collects the numbers of the functions that it holds."""
        return covered(self._known, self._met)


class Recalled(Attempt):
    """A try whose structure is that of a known one."""

    def __init__(self, known: Outcome, template: Template, met: Met, script: Script) -> None:
        (
            self.fits, self.stage, _, self.choices, self.compared, self.steps, front, _, _, reductions, grown_by, self.reduced,
            self.alias, self.labels, kept_equations, signs, _, _,
        ) = known  # fmt: skip
        order = met.order
        top = order[0]
        self.template, self.top, self.script = template, top, script
        self.root_digits = len(top.shape)
        self.extents = [*top.shape]
        self.reductions = [(label, digits, order[k]) for label, digits, k in reductions] if reductions else []
        for k in grown_by:
            self.extents += order[k].reduced
        self.bound = bound(known, met)
        self.equations = equations = []
        for found, expected, what, k in kept_equations:
            if type(found) is Passed:
                found = worked_out(found, order)
            if type(expected) is Passed:
                expected = worked_out(expected, order)
            if type(found) is not float or type(expected) is not float or found != expected:
                equations.append(new_tuple(Equation, (found, expected, what, order[k])))
        self.signs = [(worked_out(one, order), sign, order[k]) for one, sign, k in signs] if signs else []
        self.front = worked_out(front, order)
        self.known: dict[str, float] = {}
        self._grown = []
        self._outcome, self._met = known, met
        if not self.fits and front is not None:
            self.failure = None
            labelled(self)  # what is wrong with a digit is told with its extent

    def _holding(self) -> list[Held]:
        met = self._met
        return [
            Held(t, met.order[k], translated(map_, met), worked_out(factor, met.order))
            for t, k, map_, factor in self._outcome.held
        ]

    def _failing(self) -> Failure | None:
        told = self._outcome.failure
        if told is None:
            return None
        failure = Failure(*translated(told, self._met))
        return failure._replace(func=failure.found.func) if type(told[5]) is Nearest else failure

    held: Any = Late(_holding)
    failure: Any = Late(_failing)

    def covered(self) -> set[int]:
        """Collects the numbers of the functions that it holds."""
        return covered(self._outcome, self._met)


def bound(known: Outcome, met: Met) -> dict[str, tuple[Func, Map]]:
    """Gives what the holes of a try are bound to."""
    order = met.order
    if known.is_scaled:
        return {hole: (order[k], translated(map_, met)) for hole, k, map_ in known.bound}
    return {hole: (order[k], map_) for hole, k, map_ in known.bound}


def covered(known: Outcome, met: Met) -> set[int]:
    """Collects the numbers of the functions that a try held."""
    order = met.order
    return {order[k].number for k in known.covered}


PLAIN: Final = frozenset((int, float, str, bool, type(None), Func))
"""What holds neither functions of the program nor their coefficients."""


class Nearest(NamedTuple):
    """The operand that looks most like what is wanted, by all that lies below."""

    wanted: Kid
    kids: tuple[Any, ...]
    product: bool


class Place(NamedTuple):
    """A function, by its place among those that were met."""

    place: int


def translated(told: Any, met: Met) -> Any:
    """Puts the functions and coefficients that were met into what was kept of a try."""
    kind = type(told)
    if kind is Stride:
        return length(told, met.coefficients)
    if kind is Place:
        return met.order[told.place]
    if kind is Passed:
        return worked_out(told, met.order)
    if kind is Nearest:
        return most_alike(told.wanted, translated(told.kids, met), told.product)
    if kind is tuple or kind is list:
        return kind([one if type(one) in PLAIN else translated(one, met) for one in told])
    return Kid(*[translated(one, met) for one in told]) if kind is Kid else told
