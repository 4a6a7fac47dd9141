"""The registers of an expression's kernel: what a step reads and makes at one position of the loops, and how it lies in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llvmlite import ir

from topos_core.kernels.host import Host
from topos_core.kernels.vocabulary.blocks import EXPRESSION, index
from topos_core.kernels.vocabulary.emitter import CONTRACT, INT64, Emitter
from topos_core.kernels.vocabulary.program import HALVES, Program
from topos_core.kernels.vocabulary.sharing import take_item
from topos_core.kernels.vocabulary.steps import FLOATS, Steps
from topos_core.tape.type import numpy_dtype


def lanes_of(host: Host, program: Program) -> int:
    """Counts the elements that run side by side: as many as a register has of the widest dtype."""
    dtypes = [step.dtype for step in program.steps] + [operand.dtype for operand in program.operands]
    return host.vector_bytes // max(4 if dtype in HALVES else numpy_dtype(dtype).itemsize for dtype in dtypes)


def accumulator(program: Program, number: int) -> str:
    """Gives the dtype in which a reduction accumulates: floats in f64, others as recorded."""
    step = program.steps[number]
    if step.op in ("max", "min"):
        return step.dtype
    return "f64" if step.dtype in FLOATS else step.detail


class Reader:
    """Registers of one position of the loops, made when first asked for."""

    def __init__(self, registers: Registers, steps: Steps, load: Callable[[int], Any], kept: Mapping[int, Any]) -> None:
        self.registers, self.steps, self.load, self.kept = registers, steps, load, kept
        self.known: dict[str, Any] = {}

    def value(self, name: str) -> Any:
        """Gives the register of a binding, a constant or a step."""
        if name not in self.known:
            self.known[name] = self._made(name)
        return self.known[name]

    def _made(self, name: str) -> Any:
        number = int(name[1:])
        if name[0] == "x":
            return self.load(number)
        if name[0] == "c":
            dtype = self.registers.program.constants[number].dtype
            return self.registers.spread(self.steps, self.registers.constants[number], dtype)
        if number in self.kept:
            return self.kept[number]
        program = self.registers.program
        step = program.steps[number]
        read = [program.dtype_of(operand) for operand in step.operands]
        operands = [self.value(operand) for operand in step.operands]
        for name, other in ((step.operands[-1], operands[0]), (step.operands[0], operands[-1])):
            if name[0] == "c" and step.op in program.constants[int(name[1:])].limits:
                return self.steps.limited(step.op, other, self.value(name), step.dtype)
        return self.steps.apply(step.op, operands, read, step.dtype, step.detail)


class Registers:
    """Loads, stores and steps of one kernel, whose block's words, operands' addresses and constants are loaded at its start."""

    def __init__(self, host: Host, function: Any, program: Program) -> None:
        self.host, self.function, self.program = host, function, program
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))
        self.block = self.builder.inttoptr(function.args[0], INT64.as_pointer())
        self.lanes = lanes_of(host, program)
        flags = () if program.exact else CONTRACT
        self.vector, self.single = Steps(self.builder, self.lanes, flags), Steps(self.builder, 0, flags)
        self.stored = [program.steps[number].dtype for number in program.results]
        self.dtypes = [*(operand.dtype for operand in program.operands), *self.stored]
        self.words = {name: self.word(name) for name in EXPRESSION}
        table = self.builder.inttoptr(self.words["addresses"], INT64.as_pointer())
        self.bases = [self.builder.load(self.builder.gep(table, [self.number(k)])) for k in range(len(self.dtypes))]
        self.constants = [self.constant(self.words["constants"], k) for k in range(len(program.constants))]

    def reader(
        self, places: Sequence[Any], repeated: Mapping[int, Any], at: Any, mask: Any, kept: Mapping[int, Any]
    ) -> Reader:
        """Gives a register at a position of the inner loop."""

        def load(number: int) -> Any:
            return repeated[number] if number in repeated else self.load(number, self.at(places, number, at), mask)

        return Reader(self, self.vector, load, kept)

    def single_reader(self, places: Sequence[Any], at: Any, kept: Mapping[int, Any]) -> Reader:
        """Gives one element at a position of the inner loop."""

        def load(number: int) -> Any:
            inner = self.program.operands[number].inner
            return self.load_single(number, self.at(places, number, at) if inner else places[number])

        return Reader(self, self.single, load, kept)

    def accumulated(self, steps: Steps, reader: Reader, step: Any, kind: str) -> Any:
        """Gives what one position adds to a reduction."""
        (operand,) = step.operands
        return steps.apply("cast", [reader.value(operand)], [self.program.dtype_of(operand)], kind)

    def repeated(self, places: Sequence[Any]) -> dict[int, Any]:
        """Loads the bindings that are the same along the inner loop."""
        operands = self.program.operands
        return {
            number: self.spread(self.vector, self.load_single(number, places[number]), operand.dtype)
            for number, operand in enumerate(operands)
            if not operand.inner
        }

    def identity(self, steps: Steps, op: str, dtype: str) -> Any:
        """Gives what changes nothing."""
        if op in ("sum", "prod"):
            return steps.number(dtype, 0.0 if op == "sum" else 1.0)
        if dtype in FLOATS:
            return steps.number(dtype, float("-inf" if op == "max" else "inf"))
        if dtype == "bool":
            return steps.number(dtype, op == "min")
        bits, signed = int(dtype[1:]), dtype[0] == "i"
        lowest, highest = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        return steps.number(dtype, lowest if op == "max" else highest)

    def spread(self, steps: Steps, value: Any, dtype: str) -> Any:
        """Copies one element to every lane."""
        return Emitter(self.builder, steps.type(dtype)).splat(value) if steps.lanes else value

    def mask(self, left: Any) -> Any:
        """Flags the first `left` lanes of a register, fewer than it has."""
        builder = self.builder
        bits = builder.sub(builder.shl(self.number(1), left), self.number(1))
        return Emitter(builder, ir.VectorType(INT64, self.lanes)).mask(bits)

    def memory(self, dtype: str) -> Emitter:
        """Gives loads and stores of registers as they lie in memory."""
        element = ir.IntType(8 * numpy_dtype(dtype).itemsize)
        if dtype in FLOATS and dtype not in HALVES:
            element = FLOATS[dtype]
        return Emitter(self.builder, ir.VectorType(element, self.lanes))

    def load(self, number: int, address: Any, mask: Any) -> Any:
        """Loads a register of a binding."""
        dtype = self.dtypes[number]
        memory = self.memory(dtype)
        place = self.builder.inttoptr(address, memory.element.as_pointer())
        value = memory.load(place) if mask is None else memory.masked_load(place, mask)
        return self.vector.loaded(dtype, value)

    def ask(self, places: Sequence[Any], at: Any) -> None:
        """Asks for what will be read."""
        for number, operand in enumerate(self.program.operands):
            if operand.inner:
                memory = self.memory(self.dtypes[number])
                address = self.builder.add(self.at(places, number, at), self.words["streamed"])
                memory.prefetch(self.builder.inttoptr(address, memory.element.as_pointer()))

    def store(
        self, value: Any, places: Sequence[Any], result: int, at: Any, mask: Any, *, streamed: bool = False
    ) -> None:
        """Stores a register of a result."""
        memory = self.memory(self.stored[result])
        value = self.vector.to_store(self.stored[result], value)
        address = self.at(places, len(self.program.operands) + result, at)
        place = self.builder.inttoptr(address, memory.element.as_pointer())
        if mask is not None:
            memory.masked_store(value, place, mask)
        elif streamed:
            memory.stream(value, place)
        else:
            memory.store(value, place)

    def load_single(self, number: int, address: Any) -> Any:
        """Loads one element of a binding."""
        dtype = self.dtypes[number]
        element = self.memory(dtype).element
        return self.single.loaded(dtype, self.builder.load(self.builder.inttoptr(address, element.as_pointer())))

    def store_single(self, value: Any, dtype: str, address: Any) -> None:
        """Stores one element."""
        element = self.memory(dtype).element
        value = self.single.to_store(dtype, value)
        self.builder.store(value, self.builder.inttoptr(address, element.as_pointer()))

    # -- small things

    def at(self, places: Sequence[Any], number: int, position: Any) -> Any:
        """Gives the address of a position of the inner loop."""
        size = numpy_dtype(self.dtypes[number]).itemsize
        return self.builder.add(places[number], self.builder.mul(position, self.number(size)))

    def constant(self, table: Any, number: int) -> Any:
        """Loads one constant."""
        dtype = self.program.constants[number].dtype
        element = self.memory(dtype).element
        address = self.builder.add(table, self.number(8 * number))
        return self.single.loaded(dtype, self.builder.load(self.builder.inttoptr(address, element.as_pointer())))

    def smaller(self, a: Any, b: Any) -> Any:
        """Gives the smaller of two `i64`."""
        return self.builder.select(self.builder.icmp_signed("<", a, b), a, b)

    def take(self) -> Any:
        """Takes an item, as `sharing.py` tells."""
        return take_item(self.builder, *self.function.args)

    def word(self, name: str) -> Any:
        """Loads a word of the block."""
        return self.builder.load(self.builder.gep(self.block, [self.number(index(EXPRESSION, name))]))

    def number(self, value: int) -> Any:
        """Gives a constant `i64`."""
        return ir.Constant(INT64, value)
