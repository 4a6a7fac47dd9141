"""One pass of all terms over all functions of a tape. No policy; the work per op is bounded.

Each op costs a look-up by the kind of its function, then only templates whose heads all occur near by are tried. An anchor
is tried on its own, once per function and only below a failure, which is a near miss only above one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from topos_core.matching.attempt import NUMBERS, STRUCTURE, Attempt, Failure, Far
from topos_core.matching.binding import Found, found
from topos_core.matching.core import WIDEST, Keys
from topos_core.matching.declared import Term
from topos_core.matching.func import DEPTH, LEVEL, Func, heads_within
from topos_core.matching.recalled import Refusal
from topos_core.matching.remembered import Memory
from topos_core.matching.solving import solved, solved_as_written
from topos_core.matching.template import Template, templates

REPLAYS: Final = 6
"""Tries of one template at one value: structure is settled before digits and numbers, which may ask for another order."""

MANY: Final = 5000
"""Ops of a tape of which so many functions look alike that a try is kept when it is made first."""

_FAR: Final = LEVEL * (DEPTH - 1)

_NAMED: Final[Far] = (NUMBERS + 1, 1 << 20, 0)
"""A look-alike that matched tells more than any failure."""

SLACK: Final = 2
"""Levels that a spelling may put between a root and an anchor beside the template's own."""


@dataclass(frozen=True, slots=True, eq=False)
class Named:
    """A pattern's term under its identifier."""

    identifier: str
    term: Term


@dataclass(slots=True, eq=False)
class Missed:
    """A template that failed above an anchor."""

    identifier: str
    template: Template
    root: int
    far: Far
    attempt: Attempt | Refusal

    @property
    def code(self) -> str | None:
        """Gives the kind of difference."""
        lookalike = self.template.lookalike
        return self.attempt.code if lookalike is None else lookalike.code

    @property
    def failure(self) -> Failure:
        """Gives what was needed and what was found; of a look-alike that there is one."""
        lookalike = self.template.lookalike
        if lookalike is not None:
            return Failure(*self.far, lookalike.code, None, None, self.attempt.top)
        failure = self.attempt.failure
        assert failure is not None  # else nothing was missed
        return failure

    @property
    def held(self) -> int:
        """Counts the functions that matched before the failure; of a look-alike every time that one did."""
        return len(self.attempt.covered() if self.template.lookalike is None else self.attempt.held)


@dataclass(slots=True)
class Recognised:
    """What one pass found.

    Args:
        found: Matches, by root.
        nearer: Those that stand in for some of them, bound behind the factors that raw holes do without.
        missed: Failures above anchors, by root.
        anchors: Where patterns' anchors lie.
        tries: How many templates were tried.
        compared: How many functions of templates were compared with one of the program.
        made: How many tries were made, rather than remembered.
    """

    anchors: Anchors
    found: list[Found] = field(default_factory=list)
    nearer: list[Found] = field(default_factory=list)
    missed: list[Missed] = field(default_factory=list)
    tries: int = 0
    compared: int = 0
    made: int = 0


class Anchors:
    """Which functions are the anchor of a pattern, asked for only where a try has failed; each is tried once."""

    def __init__(self, memory: Memory) -> None:
        self.tries = self.compared = 0
        self._memory = memory
        self._templates: dict[str, list[Template]] = {}
        self._bits: dict[str, int] = {}  # the heads of each pattern's anchors
        self._known: dict[tuple[str, int], bool] = {}

    def add(self, name: str, template: Template) -> None:
        """Adds the anchor of one of a pattern's forms."""
        self._templates.setdefault(name, []).append(template)
        self._bits[name] = self._bits.get(name, 0) | heads_within(template.anchor, 0)

    def below(self, name: str, func: Func, depth: int) -> list[int]:
        """Lists a pattern's anchors within a depth below a function, itself included; none below another one."""
        templates = self._templates.get(name)
        if templates is None:
            return []
        bits = self._bits[name]
        out: list[int] = []
        level, seen = [func], {func}
        for left in range(depth, -1, -1):
            following: list[Func] = []
            below = bits << LEVEL * ((left if left < DEPTH else DEPTH) - 1) if left else 0
            for one in level:
                if one.heads & bits and self._is(name, templates, one):
                    out.append(one.number)
                    continue
                if not below:
                    continue
                for kid, _, _ in one.kids:
                    inner = kid.behind or kid
                    if inner.heads & below and inner not in seen:
                        seen.add(inner)
                        following.append(inner)
            if not following:
                break
            level = following
        return out

    def _is(self, name: str, templates: Sequence[Template], func: Func) -> bool:
        key = (name, func.number)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = any(self._fits(template, func) for template in templates)
        return known

    def _fits(self, template: Template, func: Func) -> bool:
        anchor = template.anchor
        if (anchor.kind, anchor.name) != (func.kind, func.name) or template.needs & ~heads_within(func):
            return False
        self.tries += 1
        fits, compared = self._memory.is_anchor(template, func)
        self.compared += compared
        return fits


class _Entry:
    """A template under its pattern's name, and what it needs of a function that may be its root.

    `is_silent` says that no template of the pattern tells a wrong structure.
    """

    __slots__ = ("family", "is_silent", "least", "levels", "most", "name", "needs", "shaped", "template")

    def __init__(self, name: str, template: Template, is_silent: bool) -> None:
        self.name, self.template, self.is_silent = name, template, is_silent
        self.family = template.term.family or name
        self.needs, self.levels, self.shaped = template.needs, template.levels, bool(template.root.shape)
        self.least, self.most = template.operands


class Index:
    """The templates of many terms by the kind of function at which they root, their anchors, and what their tries came to."""

    def __init__(self, terms: Sequence[Named]) -> None:
        self.memory = Memory()
        self.anchored: list[tuple[str, Template]] = []
        self._roots: dict[tuple[str, str], list[_Entry]] = {}
        self._candidates: dict[Any, tuple[_Entry, ...]] = {}
        for named in terms:
            seen: set[Any] = set()
            is_silent = all(template.silent and template.lookalike is None for template in templates(named.term))
            for template in templates(named.term):
                entry = _Entry(named.identifier, template, is_silent)
                self._roots.setdefault((template.root.kind, template.root.name), []).append(entry)
                told = template.anchors and template.lookalike is None and not template.silent
                if told and template.form not in seen:
                    seen.add(template.form)  # the fullest variant of a form comes first
                    if template.anchored not in seen:  # forms that differ above their anchor alone ask once
                        seen.add(template.anchored)
                        self.anchored.append((named.identifier, template))

    def candidates(self, func: Func) -> tuple[_Entry, ...]:
        """Gives the templates that a function may be, by what occurs near below it; the same for all that look alike."""
        width = func.width if func.width <= WIDEST else WIDEST + 1
        key = (func.kind, func.name, func.reach, func.heads >> _FAR, len(func.kids), width, not func.shape)
        known = self._candidates.get(key)
        if known is None:
            known = self._candidates[key] = self._among(self._roots.get((func.kind, func.name), ()), func)
        return known

    def _among(self, entries: Sequence[_Entry], func: Func) -> tuple[_Entry, ...]:
        """Chooses the templates of which all that they need, level by level, may be found below a function."""
        within, reach, width, count, shaped = heads_within(func), func.reach, func.width, len(func.kids), func.shape
        return tuple(
            [
                entry
                for entry in entries
                if not entry.needs & ~within and not entry.levels & ~reach
                if entry.least <= width and count <= entry.most and (entry.shaped or not shaped)
            ]
        )


def recognise(keys: Keys, index: Index, *, remember: bool = True) -> Recognised:
    """Tries every template at every live value that computes something.

    Args:
        keys: The keys of the tape.
        index: The templates.
        remember: Whether functions that look alike are tried once; what is found is the same either way.
    """
    memory = index.memory if remember else Memory(off=True)
    memory.trim()
    memory.at_once = len(keys.tape.ops) >= MANY
    before = memory.made
    anchors = Anchors(memory)
    for name, template in index.anchored:
        anchors.add(name, template)
    result = Recognised(anchors)
    matched: dict[tuple[Any, int], float] = {}  # the factor at which a function matched: -x of a matched x is none
    for value in range(len(keys.tape.ops)):
        func = keys.funcs[value]
        if not func.kids or func.kind == "window" or keys.is_movement(value) or not keys.is_live(value):
            continue
        entries = index.candidates(func)
        if entries:
            _at(keys, value, func, entries, matched, memory, result)
    result.tries += anchors.tries
    result.compared += anchors.compared
    result.made = memory.made - before
    return result


def _at(
    keys: Keys,
    value: int,
    func: Func,
    entries: Sequence[_Entry],
    matched: dict[tuple[Any, int], float],
    memory: Memory,
    result: Recognised,
) -> None:
    coefficient = keys.coefficients[value]
    hits: set[str] = set()  # of names and of families
    failed: list[tuple[_Entry, Attempt | Refusal]] = []
    for entry in entries:
        template = entry.template
        if entry.family in hits:
            continue
        before = matched.get((template.form, func.number))
        if before is not None and before != coefficient and not template.is_scaled:
            continue
        attempt, hit = _replayed(keys, value, func, template, memory, result)
        if hit:
            assert isinstance(attempt, Attempt)
            if template.lookalike is not None:
                if template.term.worth is None or template.term.worth(keys, attempt):
                    result.missed.append(Missed(entry.name, template, value, _NAMED, attempt))
                continue
            own = template.term.own
            if own is not None and not own(keys, attempt):
                continue
            match = _settled(found(entry.name, keys, template, value, attempt))
            nearer = _nearer(entry.name, keys, value, attempt)
            if match is not None and nearer is not None and nearer.bindings != match.bindings:
                result.nearer.append(nearer)
            match = match or nearer  # of `x * s` that is read in three places no x may be met below
            if match is not None:
                hits |= {entry.name, entry.family}
                result.found.append(match)
                if isinstance(coefficient, float):
                    matched[template.form, func.number] = matched[entry.name, func.number] = coefficient
            continue
        if attempt.far is None or template.lookalike is not None or entry.name in hits:
            continue
        if entry.is_silent and attempt.stage == STRUCTURE:
            continue  # all that could be told is which axis is wrong
        failed.append((entry, attempt))
    if failed:
        tries = [one for one in failed if one[0].name not in hits]  # a form that matched says it all
        result.missed += _furthest(keys, value, func, tries, matched, result)


def _nearer(name: str, keys: Keys, root: int, attempt: Attempt) -> Found | None:
    """Gives a match with its raw holes bound as the program scales them, where it does."""
    written = solved_as_written(attempt, keys, root)
    return None if written is None else _settled(found(name, keys, attempt.template, root, written))


def _furthest(
    keys: Keys,
    value: int,
    func: Func,
    tries: Sequence[tuple[_Entry, Attempt | Refusal]],
    matched: dict[tuple[Any, int], float],
    result: Recognised,
) -> list[Missed]:
    """Gives of each pattern that failed the try that came furthest, where it is worth telling."""
    near: dict[str, Missed] = {}
    above: dict[tuple[str, int], bool] = {}
    for entry, attempt in tries:
        far = attempt.far
        best = near.get(entry.name)
        if far is None or (best is not None and far <= best.far):
            continue
        worth = entry.template.term.worth
        if (worth is None or worth(keys, attempt)) and _is_near(entry, func, matched, result, above):
            near[entry.name] = Missed(entry.name, entry.template, value, far, attempt)
    return list(near.values())


def _settled(match: Found | None) -> Found | None:
    """Gives a match with its pattern's facts; None where it is another pattern's business."""
    if match is None:
        return None
    term = match.template.term
    settled: Found | None = match if term.settled is None else term.settled(match)
    if settled is None:
        return None
    settled.facts = term.facts(settled)
    return None if settled.facts is None else settled


def _is_near(
    entry: _Entry,
    func: Func,
    matched: dict[tuple[Any, int], float],
    result: Recognised,
    above: dict[tuple[str, int], bool],
) -> bool:
    """Says whether a failure is worth telling: above the pattern's anchor, or right above a full match of it.

    `above` keeps what was said of this function.
    """
    depth = min(DEPTH, entry.template.depth + SLACK)
    known = above.get((entry.name, depth))
    if known is None:
        known = any((entry.name, kid.func.number) in matched for kid in func.kids)
        known = above[entry.name, depth] = known or bool(result.anchors.below(entry.name, func, depth))
    return known


def _replayed(
    keys: Keys, value: int, func: Func, template: Template, memory: Memory, result: Recognised
) -> tuple[Attempt | Refusal, bool]:
    """Tries a template; where digits or numbers fail and operands could be chosen otherwise, tries other orders."""
    script: tuple[int, ...] = ()
    scripts: list[tuple[int, ...]] = []
    first: Attempt | Refusal | None = None
    for _ in range(REPLAYS):
        attempt = memory.tried(template, func, script)
        result.tries += 1
        result.compared += attempt.compared
        if isinstance(attempt, Attempt) and _holds(keys, value, func, attempt):
            return attempt, True
        if first is None or (attempt.far is not None and (first.far is None or attempt.far > first.far)):
            first = attempt
        if attempt.stage > STRUCTURE:
            for at in range(len(script), len(attempt.choices)):
                for k in range(1, attempt.choices[at]):
                    scripts.append((*script, *(0 for _ in range(at - len(script))), k))
        if not scripts:
            break
        script = scripts.pop(0)
    assert first is not None  # the empty script is always tried
    return first, False


def _holds(keys: Keys, value: int, func: Func, attempt: Attempt) -> bool:
    """Says whether the numbers hold of a try whose structure and digits fit."""
    if attempt.front is None or not attempt.fits:
        return False
    attempt.equate(keys.coefficients[value] * attempt.front, attempt.template.factor, "the factor in front", func)
    attempt.stage = NUMBERS
    return solved(attempt, keys, value)
