"""Scalar cores: the key `coefficient x Func(index map)` of every value of a tape. Read-only, linear, memoised per value.

Two values with one key are one function, however they are spelled and laid out. What keeps that sound:

* an operand is flattened into a sum or product only where it has one use (`uses.py`), and up to `WIDEST` operands;
* exponents and coefficients merge only where their signs agree (`x / x` and `2x - x` stay: they are NaN at infinity), a
  power of a power only where its domain stays (`products.py`), and `x * 0` and `x + 0` are not rewritten;
* nothing passes a fill, a cast or an op that is not floating point;
* whatever has no rule is a leaf of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final

from topos_core.matching.affine import Digit, Digits
from topos_core.matching.frame import Frame, framed, recast, view_by_map, view_over
from topos_core.matching.func import Func, FuncTable, Kid, Made, identity_map
from topos_core.matching.ideal import ideal
from topos_core.matching.symbol import Coefficient, Symbol
from topos_core.matching.tuples import new_tuple
from topos_core.matching.uses import COMMUTES, Uses
from topos_core.matching.view import View, Views, identity, is_whole, pruned
from topos_core.tape.op import Op
from topos_core.tape.tape import Tape

WIDEST: Final = 12
"""Operands of a flattened sum or product: work per op stays bounded."""

FACTOR: Final = "factor of "
"""Before a hole's name: the symbol of the factor that its value carries."""

Key = tuple[Coefficient, View]
"""A value's coefficient and its view on a function."""

Rule = Callable[["Keys", int, Op], Key | None]


class Keys:
    """The keys of all values of a tape.

    Args:
        tape: What is keyed.
        views: The tape's views, for constant index tables; made here where left out.
        symbolic: Gives the coefficient of a constant in a template; numbers stay numbers where left out.
        holes: Names of the inputs that a template's holes are, by value.
        flat: Whether operands are taken as read once, so that sums and products are flattened through all of them.

    Attributes:
        coefficients, funcs, views: By value.
        moves: Whether a value only rearranges another one, by value.
        made: The values that are a multiple of a function, by its number.
        windows: The function that stands for a padded operand of a value, by the value that is read.
        factors: The coefficients with which a function occurs, by its number; filled in on demand.
        over_first: Whether some sum below a function runs over axis 0, by its number; filled in on demand.
        walked: How many values were looked at between roots and bindings.
    """

    def __init__(
        self,
        tape: Tape,
        views: Views | None = None,
        *,
        symbolic: Callable[[float], Coefficient] | None = None,
        holes: Mapping[int, str] | None = None,
        flat: bool = False,
    ) -> None:
        self.tape = tape
        self.table = FuncTable()
        self.uses = Uses(tape)
        if flat:
            self.uses.count = [1] * len(tape.ops)
        self.coefficients: list[Coefficient] = []
        self.funcs: list[Func] = []
        self.views: list[View] = []
        self.moves: list[bool] = []
        self.made: dict[int, list[int]] = {}
        self.windows: dict[int, int] = {}
        self.factors: dict[int, tuple[float, ...]] = {}
        self.over_first: dict[int, bool] = {}
        self.walked = 0
        self.pulled: dict[int, tuple[Symbol, ...]] = {}
        self._cleaned: dict[int, View] = {}
        self._layer = views
        self._symbolic = symbolic
        self._holes = holes or {}
        self._ideal: dict[Any, float | None] = {}
        rules, ops = _rules(), tape.ops
        empty = {value for value, (_, _, _, kind, _) in enumerate(ops) if 0 in kind.shape}
        for value, op in enumerate(ops):
            rule = rules.get(op[0])
            key = None
            if rule is not None and (not empty or (value not in empty and empty.isdisjoint(op.operands))):
                key = rule(self, value, op)
            self._store(value, op, key or self.unknown(value))

    # ---- what rules ask

    @property
    def is_template(self) -> bool:
        """Says whether the tape is that of a pattern: its numbers are symbols, and it has a dtype in name only."""
        return self._symbolic is not None

    def is_one(self, value: int) -> bool:
        """Says whether a value is one number everywhere."""
        return self.funcs[value] is self.table.one

    def is_live(self, value: int) -> bool:
        """Says whether a result or an observation needs a value."""
        return value in self.uses.live

    def is_movement(self, value: int) -> bool:
        """Says whether a value only rearranges another one."""
        return self.moves[value]

    def base(self, func: Func) -> int:
        """Gives the `View.base` that stands for a function: negative, since it is no value."""
        return -1 - func.number

    def clean(self, value: int) -> View:
        """Gives an operand's view with its fills wrapped away: the padded operand becomes a function of its own."""
        view = self.views[value]
        if is_whole(view):
            return view
        known = self._cleaned.get(value)
        if known is None:
            known = self._cleaned[value] = self._whole(value, pruned(view))
        return known

    def _whole(self, value: int, view: View) -> View:
        """Gives the view of a value on its window, where bounds are left that may fail."""
        if is_whole(view):
            return view
        func = self.table.funcs[-1 - view.base]
        digits = view.digits
        shape = tuple(digit.extent for digit in digits)
        data = (func.number, digits, view.offsets, view.divisors, repr(view.bounds))
        window = self.table.leaf("window", "", data, shape, (Kid(func, identity_map(func), 1),))
        if window.maker < 0:
            window.maker = value
        self.windows[value] = window.number
        plain = identity(self.base(window), shape)
        axes, at = [], 0
        for axis in view.axes:
            axes.append(tuple(d for row in plain.axes[at : at + len(axis)] for d in row))
            at += len(axis)
        return plain._replace(axes=tuple(axes))

    def func_of(self, view: View) -> Func:
        """Gives the function that a view reads."""
        return self.table.funcs[-1 - view[0]]

    def frame(self, operands: Sequence[int]) -> tuple[Frame, list[Func]] | None:
        """Gives the common frame of operands of one shape, and their functions."""
        views = [self.clean(operand) for operand in operands]
        frame = framed(views)
        return None if frame is None else (frame, [self.func_of(view) for view in views])

    def placed(self, made: Made, axes: Sequence[Sequence[int]], frame: Frame) -> View:
        """Gives the view of a value whose axes are digits of the frame in which a function was made."""
        return view_over(made.func, made.places, axes, frame, self.base(made.func))

    def mapped(self, kid: Kid, axes: Sequence[Sequence[int]], frame: Frame) -> View:
        """Gives the view of a value that is one operand, read over a frame."""
        return view_by_map(kid.func, kid.map, axes, frame, self.base(kid.func))

    def recast(self, view: View, func: Func, outer: Sequence[Any]) -> View:
        """Gives the view on a function made over the digits of another one."""
        return recast(view, func, outer, self.base(func))

    def leaf_view(self, func: Func, shape: tuple[int, ...]) -> View:
        """Gives the view of a value that is a function with one digit per axis."""
        plain = identity(self.base(func), func.shape)
        if 1 not in shape:
            return plain
        rows = iter(plain.axes)
        axes = tuple([() if extent == 1 else next(rows) for extent in shape])
        return new_tuple(View, (*plain[:2], axes, *plain[3:]))

    def unknown(self, value: int) -> Key:
        """Gives the key of a value about which nothing is known: equal for equal ops on equal operands."""
        shape = self.tape.ops[value].type.shape
        if 0 in shape:
            shape = ()  # no element, no digit
        func = self.table.leaf("leaf", "", self.uses.number[value], tuple([extent for extent in shape if extent != 1]))
        return 1.0, self.leaf_view(func, shape)

    def splat(self, number: Coefficient | None, shape: tuple[int, ...]) -> Key | None:
        """Gives the key of one number of any shape."""
        if number is None:
            return None
        return number, new_tuple(View, (-1 - self.table.one.number, (), _of_one(shape), (), (), ()))

    def hole(self, value: int) -> str | None:
        """Names the hole that an input of a template is."""
        return self._holes.get(value)

    def number(self, value: Any, dtype: str) -> Coefficient | None:
        """Gives the coefficient that a recorded number stands for."""
        key = (value.tobytes() if hasattr(value, "tobytes") else value, dtype)
        if key not in self._ideal:
            self._ideal[key] = ideal(value, dtype)
        number = self._ideal[key]
        return number if number is None or self._symbolic is None else self._symbolic(number)

    def layer(self) -> Views:
        """Gives the tape's own views."""
        if self._layer is None:
            self._layer = Views(self.tape)
        return self._layer

    def _store(self, value: int, op: Op, key: Key) -> None:
        coefficient, view = key
        if type(coefficient) is float and coefficient != 1.0 and not within(coefficient, op.type.dtype):
            coefficient, view = self.unknown(value)  # steps that leave the dtype's range compute something else
        func = self.table.funcs[-1 - view[0]]
        self.coefficients.append(coefficient)
        self.views.append(view)
        self.funcs.append(func)
        name = op[0]
        moves = name in MOVEMENT and (name != "gather" or self.tape.ops[op.operands[1]].name == "constant")
        self.moves.append(moves)
        made = self.made.get(func.number)
        if made is None:
            self.made[func.number] = [value]
        else:
            made.append(value)
        if func.maker < 0 and not moves:
            func.maker = value


@lru_cache(4096)
def _of_one(shape: tuple[int, ...]) -> tuple[Digits, ...]:
    """Gives the axes of a number of a shape."""
    return tuple([() if extent == 1 else (Digit(extent, ()),) for extent in shape])


def within(coefficient: float, dtype: str) -> bool:
    """Says whether a dtype holds a coefficient: not -0, which equals 0, nor what overflows or vanishes on the way."""
    size = abs(coefficient)
    if not size:
        return math.copysign(1.0, coefficient) > 0  # the greatest of x and -0 is no relu
    if size in (1.0, math.inf) or dtype not in RANGES:
        return True
    least, most = RANGES[dtype]
    return least <= size <= most


RANGES: Final = {"f16": (5e-8, 6.6e4), "bf16": (9e-41, 3.41e38), "f32": (1e-45, 3.41e38)}
"""The least and the greatest finite magnitude of dtypes, with some room for rounding."""

MOVEMENT: Final = frozenset(
    ("reshape", "permute", "broadcast", "pad", "slice", "reverse", "concat", "unfold", "strided", "gather")
)


def applied(keys: Keys, value: int, op: Op) -> Key | None:
    """A function of scaled operands, pushed through their movement where there is one operand."""
    name, operands = op.name, op.operands
    if name == "cast":
        name = f"cast:{op.attributes['dtype']}"
    elif name == "compare":
        kind = op.attributes["kind"]
        if kind in ("lt", "le"):
            kind, operands = {"lt": "gt", "le": "ge"}[kind], operands[::-1]
        name = f"compare:{kind}"
    return apply_to(keys, name, operands, op.name in COMMUTES or name in ("compare:eq", "compare:ne"))


def apply_to(keys: Keys, name: str, operands: Sequence[int], commutes: bool = False) -> Key | None:
    """Gives the key of `name(operands)`."""
    if len(operands) == 1:
        view = keys.clean(operands[0])
        func = keys.func_of(view)
        kid = new_tuple(Kid, (func, identity_map(func), rounded(keys.coefficients[operands[0]])))
        made = keys.table.make("apply", name, (kid,), func.shape)
        return 1.0, new_tuple(View, (-1 - made.func.number, *view[1:]))
    shared = keys.frame(operands)
    if shared is None:
        return None
    frame, funcs = shared
    kids = [
        new_tuple(Kid, (func, map_, rounded(keys.coefficients[operand])))
        for func, map_, operand in zip(funcs, frame.maps, operands, strict=True)
    ]
    if commutes:
        kids.sort(key=lambda kid: (kid.func.number, str(kid.weight), str(kid.map)))
    made = keys.table.make("apply", name, kids, frame.extents)
    return 1.0, keys.placed(made, frame.axes, frame)


def rounded(coefficient: Coefficient) -> Coefficient:
    """Gives a coefficient with fifteen digits, so that two ways to compute it agree and a program in float64 keeps it."""
    if not isinstance(coefficient, float) or coefficient == 1.0 or coefficient == -1.0:
        return coefficient
    return float(f"{coefficient:.15g}")


_APPLIED: Final = frozenset(
    [
        "abs",
        "exp",
        "expm1",
        "log",
        "log1p",
        "tanh",
        "erf",
        "sin",
        "cos",
        "floor",
        "ceil",
        "round",
        "sign",
        "logical_not",
        "maximum",
        "minimum",
        "remainder",
        "compare",
        "and",
        "or",
        "xor",
        "select",
        "cast",
    ]
)


@cache
def _rules() -> Mapping[str, Rule]:
    from topos_core.matching import products, rearranged, reductions, sources, sums  # they build on what stands above

    return {
        **dict.fromkeys(_APPLIED, applied),
        **rearranged.RULES,
        **sums.RULES,
        **products.RULES,
        **reductions.RULES,
        **sources.RULES,
    }
