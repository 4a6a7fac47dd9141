"""Who reads values: hooks, prints, `.item()`, and whatever keeps a value alive.

Hooks run on fake tensors, so that looking (at a shape) is told from keeping and from reading. A hook that fails there is
left out of the export, and what it was given counts as read, assumed. Keeping is what outlives the export: torch's tracer
knows its tensors by weak references, so a tensor that is still there belongs to user code. This holds under no_grad only,
where autograd saves nothing. Attributes of modules are looked at when the module has run, since export puts back those that
were there before. A node without readers is no observation: clean models have such nodes.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, ModuleType
from typing import Any, Final

from topos_core.importers.torch_export.frames import CallPath, Calls, live_path
from topos_core.importers.torch_export.wrappers import hooks_of
from topos_core.tape.tape import ObservationKind

_READS: Final = ("aten.item", "aten._local_scalar_dense")
_TABLES: Final = ("_forward_hooks", "_forward_pre_hooks")
_STANDARD: Final = ("_parameters", "_buffers", "_modules")
_SOURCES: Final = ("placeholder", "get_attr")
_DEEPEST: Final = 4
"""Containers in containers of an attribute that are looked into."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One reader of one node.

    Args:
        node: The number of the node that is read.
        kind: hook, kept, item or print.
        name: What the reader calls it.
        code: The hook's code, where a hook reads.
        call: The number of the reading call itself, or the live frames of a print.
        assumed: Whether it could not be decided that the value is read.
    """

    node: int
    kind: ObservationKind
    name: str | None
    code: CodeType | None = None
    call: int | CallPath | None = None
    assumed: bool = False


@dataclass(slots=True)
class HookRun:
    """One call of one hook.

    Args:
        name: The module's path and the hook's name.
        code: Where it is written.
        given: The nodes that it was given: inputs and results.
        subject: Those of them that it is there for: the results, or the inputs of a hook before `forward`.
        first, last: The range of the nodes that it made.
        failed: Whether it raised on fake tensors, or was left out since it does.
    """

    name: str
    code: CodeType | None
    given: tuple[int, ...]
    subject: tuple[int, ...]
    first: int
    last: int = 0
    failed: bool = False


@dataclass(slots=True)
class Watch:
    """What was seen of readers while a module was exported; `kept` names what holds a node's result."""

    calls: Calls
    unrun: frozenset[int] = frozenset()
    hooks: list[HookRun] = field(default_factory=list)
    failing: set[int] = field(default_factory=set)
    prints: list[Reading] = field(default_factory=list)
    kept: dict[int, str] = field(default_factory=dict)

    def number_of(self, tensor: Any) -> int | None:
        """Gives the number of the node that made a tensor."""
        for tracer in reversed(self.calls.tracers):
            proxy = tracer.tensor_tracker.get(tensor)
            if proxy is not None:
                return self.calls.number_of(getattr(proxy, "proxy", proxy).node)
        return None

    def numbers_of(self, given: Any) -> tuple[int, ...]:
        """Gives the numbers of the nodes behind nested arguments."""
        found = (self.number_of(each) for each in _tensors(given))
        return tuple(each for each in found if each is not None)


@contextmanager
def readers(
    module: Any, calls: Calls, unrun: frozenset[int] = frozenset(), wrappers: tuple[Any, ...] = ()
) -> Iterator[Watch]:
    """Watches the hooks of a module, those of its wrappers, and every print while it is exported; `unrun` hooks (by id) are left out."""
    watch = Watch(calls, unrun)
    replaced: list[tuple[Any, Any, Any]] = []
    for table, key, hook, name in _hooks(module):
        table[key] = _watched(watch, hook, name)
        replaced.append((table, key, hook))
    looking = module.register_forward_hook(lambda root, *_: _look_at_attributes(watch, root))
    try:
        with (
            hooks_of(wrappers, module, lambda hook, of: _watched(watch, hook, f"{of}: {_title(hook)}")),
            _prints(watch),
        ):
            yield watch
    finally:
        looking.remove()
        for table, key, hook in replaced:
            if key in table:  # a hook may have removed itself
                table[key] = hook


def readings(watch: Watch) -> list[Reading]:
    """Lists every reader, once the export is over."""
    found = list(watch.prints)
    calls = watch.calls
    for number, target in enumerate(calls.targets):
        if target.startswith(_READS):
            run = _run_of(watch, number)
            for operand in calls.operands[number]:
                if run is None:
                    found.append(Reading(operand, "item", None, call=number))
                else:
                    found.extend(_read_by(run, calls, operand))
    for run in watch.hooks:
        if run.failed:
            found += [Reading(each, "hook", run.name, run.code, assumed=True) for each in run.subject]
    held: dict[int, str | None] = dict(watch.kept)
    for tensor in _alive(watch):
        kept = watch.number_of(tensor)
        if kept is not None and kept not in held:
            held[kept] = keeper_of(tensor)
    for number, keeper in held.items():
        run = _run_of(watch, number) or next((run for run in watch.hooks if number in run.given), None)
        if run is not None:
            found.extend(_read_by(run, calls, number))
        else:
            found.append(Reading(number, "kept", keeper))
    return list(dict.fromkeys(found))


def _look_at_attributes(watch: Watch, root: Any) -> None:
    """Notes the traced tensors that attributes of modules hold, in lists, tuples and dicts too, when the root has run."""
    for module in root.modules():
        for attribute, held in vars(module).items():
            if attribute in _STANDARD:
                continue
            name = f"{type(module).__qualname__}.{attribute}"
            for tensor, key in _held_in(held, "", _DEEPEST):
                number = watch.number_of(tensor)
                if number is not None and watch.calls.targets[number] not in _SOURCES:
                    watch.kept.setdefault(number, f"{name}{key}")


def _held_in(held: Any, key: str, depth: int) -> Iterator[tuple[Any, str]]:
    """Gives the tensors in a container, and the key of the innermost dict that each stands in."""
    import torch

    if isinstance(held, torch.Tensor):
        yield held, key
    elif depth and isinstance(held, Mapping):
        for name, each in list(held.items()):
            yield from _held_in(each, f"[{name!r}]", depth - 1)
    elif depth and isinstance(held, (list, tuple, set, deque)):
        for each in list(held):
            yield from _held_in(each, key, depth - 1)


def keeper_of(tensor: Any) -> str | None:
    """Names what holds a tensor: `self.seen`, `LOG`, `Net.cache['x']`; None where it cannot be told."""
    for holder in gc.get_referrers(tensor):
        if isinstance(holder, dict):
            key = next((key for key, held in holder.items() if held is tensor), None)
            if not isinstance(key, str):
                continue
            owner = _owner_of(holder)
            if owner is not None:
                return f"{owner}.{key}" if owner else key
            outer = _named(holder)
            if outer is not None:
                return f"{outer}[{key!r}]"
        elif isinstance(holder, (list, set, tuple)):
            outer = _named(holder)
            if outer is not None:
                return outer
    return None


def _named(container: Any) -> str | None:
    """Names a container by the attribute or the global variable that holds it."""
    for holder in gc.get_referrers(container):
        if isinstance(holder, dict):
            key = next((key for key, held in holder.items() if held is container), None)
            owner = _owner_of(holder) if isinstance(key, str) else None
            if owner is not None:
                return f"{owner}.{key}" if owner else str(key)
    return None


def _owner_of(table: dict[Any, Any]) -> str | None:
    """Says whose attributes a dict holds: the class of an object, "" for a module's globals."""
    if "__name__" in table and "__builtins__" in table:
        return ""
    for holder in gc.get_referrers(table):
        if isinstance(holder, type) and holder.__dict__.keys() == table.keys():
            return holder.__qualname__
        if getattr(holder, "__dict__", None) is table and not isinstance(holder, ModuleType):
            return type(holder).__name__
    return None


def _read_by(run: HookRun, calls: Calls, number: int) -> list[Reading]:
    """Leads back from what a hook made to what it was made from."""
    if not run.first <= number < run.last:
        return [Reading(number, "hook", run.name, run.code)]
    sources = {each for operand in calls.operands[number] for each in _read_by(run, calls, operand)}
    return sorted(sources, key=lambda each: each.node)


def _run_of(watch: Watch, number: int) -> HookRun | None:
    return next((run for run in watch.hooks if run.first <= number < run.last), None)


def _alive(watch: Watch) -> list[Any]:
    """Gives the traced tensors that user code still holds."""

    def held() -> list[Any]:
        found = []
        for tracer in watch.calls.tracers:
            for tensor in list(tracer.tensor_tracker.keys()):
                number = watch.number_of(tensor)
                if number is not None and watch.calls.targets[number] not in _SOURCES:
                    found.append(tensor)
        return found

    if not held():
        return []
    gc.collect()
    return held()


def _hooks(module: Any) -> Iterator[tuple[Any, Any, Any, str]]:
    from torch.nn.modules import module as shared

    for name in ("_global_forward_hooks", "_global_forward_pre_hooks"):
        table = getattr(shared, name, {})
        for key, hook in list(table.items()):
            yield table, key, hook, f"every module: {_title(hook)}"
    for path, each in module.named_modules():
        for attribute in _TABLES:
            table = getattr(each, attribute)
            for key, hook in list(table.items()):
                yield table, key, hook, f"{path or type(each).__name__}: {_title(hook)}"


def _title(hook: Any) -> str:
    function = getattr(hook, "func", hook)
    name = getattr(function, "__qualname__", None) or type(hook).__name__
    return str(name).rpartition("<locals>.")[2].replace("<lambda>", "lambda")


def _watched(watch: Watch, hook: Callable[..., Any], name: str) -> Callable[..., Any]:
    function = getattr(hook, "func", hook)
    code = getattr(function, "__code__", None) or getattr(vars(type(function)).get("__call__"), "__code__", None)

    def watched(*arguments: Any, **keywords: Any) -> Any:
        given, subject = watch.numbers_of(arguments[1:]), watch.numbers_of(arguments[-1:])
        run = HookRun(name, code, given, subject, len(watch.calls.paths))
        watch.hooks.append(run)
        if id(hook) in watch.unrun:
            run.failed, run.last = True, run.first
            return None
        try:
            return hook(*arguments, **keywords)
        except Exception:  # whatever it does with real values cannot be seen here: its reading is assumed
            run.failed = True
            watch.failing.add(id(hook))
            return None
        finally:
            run.last = len(watch.calls.paths)

    return watched


def _tensors(given: Any) -> Iterator[Any]:
    import torch

    if isinstance(given, torch.Tensor):
        yield given
    elif isinstance(given, (list, tuple)):
        for each in given:
            yield from _tensors(each)
    elif isinstance(given, dict):
        for each in given.values():
            yield from _tensors(each)


@contextmanager
def _prints(watch: Watch) -> Iterator[None]:
    """Notes every tensor that the program formats: torch's own formatting of a fake tensor leaves no trace."""
    import torch

    tensor = torch.Tensor
    shown, formatted = tensor.__repr__, tensor.__format__

    def note(self: Any, frame: Any) -> None:
        if frame is None or "torch" in frame.f_globals.get("__name__", "").split("."):
            return
        number = watch.number_of(self)
        if number is not None:
            watch.prints.append(Reading(number, "print", None, call=live_path(frame)))

    def showing(self: Any, *arguments: Any, **keywords: Any) -> str:
        note(self, sys._getframe(1))
        return str(shown(self, *arguments, **keywords))

    def formatting(self: Any, spec: str) -> str:
        note(self, sys._getframe(1))
        return str(formatted(self, spec))

    tensor.__repr__ = showing
    tensor.__format__ = formatting
    try:
        yield
    finally:
        tensor.__repr__ = shown
        tensor.__format__ = formatted
