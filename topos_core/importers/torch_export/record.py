"""From a module of torch to a tape: builds it without weights, exports it, records its graph, finds its readers."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Final

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from topos_core.errors import RecordingError, ToposError, TraceError
from topos_core.importers.torch_export.dtypes import array_of, is_real, torch_dtype, type_of
from topos_core.importers.torch_export.frames import Calls, watching
from topos_core.importers.torch_export.keeping import kept_at
from topos_core.importers.torch_export.observation import Reading, readers, readings
from topos_core.importers.torch_export.places import Places, entry_place
from topos_core.importers.torch_export.quiet import quiet
from topos_core.importers.torch_export.results import Results
from topos_core.importers.torch_export.target import Target, build
from topos_core.importers.torch_export.translate import Translator
from topos_core.importers.torch_export.weights import faked
from topos_core.importers.torch_export.wrappers import unwrapped
from topos_core.recording import constant
from topos_core.recording import trace as recording
from topos_core.recording.arguments import bind, place_inputs
from topos_core.recording.finish import finish
from topos_core.recording.location import call_user, frame_of, role_of
from topos_core.recording.model import entry_of
from topos_core.recording.randomness import RandomStates, generators_noted
from topos_core.recording.recorder import Recorder
from topos_core.recording.recorder import recording as current
from topos_core.recording.signature import arguments_of, code_of
from topos_core.recording.structure import flatten
from topos_core.recording.value import Value
from topos_core.tape.span import Location, Span
from topos_core.tape.tape import Tape
from topos_core.tape.type import FLOATS, TensorType

_SOURCES: Final = ("input", "parameter", "constant")
_NEEDS_ELEMENTS: Final = ("GuardOnDataDependentSymNode", "DataDependentOutputException", "UserError")
_STATE: Final = ("PARAMETER", "BUFFER", "CONSTANT_TENSOR")


def record_torch(
    target: Target,
    positional: tuple[Any, ...] = (),
    named: Mapping[str, Any] | None = None,
    *,
    sources: Mapping[str, str] | None = None,
    dims: Mapping[str, int] | None = None,
) -> Tape:
    """Exports what user code marked and gives its tape.

    Args:
        target: A class (built without arguments, in evaluation mode unless it calls `train()` itself), an instance (in
            the mode that it is in), a factory or a function.
        positional, named: Input specs of `forward`; without any, those of the target's own mark.
        sources: Texts that take precedence over files, by path.
        dims: Extents that specs name.

    Raises:
        TraceError: TP401: control flow depends on a tensor's elements; TP402: user code raised; TP408: no module.
        ConfigurationError: TP502, TP503, TP504: the specs.
    """
    entry = entry_of(target.found)
    if entry is not None and not positional and not named:
        positional, named = entry.positional, dict(entry.specs)
    recorder = Recorder(sources)
    with _explained(recorder):
        module, wrappers = unwrapped(build(target, weights=False))
    if isinstance(module, torch.jit.ScriptModule):
        raise TraceError(
            f"{_title(target)} is compiled by torch.jit, which keeps no Python to trace; give the nn.Module that it was made from",
            code="TP408",
        )
    if not isinstance(module, torch.nn.Module):
        if callable(module):
            return recording.record(module, positional, named, sources=sources, dims=dims)
        raise TraceError(
            f"{_title(target)}() gives a {type(module).__name__}, not a module; return an nn.Module", code="TP408"
        )
    place = entry_place(target.found, recorder.sources)
    bound = bind(module.forward, positional, dict(named or {}))
    code = code_of(module.forward)
    own = code is not None and role_of(code) == "user"
    declared = arguments_of(code, recorder.sources) if own else lambda name: place
    with current(recorder):
        place_inputs(recorder, bound, declared, dims)
        arguments, keywords = list(bound.args), dict(bound.kwargs)
        leaves = pytree.tree_leaves((tuple(arguments), keywords))
        recorder.random = RandomStates(inspect.unwrap(module.forward))
        with generators_noted(recorder.random):
            exported, calls, found, shape = _exported(recorder, module, wrappers, tuple(arguments), keywords)
        places = Places(calls, module, recorder.sources, place)
        translator = Translator(recorder, places)
        _declare(translator, exported, module, leaves, place)
        results = translator.run(exported.graph_module.graph, exported.graph_module)
        with recorder.at(place):
            structure, values = flatten(
                recorder, shape.around(_user_outputs(exported, results), exported.call_spec.out_spec)
            )
        _observe(recorder, translator, places, found, exported)
        recorder.note_last_draws(values)
        return finish(recorder, structure, values, code if own else None)


def _title(target: Target) -> str:
    return str(getattr(target.found, "__name__", type(target.found).__name__))


def weights_of_torch(target: Target, tape: Tape) -> Mapping[int, np.ndarray]:
    """Builds a target for real, from torch's seed 0, and gives the elements of the tape's parameters.

    Raises:
        TraceError: TP402: user code raised; TP406: the weights are too large.
    """
    with _explained(Recorder(tape.sources)):
        module = build(target, weights=True)
    defaults = tape.defaults
    return {**defaults, **{value: array_of(tensor) for value, tensor in held_by(module, tape) if value not in defaults}}


def held_by(module: Any, tape: Tape) -> Iterator[tuple[int, Any]]:
    """Gives a tape's parameters, each with the parameter or buffer that it is of a module like the recorded one."""
    module, _ = unwrapped(module)
    held = dict(module.named_parameters(remove_duplicate=False))
    held.update(module.named_buffers(remove_duplicate=False))
    for value in tape.parameters:
        tensor = held.get(tape.names.get(value, ""))
        if tensor is not None and type_of(tensor) == tape.type_of(value):
            yield value, tensor


def with_weights(tape: Tape, values: Mapping[int, np.ndarray]) -> Tape:
    """Gives the tape with snapshots of its parameters."""
    return replace(tape, defaults=dict(values))


def _exported(
    recorder: Recorder, module: Any, wrappers: tuple[Any, ...], arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[Any, Calls, list[Reading], Results]:
    """Exports a module; once more without the hooks that fail on fake tensors, where they took the export with them."""
    unrun: frozenset[int] = frozenset()
    with _explained(recorder):
        while True:
            try:
                return _attempt(module, wrappers, arguments, keywords, unrun)
            except _HooksFailed as failure:
                if failure.hooks <= unrun:
                    raise failure.error from None
                unrun |= failure.hooks


class _HooksFailed(Exception):
    """An export that failed after some hooks did."""

    def __init__(self, hooks: frozenset[int], error: Exception) -> None:
        super().__init__(str(error))
        self.hooks = hooks
        self.error = error


def _attempt(
    module: Any, wrappers: tuple[Any, ...], arguments: tuple[Any, ...], keywords: dict[str, Any], unrun: frozenset[int]
) -> tuple[Any, Calls, list[Reading], Results]:
    mode = FakeTensorMode(allow_non_fake_inputs=True)

    def fake(leaf: Any) -> Any:
        if not isinstance(leaf, Value):
            return leaf
        with mode:
            return torch.empty(leaf.type.shape, dtype=torch_dtype(leaf.type.dtype))

    given, options = pytree.tree_map(fake, (arguments, keywords))
    with (
        quiet(),
        faked(module, mode),
        torch.no_grad(),
        watching() as calls,
        readers(module, calls, unrun, wrappers) as watch,
    ):
        shape = Results()
        taking_apart = module.register_forward_hook(shape.take_apart)
        try:
            exported = call_user(torch.export.export, (module, given), {"kwargs": options, "strict": False})
        except Exception as error:
            if watch.failing:
                raise _HooksFailed(frozenset(watch.failing), error) from None
            raise
        finally:
            taking_apart.remove()
    del given, options
    return exported, calls, readings(watch), shape


def _declare(translator: Translator, exported: Any, module: Any, leaves: list[Any], place: Location) -> None:
    """Says what every placeholder of the graph stands for."""
    recorder = translator.recorder
    nodes = {node.name: node for node in exported.graph.nodes if node.op == "placeholder"}
    user = iter(leaves)
    written = _written(exported)
    for spec in exported.graph_signature.input_specs:
        node = nodes.get(getattr(spec.arg, "name", ""))
        if spec.kind.name == "USER_INPUT":
            leaf = next(user, None)
            if node is None:
                continue
            if isinstance(leaf, Value):
                translator.memory.values[node] = leaf
            elif isinstance(leaf, torch.Tensor):
                translator.declare(node, _state(recorder, node.name, leaf, leaf, place, fixed=False))
            else:
                translator.memory.values[node] = leaf
        elif spec.kind.name in _STATE and node is not None:
            held = exported.constants.get(spec.target) if spec.kind.name == "CONSTANT_TENSOR" else None
            held = _find(module, exported, spec.target) if held is None else held
            fixed = spec.kind.name != "PARAMETER" and node not in written
            lifted = spec.kind.name == "CONSTANT_TENSOR"
            make = _state(recorder, str(spec.target), held, node.meta["val"], place, fixed=fixed, lifted=lifted)
            translator.declare(node, make)


def _state(
    recorder: Recorder, name: str, held: Any, shown: Any, place: Location, *, fixed: bool, lifted: bool = False
) -> Any:
    """Makes a parameter when it is first read; index tables and small literals become constants."""

    def make() -> Value:
        type = type_of(shown)
        if type is None:
            raise recorder.error(f"{name} is {shown.dtype}, which topos has no type for")
        real = held is not None and is_real(held)
        small = type.size <= (constant.LARGEST_FLOAT_TABLE if type.dtype in FLOATS else constant.LARGEST_TABLE)
        if real and fixed and small and (lifted or type.dtype not in FLOATS):
            return _constant(recorder, array_of(held), type)
        value = recorder.source("parameter", type)
        recorder.parameters.append(value.index)
        recorder.names[value.index] = name
        if real:
            recorder.defaults[value.index] = array_of(held)
        return value

    return make


def _constant(recorder: Recorder, array: np.ndarray, type: TensorType) -> Value:
    if type.shape == ():
        return constant.splat(recorder, array[()], type.dtype)
    return constant.table(recorder, array, type.dtype)


def _find(module: Any, exported: Any, path: str) -> Any:
    """Finds a parameter or buffer by its path in the module itself, whose fake ones were put back."""
    owner: Any = module
    for part in path.split("."):
        owner = getattr(owner, part, None)
    return owner if isinstance(owner, torch.Tensor) else exported.constants.get(path)


def _written(exported: Any) -> set[Any]:
    """Finds the placeholders that the graph writes into, directly or by batch norm's running statistics."""
    found: set[Any] = set()
    for node in exported.graph.nodes:
        schema = getattr(node.target, "_schema", None) if node.op == "call_function" else None
        if schema is None:
            continue
        for argument, given in zip(schema.arguments, node.args, strict=False):
            if argument.alias_info is not None and argument.alias_info.is_write and isinstance(given, torch.fx.Node):
                found.add(given)
    return found


def _user_outputs(exported: Any, results: Any) -> list[Any]:
    specs = exported.graph_signature.output_specs
    return [
        result
        if getattr(spec.arg, "name", None) is not None or result is not None
        else getattr(spec.arg, "value", None)
        for spec, result in zip(specs, results, strict=True)
        if spec.kind.name == "USER_OUTPUT"
    ]


def _observe(recorder: Recorder, translator: Translator, places: Places, found: list[Reading], exported: Any) -> None:
    for reading in found:
        value = translator.numbered.get(reading.node)
        if value is None or (reading.kind == "kept" and recorder.ops[value.index].name in _SOURCES):
            continue  # the caller holds its own inputs; weights outlive every call
        scope = recorder.locator.resolve_row(recorder.ops[value.index].location, recorder.sources).scope
        if reading.code is not None and role_of(reading.code) == "user":
            place = places.of_code(reading.code, scope)
        elif reading.kind == "kept":
            place = kept_at(reading.name, recorder.place(value), recorder.sources)
        elif isinstance(reading.call, int):
            place = places.of_call(reading.call, scope)
        elif reading.call is not None:
            place = places.path_of(reading.call, scope)
        else:
            place = recorder.place(value)
        with recorder.at(place):
            recorder.observe(value, reading.kind, reading.name, assumed=reading.assumed)
    _observe_state(recorder, translator, exported)


def _observe_state(recorder: Recorder, translator: Translator, exported: Any) -> None:
    """Notes what buffers hold in the end: running statistics are kept by the module."""
    nodes = {node.name: node for node in exported.graph.nodes if node.op == "placeholder"}
    for spec in exported.graph_signature.input_specs:
        node = nodes.get(getattr(spec.arg, "name", ""))
        value = translator.memory.values.get(node)
        if node is None or not isinstance(value, Value) or spec.kind.name == "USER_INPUT":
            continue
        if recorder.ops[value.index].name not in ("parameter", "constant"):
            with recorder.at(recorder.place(value)):
                recorder.observe(value, "kept", str(spec.target))


@contextlib.contextmanager
def _explained(recorder: Recorder) -> Iterator[None]:
    """Turns what torch or user code raises into an error with the user's place."""
    try:
        yield
    except ToposError:
        raise
    except Exception as error:
        span = _raised_at(recorder, error.__traceback__)
        kind = type(error).__name__
        if kind in _NEEDS_ELEMENTS or ".numpy() is not supported for tensor subclasses" in str(error):
            raise RecordingError(
                "this needs the elements of a tensor, which are not known while a module is exported;"
                " write torch.where(mask, a, b), torch.cond, or a size that does not depend on data",
                span=span,
            ) from None
        text = " ".join(str(error).split())
        text = text if len(text) <= 300 else text[:297] + "..."
        raise TraceError(f"the module raised {kind}: {text}" if text else kind, code="TP402", span=span) from None


def _raised_at(recorder: Recorder, traceback: TracebackType | None) -> Span | None:
    found: Span | None = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if role_of(code) == "user" and "topos_core" not in code.co_filename and not code.co_filename.startswith("<"):
            found = frame_of(code, traceback.tb_lasti, recorder.sources).span
        traceback = traceback.tb_next
    return found
