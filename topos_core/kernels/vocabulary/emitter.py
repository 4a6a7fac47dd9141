"""Arithmetic on one scalar or one vector register, written as LLVM IR.

Every operation keeps NaN, infinities and the sign of zero as NumPy's own loop does: the only liberty is `contract`
(a product and a sum may round once).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from llvmlite import ir

CONTRACT: Final = ("contract",)
INT32: Final = ir.IntType(32)
INT64: Final = ir.IntType(64)
WIDEST: Final = 64
"""Bytes of the registers that only AVX-512 has."""


class Emitter:
    """Writes instructions for values of `type`: a float, a double, or a vector of either.

    `flags` are the liberties of its arithmetic; without any, every operation rounds as it is written.
    """

    def __init__(self, builder: Any, type: Any, flags: tuple[str, ...] = CONTRACT) -> None:
        self.builder = builder
        self.type = type
        self.flags = flags

    @property
    def element(self) -> Any:
        """The type of one lane."""
        return self.type.element if isinstance(self.type, ir.VectorType) else self.type

    @property
    def is_integer(self) -> bool:
        """Tells integers from floats."""
        return isinstance(self.element, ir.IntType)

    @property
    def integer(self) -> Any:
        """The integer type of the same shape and width."""
        word = ir.IntType(32 if isinstance(self.element, ir.FloatType) else 64)
        return ir.VectorType(word, self.type.count) if isinstance(self.type, ir.VectorType) else word

    def constant(self, value: float, type: Any = None) -> Any:
        """Gives a constant in every lane."""
        type = type or self.type
        return ir.Constant(type, [value] * type.count if isinstance(type, ir.VectorType) else value)

    def add(self, a: Any, b: Any) -> Any:
        """Adds."""
        return self.builder.fadd(a, b, flags=self.flags)

    def sub(self, a: Any, b: Any) -> Any:
        """Subtracts."""
        return self.builder.fsub(a, b, flags=self.flags)

    def mul(self, a: Any, b: Any) -> Any:
        """Multiplies."""
        return self.builder.fmul(a, b, flags=self.flags)

    def div(self, a: Any, b: Any) -> Any:
        """Divides."""
        return self.builder.fdiv(a, b, flags=self.flags)

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """Multiplies and adds; one rounding where the machine has a fused instruction."""
        return self.add(self.mul(a, b), c)

    def square_root(self, a: Any) -> Any:
        """Takes the square root by the machine's own instruction; NaN below zero."""
        lanes = f"v{self.type.count}" if isinstance(self.type, ir.VectorType) else ""
        name = f"llvm.sqrt.{lanes}f{8 * self.element_bytes}"
        function = self.builder.module.globals.get(name)
        if function is None:
            function = ir.Function(self.builder.module, ir.FunctionType(self.type, [self.type]), name)
        return self.builder.call(function, [a])

    def at_least(self, a: Any, low: Any) -> Any:
        """Gives the larger of `a` and `low`; a NaN in `a` stays."""
        return self.builder.select(self.builder.fcmp_ordered("<", a, low), low, a)

    def at_most(self, a: Any, high: Any) -> Any:
        """Gives the smaller of `a` and `high`; a NaN in `a` stays."""
        return self.builder.select(self.builder.fcmp_ordered(">", a, high), high, a)

    def polynomial(self, x: Any, coefficients: Sequence[float]) -> Any:
        """Evaluates by Horner's rule, highest power first."""
        result = self.constant(coefficients[0])
        for coefficient in coefficients[1:]:
            result = self.fma(result, x, self.constant(coefficient))
        return result

    def scaled(self, x: Any, power: Any) -> Any | None:
        """Multiplies by a power of two, rounding once; None where the machine has no instruction for it."""
        if not isinstance(self.type, ir.VectorType) or self.bytes % WIDEST:
            return None
        letter, bits = ("s", 16) if self.element_bytes == 4 else ("d", 8)
        mask, rounding = ir.Constant(ir.IntType(bits), -1), ir.Constant(INT32, 4)
        name = f"llvm.x86.avx512.mask.scalef.p{letter}.512"

        def scale(x: Any, power: Any) -> Any:
            arguments = [x, power, ir.Constant(x.type, ir.Undefined), mask, rounding]
            return self.builder.call(declared(self.builder, name, x.type, arguments), arguments)

        return self.by_registers(scale, x, power)

    def by_registers(self, function: Callable[..., Any], *values: Any) -> Any:
        """Applies a function of whole registers to values of one or more of them, as many lanes as the type has."""
        count, lanes = self.type.count, WIDEST // self.element_bytes
        if count == lanes:
            return function(*values)
        parts = []
        for at in range(0, count, lanes):
            picks = ir.Constant(ir.VectorType(INT32, lanes), list(range(at, at + lanes)))
            parts.append(
                function(*(self.builder.shuffle_vector(v, ir.Constant(v.type, ir.Undefined), picks) for v in values))
            )
        while len(parts) > 1:
            picks = ir.Constant(ir.VectorType(INT32, 2 * parts[0].type.count), list(range(2 * parts[0].type.count)))
            parts = [self.builder.shuffle_vector(a, b, picks) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]

    @property
    def picks(self) -> bool:
        """Tells whether `picked` has an instruction: for floats in whole registers of 16."""
        is_vector = isinstance(self.type, ir.VectorType)
        return is_vector and isinstance(self.element, ir.FloatType) and self.bytes % WIDEST == 0

    def picked(self, table: Sequence[float], which: Any) -> Any:
        """Picks one of 16 or 32 numbers for each lane, by the lowest bits of an integer."""
        kind = ir.VectorType(self.element, WIDEST // 4)
        registers = [ir.Constant(kind, list(table[at : at + 16])) for at in range(0, len(table), 16)]
        name = f"llvm.x86.avx512.{'permvar.sf' if len(registers) == 1 else 'vpermi2var.ps'}.512"

        def pick(which: Any) -> Any:
            arguments = [registers[0], which, *registers[1:]]
            return self.builder.call(declared(self.builder, name, kind, arguments), arguments)

        return self.by_registers(pick, which)

    def splat(self, scalar: Any) -> Any:
        """Copies a scalar to every lane."""
        undefined = ir.Constant(self.type, ir.Undefined)
        one = self.builder.insert_element(undefined, scalar, ir.Constant(INT32, 0))
        lanes = ir.Constant(ir.VectorType(INT32, self.type.count), [0] * self.type.count)
        return self.builder.shuffle_vector(one, undefined, lanes)

    def load(self, place: Any) -> Any:
        """Loads from a pointer to the first element; no alignment is assumed beyond an element's."""
        return self.builder.load(self.builder.bitcast(place, self.type.as_pointer()), align=self.element_bytes)

    def store(self, value: Any, place: Any) -> None:
        """Stores at a pointer to the first element."""
        self.builder.store(value, self.builder.bitcast(place, self.type.as_pointer()), align=self.element_bytes)

    def stream(self, value: Any, place: Any) -> None:
        """Stores a whole register past the caches; the place must be aligned to it."""
        kept = self.builder.store(
            value, self.builder.bitcast(place, self.type.as_pointer()), align=min(self.bytes, WIDEST)
        )
        kept.set_metadata("nontemporal", self.builder.module.add_metadata([ir.Constant(INT32, 1)]))

    def prefetch(self, place: Any, *, writes: bool = False) -> None:
        """Asks for the cache line at a pointer, which need not be memory of ours: into the second-level cache, or to write to it."""
        place = self.builder.bitcast(place, ir.IntType(8).as_pointer())
        words = (1, 3, 1) if writes else (0, 2, 1)  # to read or write, how near, data
        arguments = [place, *(ir.Constant(INT32, word) for word in words)]
        self.builder.call(declared(self.builder, "llvm.prefetch.p0", ir.VoidType(), arguments), arguments)

    @property
    def bytes(self) -> int:
        """Counts the bytes of a register."""
        return self.element_bytes * (self.type.count if isinstance(self.type, ir.VectorType) else 1)

    @property
    def element_bytes(self) -> int:
        """Counts the bytes of one lane."""
        if isinstance(self.element, ir.IntType):
            return int(self.element.width) // 8
        return 4 if isinstance(self.element, ir.FloatType) else 8

    def mask(self, bits: Any) -> Any:
        """Turns the low bits of an `i64` into one flag per lane."""
        lanes = self.type.count
        flags = self.builder.trunc(bits, ir.IntType(lanes)) if lanes < 64 else bits
        return self.builder.bitcast(flags, ir.VectorType(ir.IntType(1), lanes))

    def _masked(self, kind: str, result: Any, arguments: list[Any]) -> Any:
        lanes = self.type.count
        letter = "i" if isinstance(self.element, ir.IntType) else "f"
        name = f"llvm.masked.{kind}.v{lanes}{letter}{8 * self.element_bytes}.p0"
        return self.builder.call(declared(self.builder, name, result, arguments), arguments)

    def masked_load(self, place: Any, mask: Any) -> Any:
        """Loads the lanes whose flag is set; the others are 0 and their memory is not touched."""
        place = self.builder.bitcast(place, self.type.as_pointer())
        align = ir.Constant(INT32, self.element_bytes)
        return self._masked("load", self.type, [place, align, mask, self.constant(0)])

    def masked_store(self, value: Any, place: Any, mask: Any) -> None:
        """Stores the lanes whose flag is set."""
        place = self.builder.bitcast(place, self.type.as_pointer())
        align = ir.Constant(INT32, self.element_bytes)
        self._masked("store", ir.VoidType(), [value, place, align, mask])


def declared(builder: Any, name: str, result: Any, arguments: Sequence[Any]) -> Any:
    """Gives an intrinsic of LLVM, declared at its first use in a module."""
    function = builder.module.globals.get(name)
    if function is None:
        signature = ir.FunctionType(result, [argument.type for argument in arguments])
        function = ir.Function(builder.module, signature, name)
    return function
