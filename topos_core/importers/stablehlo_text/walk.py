"""The walk over a module's functions: calls and composites are entered, ops translated, the rest opaque."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from topos_core import nn
from topos_core.errors import RecordingError, TraceError
from topos_core.importers.jax_jaxpr.catalog import translations
from topos_core.importers.jax_jaxpr.equation import Equation, Unsupported
from topos_core.importers.rollback import take_back
from topos_core.importers.stablehlo_text.places import Places
from topos_core.importers.stablehlo_text.reducers import picked
from topos_core.importers.stablehlo_text.settings import equation_of, numbers_end, scatter_axis
from topos_core.importers.stablehlo_text.types import array_of, numbers_of, type_of
from topos_core.recording import constant, elementwise, movement
from topos_core.recording.recorder import Recorder
from topos_core.recording.value import Value
from topos_core.tape.span import Location
from topos_core.tape.type import FLOATS, TensorType, numpy_dtype

_DEEPEST: Final = 64
_STAND_IN: Final = TensorType("u8", (0,))
_COMBINED: Final = {
    "sum": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "prod": np.multiply,
    "and": np.logical_and,
    "or": np.logical_or,
}
_SHAPED: Final = ("stablehlo.dynamic_reshape", "stablehlo.dynamic_broadcast_in_dim")
"""Operations whose further operands only tell the shape, which their results' types tell too."""
_NEUTRAL: Final = {"sum": 0, "prod": 1, "and": True, "or": False}


@dataclass(slots=True)
class Walk:
    """What the functions of one module share."""

    recorder: Recorder
    places: Places
    functions: dict[str, Any] = field(default_factory=dict)

    def function(self, name: str, operands: Sequence[Value], around: Location, depth: int = 0) -> list[Value]:
        """Records a function's body.

        Raises:
            TraceError: TP402, there is no such function, or calls nest too deeply.
        """
        if name not in self.functions or depth > _DEEPEST:
            raise TraceError(f"the function {name!r} is missing, or calls nest more than {_DEEPEST} deep", code="TP402")
        block = self.functions[name].regions[0].blocks[0]
        held: dict[Any, Value] = dict(zip(block.arguments, operands, strict=True))
        for each in block.operations:
            operation = each.operation
            if operation.name in ("func.return", "stablehlo.return"):
                return [held[operand] for operand in operation.operands]
            place = self.places.of(operation.location, around)
            with self.recorder.at(place):
                results = self._operation(operation, [held[operand] for operand in operation.operands], place, depth)
            held.update(zip(operation.results, results, strict=True))
        raise TraceError(f"the function {name!r} returns nothing", code="TP402")

    def _operation(self, operation: Any, operands: list[Value], place: Location, depth: int) -> list[Value]:
        if operation.name in ("func.call", "call", "stablehlo.composite"):
            called = operation.attributes["callee" if "callee" in operation.attributes else "decomposition"]
            return self.function(called.value, operands, place, depth + 1)
        types = [type_of(result.type) for result in operation.results]
        known = [each or _STAND_IN for each in types]
        mark = len(self.recorder.ops)
        try:
            if None in types:
                raise Unsupported(
                    f"a result is {next(r.type for r, t in zip(operation.results, types, strict=True) if t is None)}"
                )
            results = self._translated(operation, operands, known)
            if [each.type for each in results] == known:
                return results
            reason = f"its formula gives {', '.join(str(each.type) for each in results)}"
        except Unsupported as error:
            reason = str(error)
        except RecordingError as error:
            reason = error.message
        take_back(self.recorder, mark)
        return self._opaque(operation.name, operands, known, reason)

    def _translated(self, operation: Any, operands: list[Value], types: list[TensorType]) -> list[Value]:
        match operation.name:
            case "stablehlo.constant":
                return [self._constant(operation, types[0])]
            case "stablehlo.batch_norm_inference":
                x, scale, offset, mean, variance = operands
                eps, axis = (operation.attributes[name].value for name in ("epsilon", "feature_index"))
                return [nn.batch_norm_inference(x, mean, variance, scale, offset, _short(eps), axis)]
            case "stablehlo.batch_norm_training":
                eps, axis = (operation.attributes[name].value for name in ("epsilon", "feature_index"))
                x, scale, offset = operands
                return list(nn.batch_norm_training(x, scale, offset, _short(eps), axis))
            case "stablehlo.reduce" if len(operands) == 4:
                return self._picked(operation, operands, types)
            case "stablehlo.scatter":
                return [self._scatter_add(operation, operands)]
            case "stablehlo.get_dimension_size":
                extent = operands[0].shape[operation.attributes["dimension"].value]
                return [constant.splat(self.recorder, np.int32(extent), "i32")]
        name, params = equation_of(operation)
        seed = operands[1] if name.startswith("reduce_") else None
        kind = name.rpartition("_")[2]
        if name == "select":
            mask = movement.spread(operands[0], types[0].shape)
            return [elementwise.select(mask, operands[1], operands[2])]
        if name == "convert":
            return [elementwise.cast(operands[0], types[0].dtype)]
        if name == "gather" and params["index_vector_dim"] == operands[1].ndim:
            operands[1] = movement.expand_dims(operands[1], operands[1].ndim)
        used = operands[:1] if seed is not None or operation.name in _SHAPED else operands
        literals = tuple(self._number(each) for each in used)
        translate = translations().get(name)
        if translate is None:
            raise Unsupported(f"topos has no formula for {operation.name} by {kind}")
        if name.startswith("reduce_window") and seed is not None and not self._is_neutral(kind, seed):
            params["start"] = self._number(seed)
            if kind in ("prod", "and", "or") or params["start"] is None:
                raise Unsupported("its windows start from a number of their own")
        made = translate(Equation(self.recorder, name, params, tuple(used), literals, tuple(types)))
        results = [made] if isinstance(made, Value) else list(made)
        if seed is not None and not self._is_neutral(kind, seed):
            results = [elementwise.apply(_COMBINED[kind], (results[0], movement.spread(seed, types[0].shape)))]
        return results

    def _picked(self, operation: Any, operands: list[Value], types: list[TensorType]) -> list[Value]:
        """Reduces pairs of an element and its index to the greatest or smallest element and its place."""
        x, places, seed, _ = operands
        axes = numbers_of(operation.attributes["dimensions"])
        iota = self.recorder.ops[places.index]
        if len(axes) != 1 or iota.name != "iota" or iota.attributes["axis"] != axes[0] or places.shape != x.shape:
            raise Unsupported("it reduces pairs that are no elements with their indices along one axis")
        name = picked(operation, numpy_dtype(x.type.dtype))
        extreme = name.removeprefix("arg")
        if not self._is_neutral(extreme, seed):
            raise Unsupported("its pairs start from a number of their own")
        value, place = getattr(x, extreme)(axis=axes[0]), getattr(x, name)(axes[0])
        return [elementwise.cast(value, types[0].dtype), elementwise.cast(place, types[1].dtype)]

    def _scatter_add(self, operation: Any, operands: list[Value]) -> Value:
        """Adds rows by indices along one axis; rows of indices outside are left out."""
        if len(operands) != 3:
            raise Unsupported("it scatters into several values")
        (x, indices, updates), axis = operands, scatter_axis(operation)
        if indices.type.dtype not in ("i32", "i64"):
            indices = elementwise.cast(indices, "i64")
        if numbers_end(operation) < indices.ndim:
            indices = movement.reshape(indices, indices.shape[:-1])
        lead = (*(1,) * axis, *indices.shape, *(1,) * (x.ndim - axis - 1))
        if x.shape[axis] == 0:
            return x
        near = elementwise.clip(indices, 0, x.shape[axis] - 1)
        inside = movement.reshape(elementwise.apply(np.equal, (indices, near)), lead)
        zero = numpy_dtype(x.type.dtype).type(0)
        rows = elementwise.select(inside, updates, zero)
        return self.recorder.record("scatter_add", (x, near, elementwise.cast(rows, x.type.dtype)), {"axis": axis})

    def _number(self, value: Value) -> Any:
        """Gives the number that a value is a splat of."""
        op = self.recorder.ops[value.index]
        held = op.attributes["value"] if op.name == "constant" else None
        return held if isinstance(held, np.generic) else None

    def _is_neutral(self, kind: str, seed: Value) -> bool:
        """Tells whether a reducer's seed changes nothing."""
        number = self._number(seed)
        if number is None:
            return False
        if kind in _NEUTRAL:
            return bool(number == _NEUTRAL[kind])
        if seed.type.dtype in FLOATS:
            return bool(number == (-np.inf if kind == "max" else np.inf))
        if seed.type.dtype == "bool":
            return bool(number) == (kind == "min")
        limits = np.iinfo(seed.dtype)
        return bool(number == (limits.min if kind == "max" else limits.max))

    def _constant(self, operation: Any, kind: TensorType) -> Value:
        try:
            array = array_of(operation.attributes["value"], kind)
        except (ValueError, TypeError) as error:
            raise Unsupported(str(error)) from None
        if isinstance(array, np.generic):
            return constant.splat(self.recorder, array, kind.dtype, kind.shape)
        return constant.lift(self.recorder, array)

    def _opaque(self, name: str, operands: Sequence[Value], types: list[TensorType], note: str) -> list[Value]:
        if not types:
            return []
        made = self.recorder.record("opaque", tuple(operands), {"foreign": name, "types": tuple(types), "note": note})
        if len(types) == 1:
            return [made]
        return [self.recorder.record("pick", (made,), {"index": at, "type": each}) for at, each in enumerate(types)]


def _short(number: float) -> float:
    """Gives the shortest decimal of an f32 attribute: 1e-05 for 9.99999974e-06."""
    return float(str(np.float32(number)))
