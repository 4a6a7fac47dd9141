"""Words of kernels for memory: an address is an `int64`, an index counts elements.

Kernels see raw addresses instead of arrays, so that there are no negative-index branches, no reference counts and
nothing to unbox: the loop vectoriser sees plain pointers, and a kernel compiles several times faster.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from topos_core.kernels.vocabulary.emitter import Emitter
from topos_core.kernels.vocabulary.scalar import SCALARS, Scalar

INT64 = ir.IntType(64)


def pointer(builder: Any, address: Any, element: Any, index: Any) -> Any:
    """Gives the typed pointer to element `index` of the array at `address`."""
    return builder.gep(builder.inttoptr(address, element.as_pointer()), [index])


def loader(scalar: Scalar) -> Any:
    """Makes `load(address, index) -> value`."""

    def load(context: Any, address: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.load(pointer(builder, arguments[0], scalar.llvm, arguments[1]))

        return scalar.numba(types.int64, types.int64), generate

    return intrinsic(load)


def storer(scalar: Scalar) -> Any:
    """Makes `store(address, index, value)`."""

    def store(context: Any, address: Any, index: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            builder.store(arguments[2], pointer(builder, arguments[0], scalar.llvm, arguments[1]))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, scalar.numba), generate

    return intrinsic(store)


word = loader(SCALARS["i64"])
set_word = storer(SCALARS["i64"])


def reader(block: tuple[str, ...]) -> Any:
    """Makes `read(address, "name")`, which loads a word of an argument block by its name."""

    def read(context: Any, address: Any, name: Any) -> Any:
        place = ir.Constant(INT64, block.index(name.literal_value))

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.load(pointer(builder, arguments[0], INT64, place))

        return types.int64(types.int64, name), generate

    return intrinsic(prefer_literal=True)(read)


def writer(block: tuple[str, ...]) -> Any:
    """Makes `write(address, "name", value)`, which stores a word of an argument block by its name."""

    def write(context: Any, address: Any, name: Any, value: Any) -> Any:
        place = ir.Constant(INT64, block.index(name.literal_value))

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            builder.store(arguments[2], pointer(builder, arguments[0], INT64, place))
            return context.get_dummy_value()

        return types.void(types.int64, name, types.int64), generate

    return intrinsic(prefer_literal=True)(write)


def _smaller(context: Any, a: Any, b: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a, b = arguments
        return builder.select(builder.icmp_signed("<", a, b), a, b)

    return types.int64(types.int64, types.int64), generate


def _larger(context: Any, a: Any, b: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a, b = arguments
        return builder.select(builder.icmp_signed(">", a, b), a, b)

    return types.int64(types.int64, types.int64), generate


smaller = intrinsic(_smaller)
"""`smaller(a, b)` of two `int64`; numba's own `min` compiles a function each time."""
larger = intrinsic(_larger)
"""`larger(a, b)` of two `int64`."""


def _logarithm(context: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function = builder.module.globals.get("llvm.log.f64")
        if function is None:
            kind = ir.FunctionType(ir.DoubleType(), [ir.DoubleType()])
            function = ir.Function(builder.module, kind, "llvm.log.f64")
        return builder.call(function, arguments)

    return types.float64(types.float64), generate


logarithm = intrinsic(_logarithm)
"""`logarithm(x)` of a `float64`, the C library's."""


def _square_root(context: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        name = "llvm.sqrt.f64"
        function = builder.module.globals.get(name)
        if function is None:
            function = ir.Function(builder.module, ir.FunctionType(ir.DoubleType(), [ir.DoubleType()]), name)
        return builder.call(function, arguments)

    return types.float64(types.float64), generate


square_root = intrinsic(_square_root)
"""`square_root(x)` of a `float64`, the machine's own instruction; NaN below zero."""


def _where_finite(context: Any, x: Any, finite: Any, other: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, finite, other = arguments
        rest = builder.fsub(x, x)
        return builder.select(builder.fcmp_ordered("ord", rest, rest), finite, other)

    return types.float64(types.float64, types.float64, types.float64), generate


where_finite = intrinsic(_where_finite)
"""`where_finite(x, a, b)` of `float64`: `a` where x is finite, else `b`."""


def _within(context: Any, x: Any, least: Any, most: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, least, most = arguments
        below = builder.fcmp_ordered("<", x, ir.Constant(x.type, 0.0))
        magnitude = builder.select(below, builder.fneg(x), x)
        return builder.and_(builder.fcmp_ordered(">=", magnitude, least), builder.fcmp_ordered("<=", magnitude, most))

    return types.boolean(types.float64, types.float64, types.float64), generate


within = intrinsic(_within)
"""`within(x, least, most)` of `float64`: whether |x| lies between the two; NaN does not."""


def _settle(context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        settled(builder)
        return context.get_dummy_value()

    return types.void(), generate


def settled(builder: Any) -> None:
    """Emits `settle`."""
    builder.fence("seq_cst")


settle = intrinsic(_settle)
"""`settle()` waits until other threads see what was streamed: such stores are ordered by nothing else."""


def _asking(*, writes: bool) -> Any:
    def ask(context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            emitter = Emitter(builder, ir.IntType(8))
            emitter.prefetch(builder.inttoptr(arguments[0], emitter.type.as_pointer()), writes=writes)
            return context.get_dummy_value()

        return types.void(types.int64), generate

    return intrinsic(ask)


ask = _asking(writes=False)
"""`ask(address)` asks for the cache line at an address, which need not be memory of ours."""
ask_to_write = _asking(writes=True)
"""The same in order to write to it."""


def _call(context: Any, function: Any, first: Any, second: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [INT64, INT64])
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


call = intrinsic(_call)
"""`call(function, first, second)` calls the kernel at the address `function`."""
