"""The walk over a graph: every node is folded, translated by its formula, or recorded as an opaque op."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from topos_core.errors import RecordingError, TraceError
from topos_core.importers.onnx_model.attributes import attributes_of, free_names, graphs_of
from topos_core.importers.onnx_model.catalog import key_of, translations
from topos_core.importers.onnx_model.folding import fold, is_small
from topos_core.importers.onnx_model.foreign import expanded, infer_types, record_foreign
from topos_core.importers.onnx_model.initializer import array_of
from topos_core.importers.onnx_model.node import Foreign, Held, Node, Translate, Unsupported
from topos_core.importers.onnx_model.order import in_order
from topos_core.importers.onnx_model.places import Listing
from topos_core.importers.rollback import take_back
from topos_core.recording import constant
from topos_core.recording.recorder import Recorder
from topos_core.recording.value import Value
from topos_core.tape.span import Location
from topos_core.tape.type import TensorType, dtype_name

MAX_NESTING: Final = 16


@dataclass(slots=True)
class Walk:
    """Everything that the nodes of one model share.

    Args:
        recorder: What they are recorded with.
        folder: The model's own, for external data.
        opsets: Versions by domain.
        ir_version: The model's.
        listing: Their places.
        declared: Types that the model declares for its values, by name.
        held: What each name stands for now.
        lifted: Known arrays that were recorded, by name.
        within: The place of the node that ONNX's own definition is walked for.
        defining: How many such definitions are being walked, one inside the other.
    """

    recorder: Recorder
    folder: str
    opsets: Mapping[str, int]
    ir_version: int
    listing: Listing
    declared: dict[str, Any] = field(default_factory=dict)
    held: dict[str, Held] = field(default_factory=dict)
    lifted: dict[str, Value] = field(default_factory=dict)
    within: Location | None = None
    defining: int = 0

    def graph(self, graph: Any, depth: int = 0, scope: tuple[str, ...] = ()) -> None:
        """Walks a graph whose inputs stand in `held` already.

        Raises:
            TraceError: TP402, it is nested too deeply, or reads a name that nothing makes.
        """
        if depth > MAX_NESTING:
            raise TraceError(f"graphs are nested more than {MAX_NESTING} deep", code="TP402")
        self.declared.update(
            {each.name: each.type for each in (*graph.value_info, *graph.output) if each.HasField("type")}
        )
        for tensor in graph.initializer:
            self.bind(tensor.name, array_of(tensor, self.folder))
        for sparse in graph.sparse_initializer:
            self.bind(sparse.values.name, None)
        for node in in_order(graph.node):
            self._node(node, depth, scope)

    def bind(self, name: str, array: np.ndarray | None) -> None:
        """Binds an initialiser: numbers where it is small, a parameter where it is not, foreign where topos lacks its type."""
        if array is None:
            with self.recorder.at(self.listing.location(None, name)):
                self.held[name] = record_foreign(
                    self.recorder, "initializer", (), (name,), ("of an element type that topos does not have",), ""
                )[0]
        else:
            self.held[name] = array if is_small(array) else _Large(array)  # type: ignore[assignment]

    def value(self, name: str) -> Value:
        """Gives the recorded value of a name, for results."""
        held = self.get(name)
        if isinstance(held, Foreign):
            return held.value
        return held if isinstance(held, Value) else self._lift(name, held)

    def get(self, name: str) -> Held:
        """Gives what a name stands for; an initialiser becomes a parameter when it is first read.

        Raises:
            TraceError: TP402, nothing makes it.
        """
        if name not in self.held:
            raise TraceError(f"the graph reads {name!r}, which no node, input or initialiser makes", code="TP402")
        held: Any = self.held[name]
        if isinstance(held, _Large):
            held = self.held[name] = self._parameter(name, held.array)
        return held  # type: ignore[no-any-return]

    def _parameter(self, name: str, array: np.ndarray) -> Value:
        recorder = self.recorder
        value = recorder.source("parameter", TensorType(dtype_name(array.dtype) or "f32", array.shape))
        recorder.parameters.append(value.index)
        recorder.defaults[value.index] = array
        recorder.names[value.index] = name
        return value

    def _lift(self, name: str, array: Any) -> Value:
        """Records known numbers once a name."""
        value = self.lifted.get(name)
        if value is None:
            dtype = dtype_name(array.dtype) or "f32"
            value = (
                constant.table(self.recorder, array, dtype)
                if array.ndim
                else constant.splat(self.recorder, array[()], dtype)
            )
            self.lifted[name] = value
        return value

    def _node(self, node: Any, depth: int, scope: tuple[str, ...]) -> None:
        with self.recorder.at(self.within or self.listing.of_node(node, scope)):
            if node.op_type == "If" and key_of(node.domain, "If") == "If":
                condition = self.get(node.input[0])
                if isinstance(condition, np.ndarray) and condition.size == 1:
                    return self._branch(node, bool(condition.reshape(-1)[0]), depth, scope)
            self._settle(node, self._translated(node))
        return None

    def _branch(self, node: Any, condition: bool, depth: int, scope: tuple[str, ...]) -> None:
        """Walks into the branch that a known condition chooses."""
        chosen = {each.name: each.g for each in node.attribute}["then_branch" if condition else "else_branch"]
        outer = dict(self.held)
        self.graph(chosen, depth + 1, scope)
        results = [self.get(output.name) for output in chosen.output]
        self.held = outer
        self._settle(node, results)

    def _settle(self, node: Any, results: Iterable[Held]) -> None:
        for name, result in zip(node.output, results, strict=False):
            if name:
                if result is None:
                    raise TraceError(f"{node.op_type} {node.name!r} gives no {name!r}", code="TP402")
                self.held[name] = result
                self.lifted.pop(name, None)

    def _translated(self, node: Any) -> list[Held]:
        held = tuple(self.get(name) if name else None for name in node.input)
        translate = translations().get(key_of(node.domain, node.op_type))
        attributes = attributes_of(node, self.folder)
        version = self.opsets.get(node.domain, self.opsets.get("", 1))
        seen = Node(
            self.recorder, node.op_type, node.domain, version, attributes, held, tuple(node.output),
            lambda at: self._lift(node.input[at], held[at]),
        )  # fmt: skip
        reason = next((each.why for each in held if isinstance(each, Foreign)), None)
        if translate is None:
            reason = reason or f"topos has no formula for {key_of(node.domain, node.op_type)}"
        elif reason is None:
            results, reason = self._formula(seen, translate)
            if results is not None:
                return results
        if not any(isinstance(each, Foreign) for each in held) and self.defining < MAX_NESTING:
            defined = self._defined(node)
            if defined is not None:
                return defined
        return self._opaque(node, reason or "")

    def _defined(self, node: Any) -> list[Held] | None:
        """Walks what ONNX defines an operator by; all of it must have formulas, else the operator stays whole."""
        named = {name: self.get(name) for name in node.input if name}
        nodes = expanded(node, named, self.declared, self.opsets, self.ir_version)
        if nodes is None:
            return None
        recorder, mark, outer = self.recorder, len(self.recorder.ops), dict(self.held)
        around, self.within = self.within, self.within or self.listing.of_node(node)
        self.defining += 1
        try:
            for inner in nodes:
                self._node(inner, 0, ())
            if all(op.name != "opaque" for op in recorder.ops[mark:]):
                return [self.get(name) if name else None for name in node.output]
        finally:
            self.within = around
            self.defining -= 1
            self.held = outer
        self._take_back(mark)
        return None

    def _formula(self, node: Node, translate: Translate) -> tuple[list[Held] | None, str | None]:
        """Runs a formula; what it recorded is taken back where it gives up."""
        recorder = self.recorder
        mark = len(recorder.ops)
        try:
            folded = fold(node, translate)
            if folded is not None:
                return list(folded), None
            results = translate(node)
            listed = [results] if isinstance(results, (Value, np.ndarray)) else list(results)
            return [np.asarray(each) if isinstance(each, (np.ndarray, np.generic)) else each for each in listed], None
        except Unsupported as error:
            reason = str(error)
        except RecordingError as error:
            reason = error.message
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            reason = f"its formula cannot read it: {type(error).__name__}: {error}"
        self._take_back(mark)
        return None, reason

    def _take_back(self, mark: int) -> None:
        take_back(self.recorder, mark)
        self.lifted = {name: value for name, value in self.lifted.items() if value.index < mark}

    def _opaque(self, node: Any, reason: str) -> list[Held]:
        names = [name for name in dict.fromkeys((*node.input, *free_names(graphs_of(node)))) if name]
        held = {name: self.get(name) for name in names}
        operands = [self.value(name) for name in names]
        types = infer_types(node, held, self.declared, self.opsets, self.ir_version)
        return record_foreign(
            self.recorder, key_of(node.domain, node.op_type), operands, tuple(node.output), types, reason
        )


@dataclass(frozen=True, slots=True)
class _Large:
    """An initialiser that nothing has read yet."""

    array: np.ndarray
