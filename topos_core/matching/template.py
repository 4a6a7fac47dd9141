"""Templates: a term traced by the recorder and keyed like any program.

Extents, constants and each hole's own factor are symbols: a template is traced with prime extents and prime constants, and
whatever number of its tape is a product of those primes is a symbol.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from topos_core.errors import InternalError
from topos_core.matching.core import FACTOR, Keys
from topos_core.matching.declared import ANCHOR, Form, Lookalike, Term
from topos_core.matching.func import DEPTH, LEVEL, REACH, Func, Kid, head, is_cast
from topos_core.matching.symbol import Coefficient, Symbol
from topos_core.recording.recorder import Recorder, recording
from topos_core.recording.value import Value
from topos_core.tape.span import Location
from topos_core.tape.tape import Structure, Tape
from topos_core.tape.type import TensorType

LABEL_PRIMES: Final = (1009, 1013, 1019, 1021, 1031, 1033)
CONSTANT_PRIMES: Final = (1000003, 1000033, 1000037, 1000039)

COUNT: Final = "count of "
"""Before a label: the symbol of the number of positions along it."""


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """One traced variant of a term.

    Args:
        term: What it is a variant of.
        form: The function that was traced.
        owned: Labels of each hole's axes.
        constants: Numbers that the program chooses.
        silent: Whether a failure above its anchor says too little.
        flat: Whether its products are multiplied out.
        holes: Holes that it has.
        lookalike: Set where it is a look-alike.
        root, factor: The value `factor x root` that a program's value is compared with.
        anchors: The functions marked as anchor.
        anchored: The anchor written out: equal where two templates have one anchor.
        named: Marked values by name, as (function, coefficient).
        axes: The root's labels, axis by axis.
        labels: The label of each extent.
        needs: Heads at or below the anchor that any program's function has within its depth.
        levels: Heads at each depth below the root, as `Func.reach` has them.
        depth: How far below the root the anchor lies.
        operands: The root's operands at least and at most, nested ones opened at least, as written at most.
        weights: How specific each function is, by its number.
        size: How many steps a full match has.
        pulled: What stands in front of each extreme (max, min), by its number: `max(-x)` is `-min(x)`.
        orders: Operands of each function, the most specific first, by its number.
        bits: A bit for each hole; `free` those that need not vary along all of their labels.
        owners: The holes that vary along each label, as bits.
        reduced: Labels that some reduction reduces.
        factors, counts: The names under which numbers stand: of each hole's factor, of each label's count.
    """

    term: Term
    form: Callable[..., Any]
    owned: Mapping[str, str]
    constants: tuple[str, ...]
    silent: bool
    flat: bool
    holes: tuple[str, ...]
    lookalike: Lookalike | None
    root: Func
    factor: Coefficient
    anchors: frozenset[int]
    anchor: Func
    anchored: Hashable
    named: Mapping[str, tuple[Func, Coefficient]]
    axes: tuple[str, ...]
    labels: Mapping[int, str]
    needs: int
    levels: int
    depth: int
    operands: tuple[int, int]
    weights: Mapping[int, int]
    size: int
    pulled: Mapping[int, tuple[Symbol, ...]]
    orders: Mapping[int, tuple[Kid, ...]]
    bits: Mapping[str, int]
    free: int
    owners: Mapping[str, int]
    reduced: frozenset[str]
    factors: Mapping[str, str]
    counts: Mapping[str, str]

    @property
    def is_scaled(self) -> bool:
        """Says whether the program chooses the factor in front."""
        return isinstance(self.factor, Symbol) and any(name in self.constants for name, _ in self.factor.exponents)


@cache
def templates(term: Term) -> tuple[Template, ...]:
    """Traces every variant of a term: each form and look-alike with each choice of optional holes, fullest first."""
    forms = [form if isinstance(form, Form) else Form(form) for form in (term.formula, *term.forms)]
    others = [
        (
            Form(other.formula, other.required, other.excluded, other.constants, labels=other.labels, flat=other.flat),
            other,
        )
        for other in term.lookalikes
    ]
    return tuple(
        _traced(term, form, dropped, lookalike)
        for form, lookalike in [*((form, None) for form in forms), *others]
        for dropped in _choices(term.optional)
        if not form.required & set(dropped) and form.excluded <= set(dropped)
        if not term.least or not term.least <= set(dropped)
    )


def _choices(optional: Sequence[str]) -> Iterable[tuple[str, ...]]:
    for count in range(len(optional) + 1):
        yield from itertools.combinations(optional, count)


def _traced(term: Term, form: Form, dropped: tuple[str, ...], lookalike: Lookalike | None) -> Template:
    owned = {hole: form.labels.get(hole, labels) for hole, labels in term.holes.items()}
    labels = sorted({label for axes in owned.values() for label in axes.split()})
    names = (*term.constants, *form.constants)
    extents = dict(zip(labels, LABEL_PRIMES, strict=False))
    constants = dict(zip(names, CONSTANT_PRIMES, strict=False))
    if len(extents) < len(labels) or len(constants) < len(names):
        raise InternalError(f"a term has {len(labels)} labels and {len(names)} constants; there are fewer primes")
    recorder = Recorder()
    arguments: dict[str, Any] = dict.fromkeys(dropped)
    holes: dict[int, str] = {}
    with recording(recorder), recorder.at(Location(())):
        for name, axes in owned.items():
            if name not in dropped:
                shape = tuple(extents[label] for label in axes.split())
                value = recorder.source("input", TensorType(form.dtypes.get(name, "f64"), shape))
                arguments[name] = value
                holes[value.index] = name
        result: Value = form.formula(**arguments, **{name: float(prime) for name, prime in constants.items()})
    tape = Tape(
        tuple(recorder.ops), tuple(holes), (), (result.index,), Structure("leaf", index=0), {},
        tuple(recorder.observations), (Location(()),), {},
    )  # fmt: skip
    symbols = {prime: COUNT + label for label, prime in extents.items()}
    symbols |= {prime: name for name, prime in constants.items()}
    keys = Keys(tape, symbolic=lambda number: _symbolic(number, symbols), holes=holes, flat=form.flat)
    return _template(term, form, lookalike, tape, keys, {prime: label for label, prime in extents.items()})


def _template(
    term: Term, form: Form, lookalike: Lookalike | None, tape: Tape, keys: Keys, labels: dict[int, str]
) -> Template:
    result = tape.results[0]
    root = keys.funcs[result]
    marked = {o.name: o.value for o in tape.observations if o.name is not None}
    anchored = marked.pop(ANCHOR, None)
    anchor_func = root if anchored is None else keys.funcs[anchored]
    below_anchor = {func.number for func in _below(anchor_func)}
    needs = 0
    levels, depth, level = 0, 0, [root]
    for k in range(DEPTH):
        heads = 0
        level = [func for one in level for func in _seen_through(one)]
        for func in level:
            if func.kind not in ("hole", "one"):
                heads |= head(func.kind, func.name)
            if func.kind in ("apply", "reduce") and func.number in below_anchor and k < REACH:
                needs |= head(func.kind, func.name)  # further down a program may have it deeper than heads are known
        if 0 < k < REACH:
            levels |= heads << LEVEL * k
        if any(func is anchor_func for func in level):
            depth = k
        level = [kid.func for func in level if not is_cast(func.kind, func.name) for kid in func.kids]
    if any(func.kind in ("leaf", "window") for func in keys.table.funcs):
        raise InternalError(f"{form.formula.__name__} holds an op that has no key; write its formula")
    nary = root.kind in ("sum", "product", "reduce")
    most = len(root.kids) + (root.constant is not None) if nary else 1 << 30
    weights: dict[int, int] = {}
    for func in keys.table.funcs:
        own = 100 if func.kind in ("apply", "reduce") else 0 if func.kind == "hole" else 50
        weights[func.number] = own + sum(weights[kid.func.number] for kid in func.kids if kid.func.kind != "hole")
    holes = tuple(keys.hole(value) or "" for value in tape.inputs)
    bits = {hole: 1 << k for k, hole in enumerate(holes)}
    owned = {hole: form.labels.get(hole, axes) for hole, axes in term.holes.items()}
    owners: dict[str, int] = {}
    for hole in holes:
        for label in owned[hole].split():
            owners[label] = owners.get(label, 0) | bits[hole]
    for name in term.near:
        needs |= head("apply", name)
    return Template(
        term=term,
        form=form.formula,
        owned=owned,
        constants=(*term.constants, *form.constants),
        silent=form.silent,
        flat=form.flat,
        holes=holes,
        lookalike=lookalike,
        root=root,
        factor=keys.coefficients[result],
        anchors=frozenset((anchor_func.number,)) if anchored is not None else frozenset(),
        anchor=anchor_func,
        anchored=_written_out(anchor_func, labels, keys.pulled),
        named={name: (keys.funcs[value], keys.coefficients[value]) for name, value in marked.items()},
        axes=tuple(labels[extent] for extent in tape.ops[result].type.shape if extent in labels),
        labels=labels,
        needs=needs,
        levels=levels,
        depth=depth,
        operands=(len(root.kids) if nary else 0, most),
        weights=weights,
        size=sum(1 for _ in _below(root)),
        pulled=keys.pulled,
        orders={func.number: tuple(sorted(func.kids, key=_specific(weights))) for func in keys.table.funcs},
        bits=bits,
        free=sum(bits[hole] for hole in term.free if hole in bits),
        owners=owners,
        reduced=frozenset(labels[extent] for func in _below(root) for extent in func.reduced),
        factors={hole: FACTOR + hole for hole in holes},
        counts={label: COUNT + label for label in owners},
    )


def _specific(weights: Mapping[int, int]) -> Callable[[Kid], int]:
    return lambda kid: -weights[kid.func.number]


def _below(func: Func) -> Iterable[Func]:
    todo = [func]
    while todo:
        one = todo.pop()
        yield one
        todo += [kid.func for kid in one.kids]


def _written_out(func: Func, labels: Mapping[int, str], pulled: Mapping[int, tuple[Symbol, ...]]) -> Hashable:
    """Writes a template's function with everything below it: holes by name, digits by label."""
    extents = tuple([labels.get(extent, str(extent)) for extent in (*func.shape, *func.reduced)])
    kids = tuple([(_written_out(kid.func, labels, pulled), kid.map, repr(kid.weight)) for kid in func.kids])
    before = repr(pulled.get(func.number))
    return func.kind, func.name, repr(func.constant), extents, len(func.reduced), before, kids


def _seen_through(func: Func) -> Iterable[Func]:
    """Gives a function and, behind casts, what they cast: they stand on one level, as the heads of programs have it."""
    yield func
    while is_cast(func.kind, func.name):
        func = func.kids[0].func
        yield func


def _symbolic(number: float, symbols: Mapping[int, str]) -> Coefficient:
    """Reads a number that is a product of the primes of symbols as their monomial."""
    if not math.isfinite(number) or number != int(number) or abs(number) < LABEL_PRIMES[0]:
        return number
    rest, monomial = int(number), Symbol()
    for prime, name in symbols.items():
        while rest % prime == 0:
            rest //= prime
            monomial *= Symbol.named(name)
    return float(rest) * monomial if monomial.names else number
