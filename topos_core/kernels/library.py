"""Kernels by name: compiled when first needed, kept on disk, called by address.

A kernel is a function (int64, int64) of `bodies/<name>.py`. numba turns its Python into LLVM IR and is imported only
where the disk does not have the object code yet; loading needs llvmlite alone.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import os
import re
import threading
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

from topos_core.kernels.compiling import Job, compiler
from topos_core.kernels.host import Host, host
from topos_core.kernels.object_store import ObjectStore, user_store
from topos_core.kernels.watching import watch

SIGNATURE: Final = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)
SYMBOL: Final = "topos_kernel"
_RUNTIME: Final = re.compile(r"@((?:numba_|NRT_|Py)\w+)")
"""What numba's and Python's runtimes define: where it is not there, a loaded kernel that needs it jumps to nowhere."""
_DECLARES: Final = re.compile(r"^declare | = external ")
SOURCES: Final = (
    "kernels/*.py",
    "kernels/vocabulary/*.py",
    "kernels/bodies/*.py",
    "matching/expression.py",
    "ops/erf.py",
)
"""What decides about generated code, in the package: the generators, and what they read of other modules (the formula of erf)."""


class Loaded(NamedTuple):
    """Compiled code in memory.

    Args:
        address: Where it starts, for other kernels.
        call: Calls it with two `int64`; the interpreter lock is released meanwhile.
        engine: Owns the code; kept alive with it.
    """

    address: int
    call: Any
    engine: Any


class Kernel:
    """Code that is compiled, or will be by the time that somebody needs it.

    Args:
        name, variant: Of its body, and what it was made for.
        load: Waits for the code and loads it.
        compiled: Whether it had to be compiled, since the disk did not have it.
    """

    __slots__ = ("_load", "_loaded", "compiled", "name", "variant")

    def __init__(self, name: str, variant: tuple[str, ...], load: Callable[[], Loaded], compiled: bool = False) -> None:
        self.name, self.variant, self.compiled = name, variant, compiled
        self._load = load
        self._loaded: Loaded | None = None

    @property
    def loaded(self) -> Loaded:
        """Gives the code. Threads that meet here have it loaded once each, and all use the first: addresses of it are handed out."""
        if self._loaded is None:
            found = self._load()
            with _alone():
                if self._loaded is None:
                    self._loaded = found
        return self._loaded

    @property
    def address(self) -> int:
        """Tells where it starts."""
        return self.loaded.address

    @property
    def call(self) -> Any:
        """Gives what calls it."""
        return self.loaded.call


def kernel(name: str, *variant: str) -> Kernel:
    """Gives a kernel of this machine, compiled at most once in a process; it need not be there yet (`compiling`)."""
    seen = watch()
    if seen is not None:
        seen.asked[name, variant] = None
    with _alone():
        return _kernel(name, variant, host())


@cache
def _kernel(name: str, variant: tuple[str, ...], target: Host) -> Kernel:
    store = user_store()
    return load_or_compile(store, name, variant, target)


def load_or_compile(store: ObjectStore, name: str, variant: tuple[str, ...], target: Host) -> Kernel:
    """Gives a kernel out of a store, or has it compiled and keeps it there."""
    key = "-".join((name, *map(_short, variant), _digest(target)))
    found = store.get(key)
    if found is not None:
        return Kernel(name, variant, lambda: _load(found, target))
    here = compiler(os.getpid(), _compile_alone)
    job = here.submit(Job(name, variant, target, lambda code: store.put(key, code)))
    return Kernel(name, variant, lambda: _load(here.result(job), target), compiled=True)


def _short(variant: str) -> str:
    """Gives a part of a file's name: a generated kernel's program is a text of any length."""
    return variant if variant.isalnum() or len(variant) < 32 else hashlib.sha256(variant.encode()).hexdigest()[:32]


def _compile_alone(name: str, variant: tuple[str, ...], target: Host) -> bytes:
    with _alone():
        return compile_kernel(name, variant, target)


def compile_kernel(name: str, variant: tuple[str, ...], target: Host) -> bytes:
    """Compiles a kernel to an object file that has it under the name `topos_kernel`."""
    import llvmlite.binding as llvm

    body = importlib.import_module(f"topos_core.kernels.bodies.{name}")
    machine = _machine(target)
    if hasattr(body, "module"):  # written as LLVM IR
        module = llvm.parse_assembly(str(body.module(target, SYMBOL, *variant)))
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        passes = llvm.create_pass_builder(machine, options)
        passes.getModulePassManager().run(module, passes)
    else:
        module = _through_numba(body.kernel(target, *variant))
        module.triple, module.data_layout = target.triple, str(machine.target_data)
    code: bytes = machine.emit_object(module)
    return code


def _through_numba(body: Any) -> Any:
    import llvmlite.binding as llvm
    import numba

    signature = numba.types.void(numba.types.int64, numba.types.int64)
    compiled = numba.cfunc(signature, error_model="numpy")(body)
    text = compiled.inspect_llvm()
    needed = {name for line in text.splitlines() if not _DECLARES.search(line) for name in _RUNTIME.findall(line)}
    if needed:
        raise RuntimeError(
            f'{body.__module__} can raise, or calls what can (inline="always" leaves that in): its code needs {" ".join(sorted(needed))}, '
            "which a process without numba does not have"
        )
    module = llvm.parse_assembly(text)
    module.get_function(compiled.native_name).name = SYMBOL
    return module


def _machine(target: Host) -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=3, codemodel="jitdefault", jit=True
    )


def _load(code: bytes, target: Host) -> Loaded:
    import llvmlite.binding as llvm

    with _alone():
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(target))
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
    address = engine.get_function_address(SYMBOL)
    return Loaded(address, SIGNATURE(address), engine)


@cache
def _alone() -> threading.RLock:
    """Gives the lock of LLVM's and numba's compilers, which serve one thread at a time.

    A fork waits for it: a child of a thread that forks while another one imports or compiles would wait for ever for locks
    whose holder it does not have. What is registered last is taken first, so the modules whose own locks a fork takes come
    before: numba imports them, and a fork that had logging's lock would wait here for a thread that waits for that one.
    """
    for taken_by_forks in ("logging", "concurrent.futures.thread"):
        importlib.import_module(taken_by_forks)
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock


_alone()  # before any thread can need it: a fork while it is made would not wait


@cache
def _digest(target: Host) -> str:
    """Hashes whatever decides about compiled code: the generators' source, the compilers and the machine."""
    digest = hashlib.sha256(target.key.encode())
    for package in ("numba", "llvmlite"):
        digest.update(f"{package} {version(package)}".encode())
    root = Path(__file__).parents[1]
    for path in sorted(path for source in SOURCES for path in root.glob(source)):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:32]
