"""A try that keeps what it reads, at stand-ins for functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from topos_core.matching.attempt import DIGITS, Attempt
from topos_core.matching.func import Func, Kid, identity_map, is_cast
from topos_core.matching.labelling import labelled
from topos_core.matching.late import Late
from topos_core.matching.met import EXACT, Locals, Reach, restrided
from topos_core.matching.passed import Passed, Stride, Trail, is_passed_on
from topos_core.matching.recalled import PLAIN, Nearest, Outcome, Place, Script
from topos_core.matching.template import Template
from topos_core.matching.tuples import new_tuple


def structured(attempt: Attempt) -> bool:
    """Says whether the structure of a try matches and its digits fit."""
    factor = attempt.match(attempt.template.root, attempt.top, identity_map(attempt.top))
    attempt.front = factor
    if factor is None:
        return False
    attempt.stage = DIGITS
    attempt.fits = labelled(attempt)
    return attempt.fits


def fits_anchor(attempt: Attempt) -> bool:
    """Says whether a try's function is the anchor of its template."""
    if attempt.match(attempt.template.anchor, attempt.top, identity_map(attempt.top)) is not None:
        return True
    # the right structure along another axis is still the anchor: the near miss that is most worth telling
    return attempt.failure is not None and attempt.failure.code in ("axis-mixed", "cast")


class Tracing(Attempt):
    """A try that keeps what it reads."""

    def __init__(self, locals_: Locals, func: Func, template: Template, script: Script | None) -> None:
        self._locals = locals_
        self._reach: Reach | None = None
        self.met = locals_.first(func).met
        self.shadows: dict[Func, Shadow] = {}
        self.trail = Trail()
        self._anchor = script is None
        top: Any = self._shadow(func)
        super().__init__(template, top, script or ())

    def outcome(self) -> Outcome | None:
        """Makes the try; None where what it does cannot be told from readings."""
        fits = fits_anchor(self) if self._anchor else structured(self)
        if not self.trail.is_kept:
            return None
        failure = None if self.failure is None else kept(tuple(self.failure))
        if self._anchor:
            return Outcome(fits, self.stage, failure, self.choices, self.compared, self.steps)
        held = tuple([(one.template, self._place(one.func), one.map, one.factor) for one in self.held])
        bound = tuple([(hole, self._place(func), map_) for hole, (func, map_) in self.bound.items()])
        return Outcome(
            fits, self.stage, failure, self.choices, self.compared, self.steps, self.front, bound,
            any(type(one) is not int for _, _, map_ in bound for one in map_),
            tuple([(label, digits, self._place(func)) for label, digits, func in self.reductions]),
            tuple([self._place(func) for _, _, func in self.reductions]),
            self.reduced, self.alias, self.labels,
            tuple([(one.found, one.expected, one.what, self._place(one.func)) for one in self.equations]),
            tuple([(one, sign, self._place(func)) for one, sign, func in self.signs]),
            held, tuple({place for _, place, _, _ in held}),
        )  # fmt: skip

    def read(self, shadow: Shadow) -> None:
        """Reads a function for a try."""
        place, reach = shadow.place, self._reach
        func = self.met.order[place]
        if reach is None:
            reach = self._locals.first(func)
        else:
            reach = reach.next.get(place) or self._locals.after(reach, place)
        self._reach, self.met = reach, reach.met
        self.trail.readings.append((place, reach.reading))
        shadow.kids = self._kids(func, func.kids, "kid", shadow.place)
        shadow.written = self._kids(func, func.written, "written", shadow.place) if func.written else ()
        shadow.shape, shadow.reduced = func.shape, func.reduced
        passed = func.constant is not None and is_passed_on(func.constant)
        shadow.constant = Passed("constant", shadow.place) if passed else func.constant

    def _kids(self, reader: Func, kids: Sequence[Kid], which: str, place: int) -> tuple[Kid, ...]:
        exact, strides = reader.kind in EXACT, reader.strides
        out = []
        for k, (func, map_, weight) in enumerate(kids):
            told = weight if exact or not is_passed_on(weight) else Passed(which, place, k)
            shown: Any = self.shadows.get(func) or self._shadow(func)
            out.append(new_tuple(Kid, (shown, restrided(map_, self._stride) if strides else map_, told)))
        return tuple(out)

    def _stride(self, coefficient: int) -> Stride:
        stride = Stride(coefficient)
        stride.made, stride.trail = self.met.coefficients.index(coefficient), self.trail
        return stride

    def _shadow(self, func: Func) -> Shadow:
        shadow = self.shadows.get(func)
        if shadow is None:
            shadow = self.shadows[func] = Shadow(func, self.met.places[func], self)
        return shadow

    def _place(self, func: Any) -> int:
        place: int = func.place
        return place

    def _is_one_extent(self, d: int, e: int) -> bool:
        equal = super()._is_one_extent(d, e)
        self.trail.readings.append(((self._origin(d), self._origin(e)), equal))
        return equal

    def _origin(self, digit: int) -> tuple[int, int]:
        """Gives the place of the function that brought a digit, and which of its digits it is."""
        if digit < self.root_digits:
            return 0, digit
        func, first = next((func, digits[0]) for _, digits, func in self.reductions if digit in digits)
        place = self._place(func)
        return place, digit - first + (self.root_digits if place == 0 else 0)

    def _no_candidate(self, wanted: Kid, kids: list[Kid], product: bool) -> None:
        for func, _, _ in kids:
            if func.adds_nothing or is_cast(func.kind, func.name):
                self.trail.is_kept = False  # which operand is told is a question of all that lies below
                return
        if not (product and self._has_other_power(wanted, kids)) and kids:
            nearest: Any = Nearest(wanted, tuple(kids), product)
            self.fail("kind", wanted, nearest, kids[0].func)


def _read(name: str) -> Late:
    """Gives an attribute of a shadow that is not read yet: all of them are, where one is asked for."""

    def read(shadow: Shadow) -> Any:
        shadow.tracing.read(shadow)
        return shadow.__dict__[name]

    return Late(read)


class Shadow:
    """A function as a try sees it while its readings are kept: what lies below its head is read when it is asked for."""

    def __init__(self, func: Func, place: int, tracing: Tracing) -> None:
        self.kind, self.name, self.adds_nothing, self.heads = func.kind, func.name, func.adds_nothing, func.heads
        self.place, self.tracing = place, tracing

    kids: Any = _read("kids")
    written: Any = _read("written")
    shape: Any = _read("shape")
    reduced: Any = _read("reduced")
    constant: Any = _read("constant")


def kept(told: Any) -> Any:
    """Turns the functions of a try into their places."""
    kind = type(told)
    if kind is Shadow:
        return new_tuple(Place, (told.place,))
    if kind is tuple or kind is list:
        return kind([one if type(one) in PLAIN else kept(one) for one in told])
    if kind is Nearest:
        return Nearest(told.wanted, kept(told.kids), told.product)
    return new_tuple(Kid, (kept(told[0]), *told[1:])) if kind is Kid else told
