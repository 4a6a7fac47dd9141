"""Functions of digits: what a value computes, without its layout and without its factor.

A value is `coefficient x Func(index map)`. A `Func` is a hash-consed tensor-valued function of its own digits 0, 1, ...;
permute, reshape, slice and broadcast live in the map by which somebody uses it, factors live outside of it. So
`exp(x).T` and `exp(x.T)` are one Func, a mean is a sum times 1/n, and a square shape fools nobody: digits are numbers,
not extents.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal, NamedTuple

from topos_core.matching.symbol import Coefficient
from topos_core.matching.tuples import new_tuple

Kind = Literal["leaf", "hole", "one", "window", "sum", "product", "apply", "reduce"]

Form = int | tuple[int, tuple[tuple[int, int], ...]]
"""An affine form of digits: a bare digit, or (offset, ((digit, coefficient), ...)) with the digits ascending."""

Map = tuple[Form, ...]
"""One form per digit of the function that is used."""

DEPTH: Final = 5
"""How many levels below a Func its heads are known."""

REACH: Final = 4
"""How many levels below a Func are known one by one."""

LEVEL: Final = 32
"""Bits of one level: the sets of all levels are one number, the nearest level lowest, and are made and compared as one."""

_HEADS: Final = (
    "leaf", "hole", "one", "window", "sum", "product", "exp", "expm1", "log", "log1p", "tanh", "erf", "sin", "cos", "abs",
    "sign", "stack", "select", "cast", "maximum", "minimum", "reduce:sum", "reduce:max", "compare", "pow", "other",
)  # fmt: skip
_BITS: Final = {name: 1 << k for k, name in enumerate(_HEADS)}
_REDUCES: Final = _BITS["reduce:sum"] | _BITS["reduce:max"]
_ONE_LEVEL: Final = (1 << LEVEL) - 1
_EVERY_HEAD: Final = sum(1 << LEVEL * depth for depth in range(DEPTH))
_ALL_HEADS: Final = (1 << LEVEL * DEPTH) - 1
_ALL_REACH: Final = (1 << LEVEL * REACH) - 1


class Kid(NamedTuple):
    """An operand: a function, the map by which it is used, and its weight (a coefficient, or an exponent)."""

    func: Func
    map: Map
    weight: Any


class Func:
    """One function of digits; made by a `FuncTable` alone, so two equal functions are one object.

    Attributes:
        number: Position in its table, ascending with time: operands come before what is made of them.
        kind: `leaf` (an input, a table, an op that says nothing), `hole` (a pattern's), `one` (the constant 1), `window`
            (a view with fills), `sum` (weights are coefficients, the first of them 1), `product` (weights are exponents),
            `apply` (a function of scaled operands), `reduce` (over `reduced` digits; weights are exponents).
        name: The function applied or the reducer; a hole's name; else empty.
        kids: Operands, sorted.
        constant: What a sum adds beside its operands, or None.
        shape, reduced: Extents of its own digits and of the digits that it reduces, numbered after those.
        heads: What occurs within depth 0, 1, ... below: a bit set of `LEVEL` bits for each, as one number.
        reach: What an operand at depth 0, 1, ... can be, nested sums and products opened by one level or not; likewise.
        width: Operands there would be if nested sums or products were opened by one level.
        maker: The first value of the tape that is a multiple of it, or -1.
        written: The two operands of a sum or product as their author wrote them, where flattening took one apart; else none.
        adds_nothing: Whether it is another function plus zero: kept apart for the sign of its zeros, and else the same.
        behind: What it is but for casts and added zeros; None where it has none.
        local, links, strides: What `remembered.py` reads of it: the number of its local structure, its operands, and the
            coefficients in their maps.
        first: What every try at it reads first (`met.Reach`); None where there was none.
    """

    __slots__ = (
        "adds_nothing", "behind", "constant", "first", "heads", "kids", "kind", "links", "local", "maker", "name", "number",
        "reach", "reduced", "shape", "strides", "width", "written",
    )  # fmt: skip

    links: tuple[Func, ...]
    strides: tuple[int, ...]
    first: Any
    heads: int
    reach: int

    def __init__(
        self,
        number: int,
        kind: Kind,
        name: str,
        kids: tuple[Kid, ...],
        constant: Coefficient | None,
        shape: tuple[int, ...],
        reduced: tuple[int, ...],
    ) -> None:
        self.number, self.kind, self.name, self.kids, self.constant = number, kind, name, kids, constant
        self.shape, self.reduced, self.maker = shape, reduced, -1
        self.written: tuple[Kid, ...] = ()
        self.adds_nothing = kind == "sum" and len(kids) == 1 and constant == 0
        self.local, self.first = -1, None
        bit = head(kind, name)
        heads = reach = 0
        width = len(kids)
        if self.adds_nothing or (
            kind == "apply" and name.startswith("cast")
        ):  # a cast in the wrong place is worth telling
            for func, _, _ in kids:
                heads |= func.heads
                reach |= func.reach
            inner = kids[0].func
            self.behind: Func | None = inner.behind or inner
        else:
            opens = _OPENS.get(kind)
            for func, _, _ in kids:
                heads |= func.heads
                reach |= func.reach
                inner = func.behind or func
                if inner.kind == opens:
                    if func.kind == opens:
                        width += len(func.kids) - 1
                    for grandchild, _, _ in inner.kids:
                        reach |= grandchild.reach
            self.behind = None
            heads, reach = heads << LEVEL & _ALL_HEADS, reach << LEVEL & _ALL_REACH
        self.heads, self.reach, self.width = heads | bit * _EVERY_HEAD, reach | bit, width

    def __repr__(self) -> str:
        inside = ", ".join(f"#{kid.func.number}{list(kid.map)}:{kid.weight}" for kid in self.kids)
        return f"#{self.number} {self.kind} {self.name}({inside})"


_OPENS: Final[Mapping[Kind, Kind]] = {"product": "product", "reduce": "product", "sum": "sum"}
"""What is opened below a function of a kind."""


class Made(NamedTuple):
    """A function and where the digits of the frame went: frame digit -> (digit of the function, coefficient)."""

    func: Func
    places: dict[int, tuple[int, int]]


class FuncTable:
    """The functions of one tape or template."""

    def __init__(self) -> None:
        self.funcs: list[Func] = []
        self._known: dict[Any, Func] = {}
        self.one = self.leaf("one", "", None, ())

    def leaf(self, kind: Kind, name: str, data: Any, shape: tuple[int, ...], kids: tuple[Kid, ...] = ()) -> Func:
        """Gives the function that `data` names."""
        return self._known_as((kind, name, data, shape), kind, name, kids, None, shape, ())

    def make(
        self,
        kind: Kind,
        name: str,
        kids: Sequence[Kid],
        extents: Sequence[int],
        constant: Coefficient | None = None,
        reduced: Collection[int] = (),
        selector: int | None = None,
    ) -> Made:
        """Gives a function of operands whose maps are over the digits of a frame with these extents.

        Digits are numbered by their first occurrence, the kept ones first; neighbours that always go together are one. A
        selector is a digit that no operand reads: it says which of them is meant, and comes last.
        """
        seen: dict[int, None] = {}
        bare = True
        for _, map_, _ in kids:
            for one in map_:
                if type(one) is int:
                    seen[one] = None
                else:
                    bare = False
                    break
        order = list(seen) if bare else _occurrence(kids)
        kept = [digit for digit in order if digit not in reduced] if reduced else order
        late = []
        if reduced:
            late = [digit for digit in order if digit in reduced]
            late += [digit for digit in reduced if digit not in order]
        if selector is not None:
            kept.append(selector)
        if bare:
            order = kept + late
            sizes, count = [extents[digit] for digit in order], len(kept)
            numbers = {digit: k for k, digit in enumerate(order)}
            at: Any = numbers.__getitem__
            own = tuple([new_tuple(Kid, (func, tuple(map(at, map_)), weight)) for func, map_, weight in kids])
            places = {digit: (k, 1) for digit, k in numbers.items()}
        else:
            places, sizes, count = _joined(kids, kept, late, extents)
            own = tuple([Kid(kid.func, _renumbered(kid.map, places), kid.weight) for kid in kids])
        shape, gone = tuple(sizes[:count]), tuple(sizes[count:])
        key = (kind, name, own, constant, shape, gone)
        return new_tuple(Made, (self._known_as(key, kind, name, own, constant, shape, gone), places))

    def _known_as(self, key: Any, kind: Kind, name: str, kids: tuple[Kid, ...], *rest: Any) -> Func:
        func = self._known.get(key)
        if func is None:
            func = self._known[key] = Func(len(self.funcs), kind, name, kids, *rest)
            self.funcs.append(func)
        return func


def head(kind: Kind, name: str) -> int:
    """Gives the bit that stands for a function in head sets."""
    if kind == "reduce":
        return _BITS["reduce:sum" if name == "sum" else "reduce:max"]  # the least of x is minus the greatest of -x
    if kind == "apply":
        return _BITS.get(name.partition(":")[0], _BITS["other"])
    return _BITS[kind]


def form(offset: int, terms: Iterable[tuple[int, int]]) -> Form:
    """Gives the normal form of `offset + sum of coefficient * digit`."""
    kept = tuple(sorted([(digit, c) for digit, c in terms if c]))
    return kept[0][0] if offset == 0 and len(kept) == 1 and kept[0][1] == 1 else (offset, kept)


def composed(inner: Map, outer: Sequence[Form]) -> Map:
    """Puts forms over a frame (one per digit) into a map over those digits."""
    at: Any = outer.__getitem__
    try:
        return tuple(map(at, inner))  # bare digits, as nearly always
    except TypeError:
        pass
    out: list[Form] = []
    for one in inner:
        if type(one) is int:
            out.append(outer[one])
            continue
        offset, terms = parts_of(one)
        total: dict[int, int] = {}
        for digit, coefficient in terms:
            base, parts = parts_of(outer[digit])
            offset += coefficient * base
            for below, factor in parts:
                total[below] = total.get(below, 0) + coefficient * factor
        out.append(form(offset, total.items()))
    return tuple(out)


def used(kids: Sequence[Kid], outer: Sequence[Form]) -> list[Kid]:
    """Gives operands used by one map more; the inner loop of every try, hence without a call per operand."""
    if outer == _identity(len(outer)):
        return list(kids)
    at: Any = outer.__getitem__
    try:  # bare digits, as nearly always
        return [new_tuple(Kid, (func, tuple(map(at, inner)), weight)) for func, inner, weight in kids]
    except TypeError:
        return [Kid(func, composed(inner, outer), weight) for func, inner, weight in kids]


def in_order(kids: Collection[Kid], full: Callable[[Kid], Any]) -> list[Kid]:
    """Sorts operands by their functions, and by `full` where a function stands twice: that key writes maps out."""
    if len(kids) < 2:
        return list(kids)
    if len({kid.func for kid in kids}) == len(kids):
        return sorted(kids, key=_number)
    return sorted(kids, key=full)


def _number(kid: Kid) -> int:
    return kid.func.number


def identity_map(func: Func) -> Map:
    """Gives the map that uses a function's digits as they are."""
    return _identity(len(func.shape))


@cache
def _identity(rank: int) -> Map:
    return tuple(range(rank))


def is_cast(kind: Kind, name: str) -> bool:
    """Says whether a function only changes a dtype."""
    return kind == "apply" and name.startswith("cast")


def uncast(func: Func) -> Func:
    """Looks through casts and added zeros."""
    return func.behind or func


def heads_within(func: Func, depth: int = DEPTH - 1) -> int:
    """Gives the bit set of what occurs within a depth below a function, itself included."""
    return func.heads >> LEVEL * depth & _ONE_LEVEL


def reduces(func: Func, depth: int = DEPTH - 1) -> bool:
    """Says whether a function reduces anything within a depth."""
    return bool(heads_within(func, depth) & _REDUCES)


def digits_of(map_: Map) -> Iterable[int]:
    """Lists the digits that a map reads, with repetitions."""
    for one in map_:
        if type(one) is int:
            yield one
        else:
            for digit, _ in parts_of(one)[1]:
                yield digit


def parts_of(one: Form) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Gives a form as where it begins and what it is of each digit."""
    return (0, ((one, 1),)) if isinstance(one, int) else one


def rewritten(kids: Sequence[Kid], places: Mapping[int, tuple[int, int]]) -> tuple[Kid, ...]:
    """Puts operands over a frame's digits over those of a function made in it; none where one reads a part of a joined digit."""
    joined: dict[int, dict[int, int]] = {}  # of each digit of the function: frame digit -> weight
    for digit, (index, weight) in places.items():
        joined.setdefault(index, {})[digit] = weight
    out = []
    for kid in kids:
        forms: list[Form] = []
        for one in kid.map:
            offset, terms = parts_of(one)
            read = dict(terms)
            total: dict[int, int] = {}
            while read:
                digit = next(iter(read))
                if digit not in places:
                    return ()
                index = places[digit][0]
                group = joined[index]
                unit, rest = divmod(read[digit], group[digit])
                if rest or any(read.pop(d, 0) != unit * weight for d, weight in group.items()):
                    return ()
                total[index] = unit
            forms.append(form(offset, total.items()))
        out.append(Kid(kid.func, tuple(forms), kid.weight))
    return tuple(out)


def _occurrence(kids: Sequence[Kid]) -> list[int]:
    order: dict[int, None] = {}
    for kid in kids:
        for one in kid.map:
            if type(one) is int:
                order.setdefault(one)
            else:
                for digit, _ in sorted(parts_of(one)[1], key=lambda term: -abs(term[1])):
                    order.setdefault(digit)
    return list(order)


def _joined(
    kids: Sequence[Kid], kept: list[int], late: list[int], extents: Sequence[int]
) -> tuple[dict[int, tuple[int, int]], list[int], int]:
    """Joins an outer and an inner digit wherever every form reads them as one mixed-radix number."""
    rows = [dict(parts_of(one)[1]) for kid in kids for one in kid.map]
    columns = {digit: tuple([row.get(digit, 0) for row in rows]) for digit in (*kept, *late)}
    places: dict[int, tuple[int, int]] = {}
    sizes: list[int] = []
    count = 0
    for group in (kept, late):
        left = list(group)
        while left:
            chain = _chain(left, columns, extents)
            weight = 1
            for digit in reversed(chain):
                places[digit] = (len(sizes), weight)
                weight *= extents[digit]
            sizes.append(weight)
        if group is kept:
            count = len(sizes)
    return places, sizes, count


def _chain(left: list[int], columns: dict[int, tuple[int, ...]], extents: Sequence[int]) -> list[int]:
    """Takes the first digit and all that join it out of `left`; most significant first."""
    chain = [left.pop(0)]
    if not any(columns[chain[0]]):
        return chain
    while True:
        outer, inner = columns[chain[0]], columns[chain[-1]]
        for digit in left:
            if columns[digit] == tuple([extents[chain[0]] * c for c in outer]):
                chain.insert(0, digit)
            elif inner == tuple([extents[digit] * c for c in columns[digit]]):
                chain.append(digit)
            else:
                continue
            left.remove(digit)
            break
        else:
            return chain


def _renumbered(map_: Map, places: dict[int, tuple[int, int]]) -> Map:
    out: list[Form] = []
    for one in map_:
        if type(one) is int:
            out.append(places[one][0])  # a bare digit never joins another
            continue
        offset, terms = parts_of(one)
        total: dict[int, int] = {}
        for digit, coefficient in terms:
            index, weight = places[digit]
            if weight == 1:  # joined digits share one coefficient: the innermost's
                total[index] = coefficient
        out.append(form(offset, total.items()))
    return tuple(out)
