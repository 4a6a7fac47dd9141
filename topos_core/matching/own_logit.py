"""A loss as the logarithm of the sum of powers less the logit of the example's own class: `logsumexp(x) - x[class]`.

The own logit is chosen by a comparison with class numbers, which keys write out; by a product with rows that are one at the
class and zero elsewhere, which have to be known to be that; or it is looked up in its row, which is a value of its own to keys:
what it was looked up in is then read off the tape (`class_lookup`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from topos_core.matching.binding import Found
from topos_core.matching.class_lookup import Lookup, is_count, lookups
from topos_core.matching.declared import Form, mark
from topos_core.matching.func import Func, composed, digits_of, is_cast
from topos_core.matching.rows import Rows, rows_of
from topos_core.matching.solving import close

if TYPE_CHECKING:
    from topos_core.matching.context import Context

CLOSE: Final = 3e-7
"""How far two factors may lie apart that are one."""

SHIFTED: Final = "shifted"
"""The name of the logits less the maximum, where the own one is taken from these."""


_PICKS: Final = {
    "compared": frozenset(("target", "classes")), "rows": frozenset(("rows",)), "looked up": frozenset(("own",)),
}  # fmt: skip


class Spelling(NamedTuple):
    """One way to write the loss.

    Args:
        shift: Whether the maximum is subtracted first: `yes`, `no`, or `finite` where it is, if it is finite.
        kept: Whether the own logit is one of those that the maximum was subtracted from, so that nothing is added again.
        pick: How the own logit is chosen: `compared`, multiplied with `rows`, or `looked up`.
        summed: Whether the losses are added up, with any weight.
    """

    shift: str
    kept: bool
    pick: str
    summed: bool

    def written(
        self, logits: Any, weight: Any = 1.0, own: Any = None, rows: Any = None, target: Any = None, classes: Any = None
    ) -> Any:
        """Gives the losses of `logits: [k, n]`.

        Args:
            weight: What the sum of losses is multiplied by.
            own: f[k], where it is looked up.
            rows: f[k, n], one at the class and zero elsewhere.
            target: i[k], class numbers to compare with `classes: i[n]`.
        """
        base = logits
        most: Any = logits.max(-1, keepdims=True) if self.shift != "no" else 0.0
        if self.shift == "finite":
            most = np.where(np.isfinite(most), most, 0.0)
        if self.shift != "no":
            base = mark(logits - most, SHIFTED) if self.kept else logits - most
        total = np.log(np.exp(base).sum(-1))
        if self.kept:
            logits = base
        elif self.shift != "no":
            total = total + most[:, 0]
        if self.pick == "compared":
            own = np.where(target[:, None] == classes, logits, 0.0).sum(-1)
        elif self.pick == "rows":
            own = (rows * logits).sum(-1)
        return (total - own).sum() * weight if self.summed else total - own


def _spellings() -> Iterator[tuple[Callable[..., Any], Spelling]]:
    shifts = (("yes", False), ("finite", False), ("yes", True), ("finite", True), ("no", False))
    for pick, (shift, kept), summed in product(_PICKS, shifts, (False, True)):
        spelling = Spelling(shift, kept, pick, summed)
        yield _function(spelling), spelling


def _function(spelling: Spelling) -> Callable[..., Any]:
    def own_logit(**given: Any) -> Any:
        return spelling.written(**{name: value for name, value in given.items() if value is not None})

    return own_logit


SPELLINGS: Final = dict(_spellings())
"""Every way by the function that writes it."""


def forms(dtypes: Mapping[str, str]) -> tuple[Form, ...]:
    """Gives a form for each way, over the holes `logits: k n`, `target: k`, `classes: n`, `own: k` and `rows: k n`."""
    holes = frozenset(("logs", "target", "classes", "logits", "own", "rows"))
    out = []
    for function, (_, _, pick, summed) in SPELLINGS.items():
        required = _PICKS[pick] | {"logits"}
        constants = ("weight",) if summed else ()
        out.append(Form(function, required, holes - required, constants, dtypes, silent=True))
    return tuple(out)


def own_lookup(context: Context, found: Found) -> Lookup | None:
    """Gives the lookup that a match's own logit is, where it is one of these very logits, each in its row; else None."""
    lookup = context.once(lookups).get(found.bindings["own"])
    if lookup is None or lookup.summed or lookup.logged:
        return None
    rows, classes = _rows_of(found, lookup), found.attempt.labels["n"]
    if rows is None or len(classes) != 1:
        return None
    *examples, last = [part for row in rows for part in row if part.extent != 1]
    if len(rows[-1]) > 1 or last.digit != classes[0]:
        return None
    return lookup if examples == [part for row in found.rows["own"] for part in row if part.extent != 1] else None


def _rows_of(found: Found, lookup: Lookup) -> Rows | None:
    """Tells how what was looked up in lies, where it is the logits that the own one has to be of."""
    base, bound = lookup.base, found.bindings["logits"]
    if SPELLINGS[found.template.form].kept:
        return found.named_rows(base) if lookup.factor == 1 and base in found.named[SHIFTED] else None
    own, all_ = found.keys.coefficients[base], found.keys.coefficients[bound]
    if not isinstance(own, float) or not isinstance(all_, float) or not close(own * lookup.factor, all_, CLOSE):
        return None
    return found.rows_of(base, "logits")


def by_class_number(found: Found) -> Found | None:
    """Gives the same match with the class numbers bound that its rows compare with a count; None where they are no such rows."""
    attempt, keys = found.attempt, found.keys
    func, map_ = attempt.bound["rows"]
    while is_cast(func.kind, func.name):
        (kid,) = func.kids
        func, map_ = kid.func, composed(kid.map, map_)
    if func.name != "compare:eq":
        return None
    classes = attempt.labels["n"]
    for number, count in (func.kids, func.kids[::-1]):
        if count.weight != 1 or number.weight != 1 or not _counts(found, count.func):
            continue
        across = composed(number.map, map_)
        along = [attempt.root_of(digit) for digit in digits_of(composed(count.map, map_))]
        if along != classes or any(attempt.root_of(digit) in classes for digit in digits_of(across)):
            continue
        for value in sorted(keys.made.get(number.func.number, ()), key=lambda value: (keys.moves[value], value)):
            rows = rows_of(keys, attempt, value, number.func, across)
            if rows is not None:
                return replace(
                    found, bindings={**found.bindings, "target": value}, rows={**found.rows, "target": rows}
                )  # fmt: skip
    return None


def _counts(found: Found, func: Func) -> bool:
    made = found.keys.made.get(func.number, ())
    return any(is_count(found.keys.tape.ops[value], found.count("n")) for value in made)
