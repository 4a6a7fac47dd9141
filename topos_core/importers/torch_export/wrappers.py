"""Wrappers for several devices, several processes or a compiler: the module inside is planned, and the wrapper's hooks with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Hook = Callable[..., Any]


def unwrapped(module: Any) -> tuple[Any, tuple[Any, ...]]:
    """Gives the module that a wrapper runs (on each device: one of them is planned), and the wrappers, the outermost first."""
    wrappers: list[Any] = []
    while (inner := _inside(module)) is not None:
        wrappers.append(module)
        module = inner
    return module, tuple(wrappers)


@contextmanager
def hooks_of(wrappers: tuple[Any, ...], module: Any, watched: Callable[[Hook, str], Hook]) -> Iterator[None]:
    """Runs the wrappers' hooks where the module inside is called: what it is given and gives is what its wrappers are and do.

    Args:
        wrappers: The outermost first.
        module: What they wrap.
        watched: Makes of a hook and its name the hook that runs.
    """
    handles = []
    for wrapper in reversed(wrappers):
        for key, hook in list(wrapper._forward_pre_hooks.items()):
            keywords = key in wrapper._forward_pre_hooks_with_kwargs
            running = _of(wrapper, watched(hook, _named(wrapper)))
            handles.append(module.register_forward_pre_hook(running, prepend=True, with_kwargs=keywords))
        for key, hook in list(wrapper._forward_hooks.items()):
            keywords = key in wrapper._forward_hooks_with_kwargs
            running = _of(wrapper, watched(hook, _named(wrapper)))
            handles.append(module.register_forward_hook(running, with_kwargs=keywords))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _inside(module: Any) -> Any:
    import torch

    if isinstance(module, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)):
        return module.module
    compiled = type(module).__name__ == "OptimizedModule" and type(module).__module__.startswith("torch.")
    return module._orig_mod if compiled else None


def _named(wrapper: Any) -> str:
    return type(wrapper).__name__


def _of(wrapper: Any, hook: Hook) -> Hook:
    """Gives a hook its wrapper as the module that it is of."""
    return lambda _, *rest: hook(wrapper, *rest)
