"""One try of one template at one function of a program: structure, told apart by what fails first.

Structure comes first: holes are bound, digits of reductions are matched with digits of the root. What that leaves open are
equations between coefficients (`solving.py`) and the rule which digit may vary with which hole (`labelling.py`). A failure
keeps what was needed and what was found as they are; nobody pays for a sentence that nobody reads (`telling.py`).

The file is long because its one class is: every step of structure writes into the same state, which one mark undoes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from topos_core.matching.alike import is_cast_of, may_be, most_alike
from topos_core.matching.func import Form, Func, Kid, Map, composed, parts_of, used
from topos_core.matching.opening import opened, opens, regrouped, unrooted
from topos_core.matching.symbol import Coefficient, power_of, quotient
from topos_core.matching.template import Template
from topos_core.matching.tuples import new_tuple

Far = tuple[int, int, int]
"""Where a try ended: (stage, steps that held, rank of the code)."""


class Failure(NamedTuple):
    """Where a try ended: further is better, by (stage, steps that held, rank of the code)."""

    stage: int
    steps: int
    rank: int
    code: str
    expected: Any
    found: Any
    func: Func


class Equation(NamedTuple):
    """`found == expected`, to be solved once the structure has matched."""

    found: Coefficient
    expected: Coefficient
    what: str
    func: Func


class Held(NamedTuple):
    """A function of the template and what it is in the program: `func(map) == factor * template`."""

    template: Func
    func: Func
    map: Map
    factor: Coefficient


STRUCTURE, DIGITS, NUMBERS = 0, 1, 2

COEFFICIENT = "the coefficient"
"""What stands before one term of a sum, where another one has none."""


class Attempt:
    """The state of one try. `bound`, `reduced` and `alias` only grow, and shrink back where a choice was wrong.

    Attributes:
        top: The function that is matched with the template's root.
        bound: Holes, as (function, map over the digits of this try).
        equations: What must hold between numbers.
        extents: Of every digit: the root's own come first, then those of each reduction that was met.
        reduced: The labels of the reduction that met every reduced digit; it is one of them.
        alias: A reduced digit that is another digit.
        reductions: (labels, digits, function) of every reduction.
        signs: What must have which sign, and the function that says so.
        steps, compared: How many functions have matched so far, and how many were compared in all.
        choices: How many candidates there were at each choice; `script` says which comes first.
    """

    def __init__(self, template: Template, top: Func, script: Sequence[int] = ()) -> None:
        self.template = template
        self.top = top
        self.script = script
        self.bound: dict[str, tuple[Func, Map]] = {}
        self.equations: list[Equation] = []
        self.extents: list[int] = list(top.shape)
        self.root_digits = len(top.shape)
        self.reduced: dict[int, tuple[str, ...]] = {}
        self.alias: dict[int, int] = {}
        self.reductions: list[tuple[tuple[str, ...], tuple[int, ...], Func]] = []
        self.signs: list[tuple[Coefficient, float, Func]] = []
        self.held: list[Held] = []
        self.choices: list[int] = []
        self.steps = self.compared = 0
        self.stage = STRUCTURE
        self.front: Coefficient | None = None  # what stands before the whole, and
        self.fits = False  # whether its digits fit: filled in once the structure has matched
        self.failure: Failure | None = None
        self.labels: dict[str, list[int]] = {}  # filled in by `labelled`
        self.known: dict[str, float] = {}  # filled in by `solved`
        self._grown: list[tuple[dict[Any, Any], Any]] = []

    # ---- undoing

    def _mark(self) -> tuple[int, ...]:
        return (
            len(self._grown), len(self.equations), len(self.extents), len(self.reductions), len(self.signs),
            len(self.held), self.steps,
        )  # fmt: skip

    def _undo(self, mark: tuple[int, ...]) -> None:
        grown = self._grown
        while len(grown) > mark[0]:
            where, key = grown.pop()
            del where[key]
        del self.equations[mark[1] :], self.extents[mark[2] :], self.reductions[mark[3] :]
        del self.signs[mark[4] :], self.held[mark[5] :]
        self.steps = mark[6]

    def _set(self, where: dict[Any, Any], key: Any, value: Any) -> None:
        where[key] = value
        self._grown.append((where, key))

    def fail(self, code: str, expected: Any, found: Any, func: Func) -> Coefficient | None:
        """Keeps a failure if it is further than the furthest so far; always gives None, for a caller to give on."""
        if code in ("kind", "exponent") and func.kind == "apply" and func.name.startswith("cast"):
            code = "cast"
        rank = _RANKS.get(code, 3)
        best = self.failure
        wider = code == "identity" and best is not None and best.code == code and best[:2] == (self.stage, self.steps)
        if wider and best is not None and len(func.shape) > len(best.func.shape):
            best = None  # of several values that are none of what was bound, the one that is as large
        if best is None or (self.stage, self.steps, rank) > best[:3]:
            self.failure = new_tuple(Failure, (self.stage, self.steps, rank, code, expected, found, func))
        return None

    # ---- structure

    def match(self, template: Func, func: Func, map_: Map) -> Coefficient | None:
        """Matches `func` used with a map: gives the factor in `func(map) == factor * template`, or None."""
        self.compared += 1
        kind = template.kind
        factor: Coefficient | None
        if kind == "hole":
            factor = self._bind(template.name, func, map_)
            if factor is not None:
                self.steps += 1
            return factor
        if kind != func.kind:
            if func.adds_nothing:
                kid = func.kids[0]
                factor = self.match(template, kid.func, composed(kid.map, map_))
                return None if factor is None else factor * kid.weight
            return (
                self.fail("shape", "a constant", func, func)
                if kind == "one"
                else self.fail("kind", template, func, func)
            )
        if kind == "one":
            factor = 1.0
        elif kind == "apply":
            factor = self._match_apply(template, func, map_)
        elif kind == "reduce":
            factor = self._match_reduce(template, func, map_)
        else:
            written = used(func.written, map_) if func.written else []
            factor = self._assign(template, func, used(func.kids, map_), written)
        if factor is not None:
            self.steps += 1
            self.held.append(new_tuple(Held, (template, func, map_, factor)))
        return factor

    def _match_apply(self, template: Func, func: Func, map_: Map) -> Coefficient | None:
        if template.name != func.name:
            return self.fail("kind", template, func, func)
        if len(template.kids) != len(func.kids):
            return self.fail("arity", template, func, func)
        orders = [func.kids]
        if template.name in _EITHER_WAY:
            orders.append(func.kids[::-1])
        for kids in orders:
            mark = self._mark()
            for wanted, kid in zip(template.kids, kids, strict=True):
                factor = self.match(wanted.func, kid.func, composed(kid.map, map_))
                if factor is None:
                    break
                self.equate(kid.weight * factor, wanted.weight, _inside(template.name), func)
            else:
                return 1.0
            self._undo(mark)
        return None

    def _match_reduce(self, template: Func, func: Func, map_: Map) -> Coefficient | None:
        pulled = self.template.pulled.get(template.number, ())
        if template.name != func.name and not ({template.name, func.name} == {"max", "min"} and pulled):
            return self.fail("kind", template, func, func)
        labels = self.template.labels
        label = tuple(sorted([labels[extent] for extent in template.reduced]))
        fresh = tuple(range(len(self.extents), len(self.extents) + len(func.reduced)))
        self.extents += func.reduced
        for digit in fresh:
            self._set(self.reduced, digit, label)
        self.reductions.append((label, fresh, func))
        outer = (*map_, *fresh)
        kids = used(func.kids, outer)
        own = self._assign(template, func, kids)
        if own is not None:
            sign = 1.0 if template.name == func.name else -1.0  # the greatest of -x is minus the least of x
            self.signs += [(quotient(one, own), sign, func) for one in pulled]
        return own

    def _assign(self, template: Func, func: Func, kids: list[Kid], written: Sequence[Kid] = ()) -> Coefficient | None:
        """Gives each operand of the template one of the program's: flattened, then with shared ones opened, then as written."""
        kind = "product" if template.kind == "reduce" else func.kind
        constant = func.constant
        flat = self.template.flat and kind == "product"
        if flat:
            kids = unrooted(kids)
        nested = []
        for k, kid in enumerate(kids):
            if kid[0].kind == kind and opens(kind, kid):
                nested.append(k)
        if not nested and not written:
            return self._assign_once(template, func, kids, constant)
        tries: list[tuple[list[Kid], Coefficient | None]] = [(kids, constant)]
        tries += [
            (operands, None) for operands in regrouped(kind, written)
        ]  # a mask that is a sum of its own is one operand
        if len(nested) > 1:  # one at a time first: the x of `x * r` may itself be a product
            tries += [(opened(kind, kids, (k,)), constant) for k in nested[:3]]
        wanted = len(template.kids)
        for operands, added in tries:
            if flat:
                operands = unrooted(operands)
            if not wanted <= len(operands) <= wanted + 1:
                continue
            mark = self._mark()
            factor = self._assign_once(template, func, operands, added)
            if factor is not None:
                return factor
            self._undo(mark)
        if not nested and wanted <= len(kids) <= wanted + 1:
            return None  # tried first
        apart = opened(kind, kids, nested)
        return self._assign_once(template, func, unrooted(apart) if flat else apart, constant)

    def _assign_once(
        self, template: Func, func: Func, kids: list[Kid], constant: Coefficient | None
    ) -> Coefficient | None:
        wanted = template.constant
        if len(kids) != len(template.kids):
            scalar = template.kind == "sum" and wanted is not None and constant is None
            if not (scalar and len(kids) == len(template.kids) + 1):
                code = "extra" if len(kids) > len(template.kids) else "missing"
                return self.fail(code, template, kids, func)
        elif template.kind == "sum" and (wanted is None) != (constant is None) and constant != 0:
            return self.fail("added", wanted, constant, func)
        order = self._order(template)
        if template.kind != "sum":
            picked = self._pick_factors(order, kids, 1.0, func)
            return None if picked is None else picked
        terms = self._pick_terms(order, kids, (), func)
        if terms is None:
            return None
        pairs, left = terms
        base = next((pair for pair in pairs if pair[1] == 1), pairs[0])
        factor = base[0] if base[1] == 1 else base[0] / base[1]
        for pair in pairs:
            if pair is not base:
                wanted_ratio = pair[1] if base[1] == 1 else pair[1] / base[1]
                self.equate(quotient(pair[0], base[0]), wanted_ratio, COEFFICIENT, func)
        if wanted is None:
            return factor
        if (
            constant is None
        ):  # what is one number at run time is not known to be the one that is meant, nor whether it is small
            return self.fail("added", wanted, left[0].func if left else None, func)
        self.equate(quotient(constant, factor), wanted, "the added constant", func)
        return factor

    def _order(self, template: Func) -> Sequence[Kid]:
        """Gives the operands of a template's function, the most specific first: holes last, among them the bound first."""
        order = self.template.orders[template.number]
        bound = self.bound
        if len(order) < 2 or not bound or order[-2].func.kind != "hole":
            return order
        first = next(k for k, kid in enumerate(order) if kid.func.kind == "hole")
        known = [kid for kid in order[first:] if kid.func.name in bound]
        if not known or len(known) == len(order) - first:
            return order
        return [*order[:first], *known, *(kid for kid in order[first:] if kid.func.name not in bound)]

    def _pick_factors(
        self, order: Sequence[Kid], kids: list[Kid], factor: Coefficient, func: Func
    ) -> Coefficient | None:
        if not order:
            return factor
        wanted, rest = order[0], order[1:]
        candidates = self._candidates(wanted, kids, True)
        several = len(candidates) > 1
        for k in self._ordered(candidates, wanted, kids, True):
            kid = kids[k]
            mark = self._mark() if several else ()
            own = self.match(wanted.func, kid.func, kid.map)
            if own is not None:
                more = factor if type(own) is float and own == 1.0 else factor * power_of(own, kid.weight)
                result = self._pick_factors(rest, [*kids[:k], *kids[k + 1 :]], more, func)
                if result is not None:
                    return result
            if several:
                self._undo(mark)
        return None

    def _pick_terms(
        self, order: Sequence[Kid], kids: list[Kid], pairs: tuple[tuple[Coefficient, Coefficient], ...], func: Func
    ) -> tuple[tuple[tuple[Coefficient, Coefficient], ...], list[Kid]] | None:
        if not order:
            return pairs, kids
        wanted, rest = order[0], order[1:]
        candidates = self._candidates(wanted, kids, False)
        several = len(candidates) > 1
        for k in self._ordered(candidates, wanted, kids, False):
            kid = kids[k]
            mark = self._mark() if several else ()
            own = self.match(wanted.func, kid.func, kid.map)
            if own is not None:
                pair = (kid.weight * own, wanted.weight)
                result = self._pick_terms(rest, [*kids[:k], *kids[k + 1 :]], (*pairs, pair), func)
                if result is not None:
                    return result
            if several:
                self._undo(mark)
        return None

    def _candidates(self, wanted: Kid, kids: list[Kid], product: bool) -> list[int]:
        """Lists the operands that may be what is wanted, by their heads; in a product to the same power."""
        func, _, weight = wanted
        anything = func.kind == "hole"
        found = []
        for k, kid in enumerate(kids):
            if (not product or kid[2] == weight) and (anything or may_be(func, kid[0])):
                found.append(k)
        return found

    def _ordered(self, candidates: list[int], wanted: Kid, kids: list[Kid], product: bool) -> list[int]:
        """Gives the candidates in the order in which this try takes them; a replay begins with another one."""
        if not candidates:
            self._no_candidate(wanted, kids, product)
        if len(candidates) < 2:
            return candidates
        at = len(self.choices)
        first = self.script[at] if at < len(self.script) else 0
        self.choices.append(len(candidates))
        return [*candidates[first:], *candidates[:first]]

    def _no_candidate(self, wanted: Kid, kids: list[Kid], product: bool) -> None:
        cast = next((kid for kid in kids if is_cast_of(wanted, kid)), None)
        if cast is not None:
            self.fail("kind", wanted, cast, cast.func)
            return
        if (product and self._has_other_power(wanted, kids)) or not kids:
            return
        near = most_alike(wanted, kids, product)
        self.fail("kind", wanted, near, near.func)

    def _has_other_power(self, wanted: Kid, kids: list[Kid]) -> bool:
        """Fails where one of the operands is what is wanted to another power."""
        func, _, power = wanted
        looked_alike = [kid for kid in kids if kid[2] != power and may_be(func, kid[0])]
        for kid in looked_alike[:_POWERS]:
            mark, choices, failure = self._mark(), len(self.choices), self.failure
            fits = self.match(wanted.func, kid.func, kid.map) is not None
            self.failure = failure
            if fits:
                self.fail("exponent", wanted, kid, kid.func)
            self._undo(mark)
            del self.choices[choices:]
            if fits:
                return True
        return False

    def _bind(self, hole: str, func: Func, map_: Map) -> Coefficient | None:
        known = self.bound.get(hole)
        if known is None:
            self._set(self.bound, hole, (func, map_))
            return 1.0
        if known[0] is not func:
            return self.fail("identity", (hole, known[0]), func, func)
        if known[1] == map_:
            return 1.0
        mark = self._mark()
        for a, b in zip(known[1], map_, strict=True):
            if not self.unify(a, b):
                self._undo(mark)
                self._elsewhere(hole, known, func, map_)
                return None
        return 1.0

    def _elsewhere(self, hole: str, known: tuple[Func, Map], func: Func, map_: Map) -> None:
        """Fails where a value is read at other places: its other half is another value, less of it is told with its axis."""
        mark, shifted, cut, mixed = self._mark(), False, list[int](), list[int]()
        for k, (a, b) in enumerate(zip(known[1], map_, strict=True)):
            if self.unify(a, b):
                continue
            left, right = parts_of(a)[1], parts_of(b)[1]
            if self.unify((0, left), (0, right)):
                shifted = True
            elif len(left) == len(right) == 1 and not self._is_one_extent(left[0][0], right[0][0]):
                cut.append(k)
            else:
                mixed.append(k)
        self._undo(mark)
        if shifted and not cut and not mixed:
            self.fail("identity", (hole, known[0]), func, func)
        else:
            self.fail("axis-mixed", (hole, known), (func, tuple(mixed), tuple(cut)), func)

    # ---- digits

    def root_of(self, digit: int) -> int:
        """Follows a digit to the one that it is."""
        while digit in self.alias:
            digit = self.alias[digit]
        return digit

    def unify(self, a: Form, b: Form) -> bool:
        """Makes two forms one, if reduced digits may stand for others; a root's digit stands for itself alone."""
        if type(a) is int and type(b) is int:
            return self._same(a, b)
        first, left = (0, ((a, 1),)) if isinstance(a, int) else a
        second, right = (0, ((b, 1),)) if isinstance(b, int) else b
        if first != second or len(left) != len(right):
            return False
        for (d, c), (e, k) in zip(sorted(left, key=_by_weight), sorted(right, key=_by_weight), strict=True):
            if c != k or not self._same(d, e):
                return False
        return True

    def _same(self, d: int, e: int) -> bool:
        """Makes two digits one."""
        alias = self.alias
        while d in alias:
            d = alias[d]
        while e in alias:
            e = alias[e]
        if d == e:
            return True
        if not self._is_one_extent(d, e):
            return False
        if d in self.reduced and (e not in self.reduced or e < d):
            self._set(alias, d, e)
        elif e in self.reduced:
            self._set(alias, e, d)
        else:
            return False
        return True

    def _is_one_extent(self, d: int, e: int) -> bool:
        return self.extents[d] == self.extents[e]

    @property
    def far(self) -> Far | None:
        """Says how far the furthest failure came."""
        return None if self.failure is None else self.failure[:3]

    @property
    def code(self) -> str | None:
        """Gives the kind of the furthest failure."""
        return None if self.failure is None else self.failure.code

    def covered(self) -> set[int]:
        """Collects the numbers of the functions that it holds."""
        return {held.func.number for held in self.held}

    def equate(self, found: Coefficient, expected: Coefficient, what: str, func: Func) -> None:
        """Keeps an equation for later; equal numbers are no equation."""
        if type(found) is float and type(expected) is float and found == expected:
            return
        self.equations.append(new_tuple(Equation, (found, expected, what, func)))


@cache
def _inside(name: str) -> str:
    return f"the factor inside {name}"


_POWERS = 3
"""Operands to another power that are looked into."""

_EITHER_WAY = frozenset(("maximum", "minimum", "compare:eq", "compare:ne"))
_RANKS = {"missing": 0, "kind": 1, "extra": 1}


def _by_weight(term: tuple[int, int]) -> int:
    return term[1]
