"""Which targets are JAX's: those whose code names something of jax, or of a library over it.

The recorder's values follow NumPy's protocols, and jax.numpy's functions do not dispatch on them, so one name of jax among
the globals, closures and attributes that a function (or a helper of the same project) reads makes it a function of JAX.
A function that names NumPy alone is recorded as before, in whatever file it stands.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

LIBRARIES: Final = frozenset(("jax", "jaxlib", "flax", "equinox", "haiku", "optax", "chex"))
_DEEPEST: Final = 8


def uses_jax(found: Any) -> bool:
    """Tells whether a function, class or object that can be called is written in JAX."""
    if "jax" not in sys.modules:
        return False
    return _uses(found, _DEEPEST, set())


def _uses(found: Any, depth: int, seen: set[int]) -> bool:
    if id(found) in seen or depth < 0:
        return False
    seen.add(id(found))
    if _is_of_jax(found):
        return True
    return any(_is_of_jax(each) or (_is_users(each) and _uses(each, depth - 1, seen)) for each in _reads(found))


def _is_of_jax(found: Any) -> bool:
    name = found.__name__ if isinstance(found, ModuleType) else getattr(type(found), "__module__", "")
    own = getattr(found, "__module__", None) if isinstance(found, (FunctionType, type)) else None
    return any(str(each).partition(".")[0] in LIBRARIES for each in (name, own) if each)


def _is_users(found: Any) -> bool:
    """Follows functions and classes that are written in Python; modules are looked at and not entered."""
    return isinstance(found, (FunctionType, MethodType, functools.partial, type)) and not _is_library(found)


def _is_library(found: Any) -> bool:
    name = str(getattr(found, "__module__", "")).partition(".")[0]
    return name in ("numpy", "topos_core", "builtins") or name in sys.stdlib_module_names


def _reads(found: Any) -> Iterator[Any]:
    """Yields what a target's code reads by name."""
    if isinstance(found, functools.partial):
        yield found.func
        return
    if isinstance(found, type):
        yield from found.__mro__[1:-1]
        yield from (each for each in vars(found).values() if isinstance(each, FunctionType))
        return
    if isinstance(found, MethodType):
        yield found.__self__.__class__
    function = inspect.unwrap(found) if callable(found) else found
    if not isinstance(function, (FunctionType, MethodType)):
        yield type(found)
        return
    plain = function.__func__ if isinstance(function, MethodType) else function
    for cell in plain.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # a name that is bound later
            continue
    for name in _names(plain.__code__):
        if name in plain.__globals__:
            yield plain.__globals__[name]


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
