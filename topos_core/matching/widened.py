"""Views and forms that look through casts to a wider float: windows of f16 values that are summed in f32, say."""

from __future__ import annotations

from typing import Final

from topos_core.matching.context import Context
from topos_core.matching.contraction import Forms
from topos_core.matching.movement import moved
from topos_core.matching.view import View, identity
from topos_core.tape.op import Op
from topos_core.tape.tape import Tape

NARROW: Final = frozenset(("f16", "bf16"))


class Widened:
    """The views of a tape on which a cast of f16 or bf16 to f32, which changes no number, is a view; made on demand."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._views: dict[int, View] = {}

    def of(self, value: int) -> View:
        """Gives a value's view; its base may have a narrower type."""
        view = self._views.get(value)
        if view is None:
            op = self._tape.ops[value]
            if widens(self._tape, op):
                view = self.of(op.operands[0])
            else:
                view = moved(self._tape, op, self.of) or identity(value, op.type.shape)
            self._views[value] = view
        return view


def widens(tape: Tape, op: Op) -> bool:
    """Says whether an op casts f16 or bf16 to f32."""
    return op.name == "cast" and op.type.dtype == "f32" and tape.ops[op.operands[0]].type.dtype in NARROW


def widened_forms(context: Context) -> Forms:
    """Makes the forms of a tape by such views; `Context.once` keeps them."""
    return Forms(context.tape, context.readers, Widened(context.tape))
