"""The walk over a jaxpr: calls are entered, primitives translated, the rest recorded as opaque ops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from topos_core.errors import RecordingError
from topos_core.importers.jax_jaxpr.catalog import translations
from topos_core.importers.jax_jaxpr.equation import Equation, Unsupported, number_of
from topos_core.importers.jax_jaxpr.places import Places
from topos_core.importers.rollback import take_back
from topos_core.ops.catalog import definition
from topos_core.recording import constant
from topos_core.recording.recorder import Recorder
from topos_core.recording.value import Value
from topos_core.tape.span import Location
from topos_core.tape.type import TensorType, dtype_name

_CALLS: Final = {
    "jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr", "remat": "jaxpr",
    "checkpoint": "jaxpr", "remat2": "jaxpr", "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr", "custom_lin": "jaxpr",
}  # fmt: skip
_DEEPEST: Final = 200
_STAND_IN: Final = TensorType("u8", (0,))


@dataclass(frozen=True, slots=True)
class Walk:
    """What the equations of one program share."""

    recorder: Recorder
    places: Places

    def closed(self, closed: Any, operands: Sequence[Value], around: Location, depth: int = 0) -> list[Value]:
        """Records a closed jaxpr; what it captured becomes constants and parameters."""
        jaxpr = getattr(closed, "jaxpr", closed)
        held: dict[Any, Value] = dict(zip(jaxpr.invars, operands, strict=True))
        with self.recorder.at(around):
            held.update(zip(jaxpr.constvars, map(self._captured, getattr(closed, "consts", ())), strict=True))
        for equation in jaxpr.eqns:
            place = self.places.of_equation(equation, around)
            with self.recorder.at(place):
                results = self._equation(equation, held, place, depth)
            held.update(zip(equation.outvars, results, strict=True))
        with self.recorder.at(around):
            return [self._read(held, atom) for atom in jaxpr.outvars]

    def _captured(self, array: Any) -> Value:
        try:
            return constant.lift(self.recorder, np.asarray(array))
        except (RecordingError, TypeError):  # random keys have no elements that NumPy knows
            return self._opaque("captured", (), [_STAND_IN], f"it holds {array.dtype} elements, shown as {_STAND_IN}")[
                0
            ]

    def _equation(self, equation: Any, held: dict[Any, Value], place: Location, depth: int) -> list[Value]:
        name, params = equation.primitive.name, equation.params
        operands = tuple(self._read(held, atom) for atom in equation.invars)
        inner = params.get(_CALLS.get(name, ""))
        if inner is not None and depth < _DEEPEST:
            return self.closed(inner, operands, place, depth + 1)
        types = [_type(each.aval) for each in equation.outvars]
        translate = translations().get(name)
        if translate is None:
            return self._opaque(name, operands, types, f"topos has no formula for {name}")
        literals = tuple(atom.val if hasattr(atom, "val") else None for atom in equation.invars)
        mark = len(self.recorder.ops)
        try:
            seen = Equation(self.recorder, name, params, operands, literals, tuple(types))
            made = translate(seen)
            results = [made] if isinstance(made, Value) else list(made)
            if [each.type for each in results] == types:
                return self._worked_out(mark, operands, results)
            reason = f"its formula gives {', '.join(str(each.type) for each in results)}"
        except Unsupported as error:
            reason = str(error)
        except RecordingError as error:
            reason = error.message
        take_back(self.recorder, mark)
        return self._opaque(name, operands, types, reason)

    def _worked_out(self, mark: int, operands: Iterable[Value], results: list[Value]) -> list[Value]:
        """Gives numbers for what only numbers were recorded for, by the same ops: `jnp.var` counts its divisor, and whether it is positive."""
        ops = self.recorder.ops
        known = {each.index: number for each in operands if (number := number_of(each)) is not None}
        if len(known) < len({each.index for each in operands}) or not known or any(each.type.shape for each in results):
            return results
        with np.errstate(all="ignore"):
            for at in range(mark, len(ops)):
                op = ops[at]
                if op.name in ("opaque", "pick", "parameter") or op.type.shape or not known.keys() >= set(op.operands):
                    return results
                known[at] = definition(op.name).evaluate([known[each] for each in op.operands], op.attributes, op.type)
        numbers = [(known[each.index], each.type.dtype) for each in results]
        take_back(self.recorder, mark)
        return [constant.splat(self.recorder, np.asarray(number)[()], dtype) for number, dtype in numbers]

    def _read(self, held: dict[Any, Value], atom: Any) -> Value:
        if not hasattr(atom, "val"):
            return held[atom]
        kind = _type(atom.aval)
        number = np.asarray(atom.val)
        if number.ndim == 0:
            return constant.splat(self.recorder, number[()], kind.dtype, kind.shape)
        return constant.lift(self.recorder, number)

    def _opaque(self, name: str, operands: Iterable[Value], types: Sequence[TensorType], note: str) -> list[Value]:
        """Records an opaque op; one without results, such as a print, is left out."""
        if not types:
            return []
        attributes = {"foreign": name, "types": tuple(types), "note": note}
        made = self.recorder.record("opaque", tuple(operands), attributes)
        if len(types) == 1:
            return [made]
        return [self.recorder.record("pick", (made,), {"index": at, "type": each}) for at, each in enumerate(types)]


def _type(aval: Any) -> TensorType:
    """Gives the type of a result; random keys and effects have a stand-in."""
    try:
        dtype = dtype_name(np.dtype(aval.dtype))
    except (TypeError, AttributeError):
        return _STAND_IN
    return TensorType(dtype, tuple(int(extent) for extent in aval.shape)) if dtype is not None else _STAND_IN
