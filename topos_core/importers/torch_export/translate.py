"""From an exported graph to recorded ops: every node through its formula, nested graphs entered, the rest opaque."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from torch import Tensor
from torch.fx import GraphModule, Node

from topos_core.errors import RecordingError
from topos_core.importers.torch_export.aten.views import PARTS, VIEWS, part_of
from topos_core.importers.torch_export.call import Call, NoFormula
from topos_core.importers.torch_export.catalog import formula_of
from topos_core.importers.torch_export.dtypes import type_of
from topos_core.importers.torch_export.memory import Memory, View
from topos_core.importers.torch_export.places import Places
from topos_core.recording import elementwise
from topos_core.recording.recorder import Recorder
from topos_core.recording.value import Value
from topos_core.tape.type import TensorType

_SKIPPED: Final = (
    "_assert_tensor_metadata", "_assert_async", "_assert_scalar", "sym_constrain_range", "sym_constrain_range_for_size",
)  # fmt: skip
_ENTERED: Final = ("wrap_with_autocast", "wrap_with_set_grad_enabled", "hints_wrapper")


class Foreign:
    """A value that topos has no type for (complex, sparse, of an extent that depends on data): only what it was made from."""

    __slots__ = ("name", "sources")

    def __init__(self, name: str, sources: Sequence[Value]) -> None:
        self.name = name
        self.sources = tuple(sources)


class Translator:
    """Walks graphs in order; `memory.values` holds what every node became."""

    def __init__(self, recorder: Recorder, places: Places) -> None:
        self.recorder = recorder
        self.memory = Memory()
        self.numbered: dict[int, Value] = {}
        self._places = places
        self._parameters: dict[Any, Callable[[], Value]] = {}
        self._position: dict[Any, int] = {}
        self._current: dict[Any, int] = {}
        self._storages: dict[Any, dict[int | None, list[Any]]] = {}

    def declare(self, node: Any, make: Callable[[], Value]) -> None:
        """Says how a placeholder's value is made when it is first read."""
        self._parameters[node] = make

    def run(self, graph: Any, owner: Any) -> Any:
        """Records a graph's nodes; gives what its output names, nested as there."""
        for at, node in enumerate(graph.nodes):
            self._position[node] = at
        for node in graph.nodes:
            self._current[graph] = self._position[node]
            if node.op == "call_function":
                with self.recorder.at(self._places.of(node)):
                    self._call(node)
                self._number(node)
            elif node.op == "get_attr":
                self.memory.values[node] = _attribute(owner, str(node.target))
            elif node.op == "output":
                return self._read(node.args[0])
        return ()

    def value_of(self, node: Any) -> Any:
        """Gives what a node became; a parameter is recorded when it is first asked for."""
        values = self.memory.values
        if node not in values:
            make = self._parameters.get(node)
            values[node] = Foreign(str(node), ()) if make is None else make()
        return values[node]

    def _number(self, node: Any) -> None:
        number = (node.meta.get("custom") or {}).get("topos")
        value = self.memory.values.get(node)
        if isinstance(number, int) and isinstance(value, Value):
            self.numbered[number] = value

    def _call(self, node: Any) -> None:
        target = node.target
        if target is operator.getitem:
            held, index = self.value_of(node.args[0]), node.args[1]
            self.memory.values[node] = held[index] if isinstance(held, (list, tuple)) else held
            self._note_part(node)
            return
        name = _name(target)
        if name in _SKIPPED:
            self.memory.values[node] = None
        elif name in _ENTERED:
            self.memory.values[node] = self._enter(node)
        elif hasattr(target, "_schema"):
            self._operator(node, name)
        else:
            self.memory.values[node] = self._opaque(name, node, self._given(node.args, node.kwargs), "")

    def _enter(self, node: Any) -> Any:
        """Records the graph of a region (autocast, no_grad) in place."""
        at, inner = next(
            (at, each)
            for at, each in enumerate(map(self.value_of_argument, node.args))
            if isinstance(each, GraphModule)
        )
        names = [each for each in inner.graph.nodes if each.op == "placeholder"]
        for placeholder, argument in zip(names, node.args[at + 1 :], strict=True):
            self.memory.values[placeholder] = self.value_of_argument(argument)
            if isinstance(argument, Node):
                self.memory.see(placeholder, View(argument, lambda base: base, lambda _, new: new))
        return self.run(inner.graph, inner)

    def value_of_argument(self, argument: Any) -> Any:
        """Gives an argument as it is, nodes as what they became."""
        return self.value_of(argument) if isinstance(argument, Node) else argument

    def _read(self, argument: Any) -> Any:
        if isinstance(argument, (list, tuple)):
            return [self._read(each) for each in argument]
        if isinstance(argument, Mapping):
            return {key: self._read(each) for key, each in argument.items()}
        return self.value_of_argument(argument)

    def _operator(self, node: Any, name: str) -> None:
        schema = node.target._schema
        arguments = _bound(schema, node.args, node.kwargs)
        given = [self._read(argument) for argument in arguments]
        written = [
            at for at, each in enumerate(schema.arguments) if each.alias_info is not None and each.alias_info.is_write
        ]
        in_place = bool(written) and name.endswith("_") and not name.endswith("__")
        plain = name.rstrip("_") if in_place else name
        call = Call(self.recorder, f"aten.{plain}", _results(node))
        result = self._recorded(call, plain, schema.overload_name, given, node)
        if in_place and isinstance(result, Value) and isinstance(given[written[0]], Value):
            result = _fitting(result, given[written[0]].type)
            self._write(arguments[written[0]], result, name)
            self.memory.see(node, View(arguments[written[0]], lambda base: base, lambda _, new: new))
        else:
            self._note_view(node, plain, arguments, given)
        self.memory.values[node] = result
        for position, value in call.writes.items():
            self._write(arguments[position], value, name)

    def _recorded(self, call: Call, name: str, overload: str, given: list[Any], node: Any) -> Any:
        """Records a call's formula; where it has none, or one that does not fit, an opaque op."""
        if any(isinstance(each, Foreign) for each in _flat(given)):
            return self._opaque(call.name, node, given, "it reads a value that topos has no type for")
        formula = formula_of(name, overload)
        if formula is None:
            return self._opaque(call.name, node, given, "")
        mark = len(self.recorder.ops)
        try:
            return _checked(call, formula(call, *given))
        except Exception as error:  # whatever a formula cannot do, the model is still planned; the note says why
            note = _why(error)
            del self.recorder.ops[mark:]
            self.recorder.last_error = None
            call.writes.clear()
            return self._opaque(call.name, node, given, note)

    def _opaque(self, name: str, node: Any, given: Any, note: str) -> Any:
        """Records a foreign op; results that topos has no type for lead on to what reads them."""
        operands = tuple(_sources(given))
        value = node.meta.get("val")
        results = list(value) if isinstance(value, (list, tuple)) else [value]
        types = [type_of(each) for each in results]
        kept = tuple(each for each in types if each is not None)
        made: list[Any] = []
        if kept:
            attributes = {"foreign": name, "types": kept, "note": note}
            whole = self.recorder.record("opaque", operands, attributes)
            made = [whole, *(self._pick(whole, at, each) for at, each in enumerate(kept) if at)]
        rest = iter(made)
        found = [Foreign(name, operands) if each is None else next(rest) for each in types]
        return found if isinstance(value, (list, tuple)) else found[0]

    def _pick(self, whole: Value, index: int, type: TensorType) -> Value:
        return self.recorder.record("pick", (whole,), {"index": index, "type": type})

    def _note_view(self, node: Any, name: str, arguments: Sequence[Any], given: Sequence[Any]) -> None:
        """Remembers how a node sees its first argument's memory."""
        maker = VIEWS.get(name)
        if maker is not None and arguments and isinstance(arguments[0], Node) and isinstance(given[0], Value):
            call = Call(self.recorder, f"aten.{name}", _results(node))
            replay, restore = maker(call, *given)
            self.memory.see(node, View(arguments[0], replay, restore))

    def _note_part(self, node: Any) -> None:
        """Remembers which part of a tensor's memory one of several results sees."""
        made, index = node.args
        name = _name(made.target) if isinstance(made, Node) and hasattr(made.target, "_schema") else ""
        if name not in PARTS:
            return
        whole, *_, dim = _bound(made.target._schema, made.args, made.kwargs)
        x, parts = self.value_of(whole), self.value_of(made)
        if isinstance(x, Value) and isinstance(parts, list) and all(isinstance(each, Value) for each in parts):
            extents = [1] * len(parts) if name == "unbind" else [each.type.shape[dim] for each in parts]
            replay, restore = part_of(Call(self.recorder, f"aten.{name}", _results(node)), name, x, dim, extents, index)
            self.memory.see(node, View(whole, replay, restore))

    def _write(self, node: Any, value: Value, name: str) -> None:
        if not isinstance(node, Node):
            return

        def pending(each: Any) -> bool:
            return any(self._position[user] > self._current[each.graph] for user in each.users)

        def unknown(old: Value) -> Value:
            attributes = {"foreign": f"aten.{name}", "types": (old.type,), "note": "a write through a view"}
            return self.recorder.record("opaque", (old, value), attributes)

        self.memory.write(node, value, pending, unknown)
        root = self.memory.root_of(node)
        for other in self._sharing(node):
            held = self.memory.values.get(other)
            if isinstance(held, Value) and self.memory.root_of(other) is not root and pending(other):
                self.memory.values[other] = unknown(held)

    def _sharing(self, node: Any) -> list[Any]:
        """Lists the nodes of a graph whose tensors lie in the same memory."""
        if node.graph not in self._storages:
            table = self._storages[node.graph] = {}
            for each in node.graph.nodes:
                table.setdefault(_storage(each), []).append(each)
        storage = _storage(node)
        return [] if storage is None else self._storages[node.graph][storage]

    def _given(self, args: Any, kwargs: Any) -> list[Any]:
        return [*(self._read(each) for each in args), *(self._read(each) for each in kwargs.values())]


def _storage(node: Any) -> int | None:
    value = node.meta.get("val")
    return value.untyped_storage()._cdata if isinstance(value, Tensor) and type_of(value) is not None else None


def _why(error: Exception) -> str:
    if isinstance(error, RecordingError):
        return error.message
    return str(error) if isinstance(error, NoFormula) else f"its formula failed: {type(error).__name__}: {error}"


def _checked(call: Call, result: Any) -> Any:
    """Holds a formula's results to the types that torch gives."""
    if not isinstance(result, (list, tuple)):
        return _one(call.results[0] if call.results else None, result)
    return [_one(expected, each) for expected, each in zip(call.results, result, strict=True)]


def _one(expected: TensorType | None, result: Any) -> Any:
    if expected is None or not isinstance(result, Value):
        return result
    if result.type.shape != expected.shape:
        raise NoFormula(f"its formula gives {result.type}, torch {expected}")
    return elementwise.cast(result, expected.dtype)


def _fitting(result: Value, type: TensorType) -> Value:
    """Casts and broadcasts what is written to what it is written into."""
    cast = elementwise.cast(result, type.dtype)
    if cast.type.shape == type.shape:
        return cast
    return cast.recorder.record("broadcast", (cast,), {"shape": type.shape})


def _results(node: Any) -> list[TensorType | None]:
    value = node.meta.get("val")
    return [type_of(each) for each in (value if isinstance(value, (list, tuple)) else [value])]


def _bound(schema: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """Puts a call's arguments in the schema's order, defaults filled in."""
    found: list[Any] = []
    for at, argument in enumerate(schema.arguments):
        if at < len(args):
            found.append(args[at])
        elif argument.name in kwargs:
            found.append(kwargs[argument.name])
        else:
            found.append(argument.default_value if argument.has_default_value() else None)
    return found


def _name(target: Any) -> str:
    schema = getattr(target, "_schema", None)
    if schema is not None:
        space, _, name = schema.name.partition("::")
        return name if space == "aten" else f"{space}.{name}"
    name = getattr(target, "_name", None) or getattr(target, "__name__", None) or str(target)
    return str(name)


def _sources(given: Any) -> list[Value]:
    """Lists the values among arguments, and those behind foreign ones, once each."""
    found: dict[int, Value] = {}
    for each in _flat(given):
        for value in each.sources if isinstance(each, Foreign) else (each,):
            if isinstance(value, Value):
                found.setdefault(value.index, value)
    return list(found.values())


def _flat(given: Any) -> list[Any]:
    if isinstance(given, (list, tuple)):
        return [leaf for each in given for leaf in _flat(each)]
    if isinstance(given, Mapping):
        return [leaf for each in given.values() for leaf in _flat(each)]
    return [given]


def _attribute(owner: Any, path: str) -> Any:
    for part in path.split("."):
        owner = getattr(owner, part)
    return owner
