"""Modules without their weights: parameters are never filled while a module is built, and are fake while it is exported.

Only parameters are left out. Buffers are real, so constructors may read values that they compute (`linspace(...).item()`),
and masks and index tables keep their elements. A constructor that reads a parameter's elements is run again with real
weights, up to a cap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from topos_core.errors import TraceError

CAP: Final = 2 * 2**30  # bytes of parameters that are allocated where a constructor needs their elements


def build_without_weights(build: Callable[[], Any]) -> Any:
    """Builds a module with parameters on the meta device; with real ones where its constructor reads them.

    Raises:
        TraceError: TP406: The constructor reads its parameters, and they are larger than the cap.
        BaseException: Whatever the constructor raises with real parameters too.
    """
    try:
        with _unfilled():
            return build()
    except (NotImplementedError, RuntimeError) as error:
        if "meta" not in str(error) and not isinstance(error, NotImplementedError):
            raise
    with capped(CAP):
        return build()


@contextmanager
def capped(limit: int) -> Iterator[None]:
    """Refuses to register more than `limit` bytes of parameters."""
    taken = 0

    def count(parameter: Any) -> Any:
        nonlocal taken
        taken += parameter.numel() * parameter.element_size()
        if taken > limit:
            raise TraceError(
                f"the constructor reads its parameters, and they take more than {limit / 2**30:g} GiB;"
                " give a factory that builds without reading them",
                code="TP406",
            )
        return parameter

    with _registering(count):
        yield


@contextmanager
def faked(module: Any, mode: Any) -> Iterator[None]:
    """Stands fake CPU parameters in for those on the meta device, and puts the module back afterwards."""
    import torch

    replaced: list[tuple[Any, str, Any]] = []
    stands: dict[int, Any] = {}
    for each in module.modules():
        for table in (each._parameters, each._buffers):
            for name, held in table.items():
                if held is None or held.device.type != "meta":
                    continue
                if id(held) not in stands:
                    with mode:
                        stand = torch.empty_strided(tuple(held.shape), held.stride(), dtype=held.dtype, device="cpu")
                    if isinstance(held, torch.nn.Parameter):
                        stand = torch.nn.Parameter(stand, requires_grad=held.requires_grad)
                    stands[id(held)] = stand
                replaced.append((table, name, held))
                table[name] = stands[id(held)]
    try:
        yield
    finally:
        for table, name, held in replaced:
            table[name] = held


@contextmanager
def _unfilled() -> Iterator[None]:
    import torch

    def emptied(parameter: Any) -> Any:
        if parameter.device.type == "meta" or isinstance(parameter, torch.nn.parameter.UninitializedParameter):
            return parameter
        return torch.nn.Parameter(torch.empty_like(parameter, device="meta"), requires_grad=parameter.requires_grad)

    with _registering(emptied):
        yield


@contextmanager
def _registering(change: Callable[[Any], Any]) -> Iterator[None]:
    """Passes every parameter through `change` when a module takes it in."""
    import torch

    module = torch.nn.Module
    register = module.register_parameter

    def registering(self: Any, name: str, parameter: Any) -> None:
        register(self, name, None if parameter is None else change(parameter))

    module.register_parameter = registering
    try:
        yield
    finally:
        module.register_parameter = register
