"""Words of kernels for memory that several threads share, and for waiting.

All threads see all of these in one order: whoever publishes and then looks, sees what others published before they looked.
"""

from __future__ import annotations

import sys
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.memory import INT64

WORD = 8


def _place(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, INT64.as_pointer())


def _observe(context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_place(builder, arguments[0]), "seq_cst", WORD)

    return types.int64(types.int64), generate


def _publish(context: Any, address: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[1], _place(builder, arguments[0]), "seq_cst", WORD)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


def _exchange(context: Any, address: Any, expected: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(builder, arguments[0])
        pair = builder.cmpxchg(place, arguments[1], arguments[2], "seq_cst", "seq_cst")
        return builder.zext(builder.extract_value(pair, 1), INT64)

    return types.int64(types.int64, types.int64, types.int64), generate


def _count(context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.atomic_rmw("add", _place(builder, arguments[0]), ir.Constant(INT64, 1), "seq_cst")
        return context.get_dummy_value()

    return types.void(types.int64), generate


def _declared(builder: Any, name: str, result: Any, arguments: Any = ()) -> Any:
    function = builder.module.globals.get(name)
    return function or ir.Function(builder.module, ir.FunctionType(result, list(arguments)), name)


def relaxing(host: Host) -> Any:
    """Makes `relax()`: tells the processor that a loop waits for memory, where it has a word for that."""

    def relax(context: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            if builder.module.triple.split("-")[0] != host.triple.split("-")[0]:
                pass  # numba writes for this machine, and the code is for another one
            elif host.triple.startswith(("x86", "i686")):
                builder.call(_declared(builder, "llvm.x86.sse2.pause", ir.VoidType()), [])
            elif host.triple.startswith(("aarch64", "arm64")):
                word = ir.IntType(32)
                builder.call(_declared(builder, "llvm.aarch64.hint", ir.VoidType(), (word,)), [ir.Constant(word, 1)])
            return context.get_dummy_value()

        return types.void(), generate

    return intrinsic(relax)


def _give_way(context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if sys.platform != "win32":
            builder.call(_declared(builder, "sched_yield", ir.IntType(32)), [])
        return context.get_dummy_value()

    return types.void(), generate


def _lock(context: Any, function: Any, lock: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [INT64, ir.IntType(32)])
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), [arguments[1], ir.Constant(ir.IntType(32), 1)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


def _unlock(context: Any, function: Any, lock: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [INT64])
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), [arguments[1]])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


observe = intrinsic(_observe)
"""`observe(address)` loads a word; what its writer wrote before is visible."""
publish = intrinsic(_publish)
"""`publish(address, value)` stores a word after everything written before."""
exchange = intrinsic(_exchange)
"""`exchange(address, expected, value)` stores where the word is `expected`; gives 1 where it did."""
count = intrinsic(_count)
"""`count(address)` adds one."""
give_way = intrinsic(_give_way)
"""`give_way()` lets another thread run."""
lock = intrinsic(_lock)
"""`lock(function, lock)` waits for a lock by `PyThread_acquire_lock`, whose address is given; no interpreter lock needed."""
unlock = intrinsic(_unlock)
"""`unlock(function, lock)` gives it back by `PyThread_release_lock`; another thread may have taken it."""
