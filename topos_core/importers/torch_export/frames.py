"""The call path of an op while torch traces it: the frames that are live when its node is made.

Wraps `_ModuleStackTracer.create_node` of torch.fx, which is private: where it is missing, positions come from the stack
traces that torch keeps itself, by line only (`places.from_stack_trace`). Written for and tested with torch 2.13.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

from topos_core.recording.location import call_user

TRACER: Final = "_ModuleStackTracer"
KEY: Final = "topos"  # under which a node's meta data keep the number of its call; survives torch's passes
_MODULES: Final = os.path.join("nn", "modules") + os.sep


class CallPath(NamedTuple):
    """One node's frames, innermost first, as (code, instruction); torch's own are left out.

    `modules` are the modules whose torch-written `forward` runs inside of the innermost frame kept, innermost first.
    """

    frames: tuple[tuple[CodeType, int], ...]
    modules: tuple[Any, ...]


@dataclass(slots=True)
class Calls:
    """What was seen of the nodes of one export, by number."""

    paths: list[CallPath] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    operands: list[tuple[int, ...]] = field(default_factory=list)
    tracers: list[Any] = field(default_factory=list)
    exact: bool = True

    def number_of(self, node: Any) -> int | None:
        """Gives a node's number; None where torch made it outside of the program."""
        found = (node.meta.get("custom") or {}).get(KEY)
        return found if isinstance(found, int) else None


@contextmanager
def watching(made: Callable[[Calls, int], None] | None = None) -> Iterator[Calls]:
    """Numbers every node that export makes inside and keeps its live frames; calls `made` with each number."""
    import torch

    calls = Calls()
    tracer = getattr(_proxy_tensor(), TRACER, None)
    create = getattr(tracer, "create_node", None)
    if tracer is None or create is None:
        calls.exact = False
        yield calls
        return
    folder = os.path.dirname(torch.__file__) + os.sep

    def numbering(self: Any, *arguments: Any, **keywords: Any) -> Any:
        node = create(self, *arguments, **keywords)
        if not any(self is each for each in calls.tracers):
            calls.tracers.append(self)
        number = len(calls.paths)
        node.meta["custom"] = {**(node.meta.get("custom") or {}), KEY: number}
        calls.paths.append(_path(sys._getframe(1), folder))
        calls.targets.append(str(node.target) if node.op == "call_function" else node.op)
        operands = (calls.number_of(each) for each in node.all_input_nodes)
        calls.operands.append(tuple(each for each in operands if each is not None))
        if made is not None:
            made(calls, number)
        return node

    tracer.create_node = numbering
    try:
        yield calls
    finally:
        tracer.create_node = create


def _proxy_tensor() -> Any:
    try:
        from torch.fx.experimental import proxy_tensor
    except ImportError:
        return None
    return proxy_tensor


def live_path(frame: FrameType | None) -> CallPath:
    """Gives the call path of a frame that is running now."""
    import torch

    return _path(frame, os.path.dirname(torch.__file__) + os.sep)


def _path(frame: FrameType | None, folder: str) -> CallPath:
    kept: list[tuple[CodeType, int]] = []
    modules: list[Any] = []
    inside = True
    while frame is not None:
        code = frame.f_code
        if code is call_user.__code__:
            break
        path = code.co_filename
        if path.startswith(folder):
            if inside and code.co_name == "forward" and path.startswith(folder + _MODULES):
                modules.append(frame.f_locals.get("self"))
        elif not path.startswith((_HERE, "<")) and not path.endswith(("contextlib.py", "functools.py")):
            inside = False
            kept.append((code, frame.f_lasti))
        frame = frame.f_back
    return CallPath(tuple(kept), tuple(modules))


_HERE: Final = os.path.dirname(os.path.abspath(__file__)) + os.sep
