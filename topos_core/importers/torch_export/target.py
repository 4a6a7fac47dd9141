"""What can be exported: classes, instances, factories and functions of torch, told apart without calling them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, Literal

from topos_core.importers.torch_export.construction import asked_to_train, constructions
from topos_core.importers.torch_export.weights import CAP, build_without_weights, capped
from topos_core.recording.location import call_user

Kind = Literal["class", "instance", "factory", "function"]

_DEEPEST: Final = 6
_CARRIERS: Final = ("torch", "transformers", "timm", "torchvision")  # whose models are torch's
_OTHERS: Final = ("numpy", "topos_core", "jax")


@dataclass(frozen=True, slots=True)
class Target:
    """Something of torch that user code marked.

    Args:
        found: The object itself.
        kind: A class is built without arguments, a factory called without arguments, a function exported as it is.
    """

    found: Any
    kind: Kind


def target_of(found: Any, *, told: bool = False, fed: bool = False) -> Target | None:
    """Says what an object is to torch; None where it is not torch's business.

    Args:
        found: A function, class or object.
        told: Whether its mark says that it is torch's, so that its code need not.
        fed: Whether there are inputs.

    A function is torch's where it, or a function of the same file that it names, mentions torch, one of torch's functions or
    a module; where nothing tells, where it or its file names torch or a package of its models and neither NumPy nor topos. One
    that needs no argument is a factory; so is one that is fed and takes none, whatever it names.
    """
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "nn"):
        return None
    module = torch.nn.Module
    if isinstance(found, module):
        return Target(found, "instance")
    if isinstance(found, type):
        return Target(found, "class") if issubclass(found, module) else None
    function = inspect.unwrap(found) if callable(found) else None
    if not isinstance(function, FunctionType):
        return None
    if fed and not inspect.signature(function).parameters:
        return Target(found, "factory")
    if not (told or _speaks_torch(function, torch)):
        return None
    return Target(found, "function" if _takes_arguments(function) else "factory")


def build(target: Target, *, weights: bool) -> Any:
    """Gives the module to export, in evaluation mode unless it is an instance or user code called `train()`.

    Args:
        target: What to build.
        weights: Whether parameters get their elements, from torch's seed 0.

    Raises:
        BaseException: Whatever user code raises.
    """
    import torch

    if target.kind == "instance":
        return target.found
    if target.kind == "function":
        return _wrapped(target.found)

    def made() -> Any:
        with torch.random.fork_rng(devices=[]), constructions():
            torch.manual_seed(0)
            return call_user(target.found, (), {})

    if weights:
        with capped(8 * CAP):
            module = made()
    else:
        module = build_without_weights(made)
    if isinstance(module, torch.nn.Module) and not asked_to_train(module):
        module.eval()
    return module


def _wrapped(function: Callable[..., Any]) -> Any:
    """Makes a module of a function; modules that it names become children, so that their parameters keep their names."""
    import torch

    class Function(torch.nn.Module):  # type: ignore[misc]  # torch's types are not read
        def forward(self, *arguments: Any, **keywords: Any) -> Any:
            return function(*arguments, **keywords)

    module = Function()
    module.forward = function  # type: ignore[method-assign]  # its signature and its frames are the function's own
    for name, held in _mentioned(inspect.unwrap(function)):
        if isinstance(held, torch.nn.Module) and name.isidentifier() and not hasattr(module, name):
            module.add_module(name, held)
    return module


def _takes_arguments(function: FunctionType) -> bool:
    return any(
        each.default is each.empty or each.kind in (each.VAR_POSITIONAL,)
        for each in inspect.signature(function).parameters.values()
        if each.kind is not each.VAR_KEYWORD
    )


def _speaks_torch(function: FunctionType, torch: ModuleType) -> bool:
    pending, seen = [function], set[int]()
    other = carrier = False
    for _ in range(64):
        if not pending:
            break
        each = pending.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        for _, held in _mentioned(each):
            home = _home(held)
            if home == "torch" or isinstance(held, torch.nn.Module) or _is_module_class(held, torch):
                return True
            other, carrier = other or home in _OTHERS, carrier or home in _CARRIERS
            if isinstance(held, FunctionType) and held.__module__ == function.__module__:
                pending.append(held)
    if other or carrier:
        return not other
    # a module's own entries tell nothing: a file that topos loads has its loader
    homes = {_home(held) for name, held in function.__globals__.items() if not name.startswith("__")}
    return not homes.isdisjoint(_CARRIERS) and homes.isdisjoint(_OTHERS)


def _is_module_class(held: Any, torch: ModuleType) -> bool:
    return isinstance(held, type) and issubclass(held, torch.nn.Module)


def _home(held: Any) -> str:
    """Gives the package that an object comes from."""
    name = held.__name__ if isinstance(held, ModuleType) else getattr(held, "__module__", None) or type(held).__module__
    return str(name).partition(".")[0].removeprefix("_") if isinstance(name, str) else ""


def _mentioned(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Gives the globals and closure cells that a function's code names, its inner functions' included."""
    yield from zip(function.__code__.co_freevars, map(_cell, function.__closure__ or ()), strict=False)
    scope: Mapping[str, Any] = function.__globals__
    for name in _names(function.__code__, 0):
        if name in scope:
            yield name, scope[name]
        elif name in _CARRIERS:  # imported inside of the function
            yield name, sys.modules.get(name)


def _names(code: CodeType, depth: int) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and depth < _DEEPEST:
            yield from _names(constant, depth + 1)


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
