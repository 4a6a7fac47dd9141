"""The elementwise ops of the tape, each as straight-line IR for one scalar or one vector register of any dtype.

Every op gives what `ops/elementwise.py` says it gives. A bool is one bit in registers and one byte in memory; f16 and bf16
are f32 in registers, rounded after every op. Where `flags` is empty, each op of floats is correctly rounded as it is
recorded; the functions of `transcendental` never are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from llvmlite import ir

from topos_core.kernels.vocabulary import transcendental
from topos_core.kernels.vocabulary.emitter import Emitter, declared
from topos_core.kernels.vocabulary.halves import narrowed, widened
from topos_core.kernels.vocabulary.program import HALVES

FLOATS: Final = {"f32": ir.FloatType(), "f64": ir.DoubleType(), **dict.fromkeys(HALVES, ir.FloatType())}
"""Float dtypes, as they are in registers."""
_SAME: Final = (
    "neg",
    "abs",
    "sign",
    "floor",
    "ceil",
    "round",
    "maximum",
    "minimum",
    "select",
)  # of halves they are halves
ROUNDED: Final[Mapping[str, Callable[[Emitter, Any], Any]]] = {
    "exp": transcendental.exp, "tanh": transcendental.tanh, "erf": transcendental.erf,
}  # fmt: skip
"""Functions that approximate, in vector registers."""
CALLED: Final = ("expm1", "log", "log1p", "sin", "cos", "pow")
"""Functions that are left to the C library, element by element."""
_ORDERS: Final = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


def register_type(dtype: str, lanes: int) -> Any:
    """Gives the type of a dtype's elements in registers; of one element where `lanes` is 0."""
    element = FLOATS.get(dtype) or ir.IntType(1 if dtype == "bool" else int(dtype[1:]))
    return ir.VectorType(element, lanes) if lanes else element


@dataclass(frozen=True, slots=True)
class Steps:
    """Writes ops on registers of `lanes` elements, or on single elements where that is 0."""

    builder: Any
    lanes: int
    flags: tuple[str, ...]

    def type(self, dtype: str) -> Any:
        """Gives a dtype's type in registers."""
        return register_type(dtype, self.lanes)

    def emitter(self, dtype: str) -> Emitter:
        """Gives arithmetic of a float dtype."""
        return Emitter(self.builder, self.type(dtype), self.flags)

    def number(self, dtype: str, value: float) -> Any:
        """Gives a constant in every lane."""
        kind = self.type(dtype)
        value = value if dtype in FLOATS else int(value)
        return ir.Constant(kind, [value] * self.lanes if self.lanes else value)

    def apply(self, op: str, operands: Sequence[Any], read: Sequence[str], dtype: str, detail: str = "") -> Any:
        """Emits one op.

        Args:
            op: Its name on the tape.
            operands: Registers.
            read: Their dtypes.
            dtype: Of the result.
            detail: The kind of a comparison; an integer exponent.
        """
        value = self._applied(op, operands, read, dtype, detail)
        return self._halved(dtype, value) if dtype in HALVES and op not in _SAME else value

    def _applied(self, op: str, operands: Sequence[Any], read: Sequence[str], dtype: str, detail: str) -> Any:
        kind = read[-1]  # a select's first operand is a bool
        if op in ROUNDED:
            return ROUNDED[op](self.emitter(dtype), *operands)
        if op in CALLED and dtype in FLOATS:
            return self._called(op, dtype, operands)
        if op == "cast":
            return self._cast(operands[0], kind, dtype)
        if op == "compare":
            return self._compare(detail, kind, *operands)
        if op == "select":
            return self.builder.select(*operands)
        if op == "power":
            return self._power(operands[0], dtype, int(detail))
        family = _FLOAT if kind in FLOATS else _BOOL if kind == "bool" else _INTEGER
        emitted: Any = family[op](self, kind, *operands)
        return emitted

    def loaded(self, dtype: str, value: Any) -> Any:
        """Turns what was loaded into what registers hold."""
        if dtype == "bool":
            return self.builder.icmp_signed("!=", value, ir.Constant(value.type, None))
        return widened(self.emitter(dtype), dtype, value) if dtype in HALVES else value

    def to_store(self, dtype: str, value: Any) -> Any:
        """Turns what registers hold into what memory has."""
        if dtype == "bool":
            byte = ir.IntType(8)
            return self.builder.zext(value, ir.VectorType(byte, self.lanes) if self.lanes else byte)
        return narrowed(self.emitter(dtype), dtype, value) if dtype in HALVES else value

    def _halved(self, dtype: str, value: Any) -> Any:
        e = self.emitter(dtype)
        return widened(e, dtype, narrowed(e, dtype, value))

    def limited(self, op: str, x: Any, limit: Any, dtype: str) -> Any:
        """Emits the maximum or minimum of a float and a number that is no NaN and, where it is zero, decides as one.

        `limit` is not -0 for a maximum and not +0 for a minimum; NaN in `x` stays.
        """
        order = ">" if op == "maximum" else "<"
        return self.builder.select(self.builder.fcmp_unordered(order, x, limit), x, limit)

    def combine(self, op: str, dtype: str, a: Any, b: Any) -> Any:
        """Emits one step of a reduction: sum, prod, max or min."""
        name = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum"}[op]
        return self.apply(name, (a, b), (dtype, dtype), dtype)

    def intrinsic(self, name: str, dtype: str, operands: Sequence[Any]) -> Any:
        """Calls an intrinsic of LLVM that is overloaded by its operands' type."""
        lanes = f"v{self.lanes}" if self.lanes else ""
        full = f"llvm.{name}.{lanes}{_in_registers(dtype)}"
        return self._declared(full, self.type(dtype), operands)

    def _declared(self, name: str, result: Any, operands: Sequence[Any]) -> Any:
        return self.builder.call(declared(self.builder, name, result, operands), operands)

    def _called(self, op: str, dtype: str, operands: Sequence[Any]) -> Any:
        """Calls the C library's function for every lane."""
        builder, name = self.builder, op if dtype == "f64" else f"{op}f"
        if not self.lanes:
            return self._declared(name, self.type(dtype), operands)
        result = ir.Constant(self.type(dtype), ir.Undefined)
        for lane in range(self.lanes):
            place = ir.Constant(ir.IntType(32), lane)
            elements = [builder.extract_element(operand, place) for operand in operands]
            value = builder.call(declared(builder, name, FLOATS[dtype], elements), elements)
            result = builder.insert_element(result, value, place)
        return result

    def _compare(self, detail: str, dtype: str, a: Any, b: Any) -> Any:
        order = _ORDERS[detail]
        if dtype in FLOATS:
            return (self.builder.fcmp_unordered if detail == "ne" else self.builder.fcmp_ordered)(order, a, b)
        return (self.builder.icmp_signed if dtype[0] == "i" else self.builder.icmp_unsigned)(order, a, b)

    def _power(self, x: Any, dtype: str, exponent: int) -> Any:
        e = self.emitter(dtype)
        match exponent:
            case -1:
                return e.div(e.constant(1.0), x)
            case 2:
                return e.mul(x, x)
            case 3:
                return e.mul(e.mul(x, x), x)
        raise ValueError(f"no power {exponent}")

    def _cast(self, x: Any, source: str, target: str) -> Any:
        builder, kind = self.builder, self.type(target)
        if source == target:
            return x
        if target == "bool":
            return self._compare("ne", source, x, self.number(source, 0.0))
        if source in FLOATS and target in FLOATS:
            if x.type == kind:
                return x
            return (builder.fpext if target == "f64" else builder.fptrunc)(x, kind)
        if source in FLOATS:
            letter = "s" if target[0] == "i" else "u"
            lanes = f"v{self.lanes}" if self.lanes else ""
            name = f"llvm.fpto{letter}i.sat.{lanes}i{target[1:]}.{lanes}{_in_registers(source)}"
            return self._declared(name, kind, [x])
        signed = source[0] == "i"
        if target in FLOATS:
            return (builder.sitofp if signed else builder.uitofp)(x, kind)
        width, wanted = (1 if name == "bool" else int(name[1:]) for name in (source, target))
        if width == wanted:
            return x
        if width > wanted:
            return builder.trunc(x, kind)
        return (builder.sext if signed else builder.zext)(x, kind)

    # -- integers: division by zero must not stop the machine, and gives 0 as NumPy does

    def _safe(self, dtype: str, a: Any, b: Any) -> tuple[Any, Any]:
        """Gives a divisor that no machine traps on, and where the quotient is the negated dividend."""
        zero, one = self.number(dtype, 0), self.number(dtype, 1)
        safe = self.builder.select(self.builder.icmp_signed("==", b, zero), one, b)
        if dtype[0] == "u":
            return safe, None
        minus = self.builder.icmp_signed("==", b, self.number(dtype, -1))
        return self.builder.select(minus, one, safe), minus

    def _divided(self, dtype: str, a: Any, b: Any) -> Any:
        builder, zero = self.builder, self.number(dtype, 0)
        safe, minus = self._safe(dtype, a, b)
        if minus is None:
            quotient = builder.udiv(a, safe)
        else:
            quotient = builder.select(minus, builder.neg(a), builder.sdiv(a, safe))
        return builder.select(builder.icmp_signed("==", b, zero), zero, quotient)

    def _remainder(self, dtype: str, a: Any, b: Any) -> Any:
        """The remainder has the divisor's sign."""
        builder, zero = self.builder, self.number(dtype, 0)
        safe, minus = self._safe(dtype, a, b)
        if minus is None:
            return builder.urem(a, safe)
        rest = builder.srem(a, safe)
        signs = builder.icmp_signed("<", builder.xor(rest, b), zero)
        wrong = builder.and_(signs, builder.icmp_signed("!=", rest, zero))
        return builder.select(minus, zero, builder.select(wrong, builder.add(rest, b), rest))

    def _extreme(self, dtype: str, a: Any, b: Any, order: str) -> Any:
        compare = self.builder.icmp_signed if dtype[0] == "i" else self.builder.icmp_unsigned
        return self.builder.select(compare(order, a, b), a, b)

    def _sign(self, dtype: str, x: Any) -> Any:
        builder, zero, one = self.builder, self.number(dtype, 0), self.number(dtype, 1)
        if dtype[0] == "u":
            return builder.select(builder.icmp_unsigned("!=", x, zero), one, zero)
        below = builder.select(builder.icmp_signed("<", x, zero), self.number(dtype, -1), zero)
        return builder.select(builder.icmp_signed(">", x, zero), one, below)

    # -- floats

    def _float_sign(self, dtype: str, x: Any) -> Any:
        """Zeros keep their sign, NaN stays."""
        e = self.emitter(dtype)
        signed = transcendental.with_sign_of(e, e.constant(1.0), x)
        return self.builder.select(self.builder.fcmp_unordered("==", x, e.constant(0.0)), x, signed)

    def _float_remainder(self, dtype: str, a: Any, b: Any) -> Any:
        """C's fmod, moved to the divisor's sign, as NumPy does it."""
        builder, e = self.builder, self.emitter(dtype)
        zero = e.constant(0.0)
        rest = builder.frem(a, b)
        apart = builder.xor(builder.fcmp_ordered("<", b, zero), builder.fcmp_ordered("<", rest, zero))
        moved = builder.select(apart, builder.fadd(rest, b), rest)
        whole = builder.fcmp_ordered("==", rest, zero)
        return builder.select(whole, transcendental.with_sign_of(e, zero, b), moved)


def _in_registers(dtype: str) -> str:
    return "f32" if dtype in HALVES else dtype


def _unsigned_abs(s: Steps, dtype: str, x: Any) -> Any:
    if dtype[0] == "u":
        return x
    return s.builder.select(s.builder.icmp_signed("<", x, s.number(dtype, 0)), s.builder.neg(x), x)


Emit = Callable[..., Any]

_FLOAT: Final[Mapping[str, Emit]] = {
    "neg": lambda s, t, x: s.builder.fneg(x),
    "abs": lambda s, t, x: transcendental.absolute(s.emitter(t), x),
    "sqrt": lambda s, t, x: s.intrinsic("sqrt", t, [x]),
    "rsqrt": lambda s, t, x: s.emitter(t).div(s.number(t, 1.0), s.intrinsic("sqrt", t, [x])),
    "floor": lambda s, t, x: s.intrinsic("floor", t, [x]),
    "ceil": lambda s, t, x: s.intrinsic("ceil", t, [x]),
    "round": lambda s, t, x: s.intrinsic("rint", t, [x]),
    "sign": Steps._float_sign,
    "add": lambda s, t, a, b: s.emitter(t).add(a, b),
    "sub": lambda s, t, a, b: s.emitter(t).sub(a, b),
    "mul": lambda s, t, a, b: s.emitter(t).mul(a, b),
    "div": lambda s, t, a, b: s.emitter(t).div(a, b),
    "remainder": Steps._float_remainder,
    "maximum": lambda s, t, a, b: s.intrinsic("maximum", t, [a, b]),
    "minimum": lambda s, t, a, b: s.intrinsic("minimum", t, [a, b]),
}
_INTEGER: Final[Mapping[str, Emit]] = {
    "neg": lambda s, t, x: s.builder.neg(x),
    "abs": _unsigned_abs,
    "sign": Steps._sign,
    "add": lambda s, t, a, b: s.builder.add(a, b),
    "sub": lambda s, t, a, b: s.builder.sub(a, b),
    "mul": lambda s, t, a, b: s.builder.mul(a, b),
    "div": Steps._divided,
    "remainder": Steps._remainder,
    "maximum": lambda s, t, a, b: s._extreme(t, a, b, ">"),
    "minimum": lambda s, t, a, b: s._extreme(t, a, b, "<"),
    "and": lambda s, t, a, b: s.builder.and_(a, b),
    "or": lambda s, t, a, b: s.builder.or_(a, b),
    "xor": lambda s, t, a, b: s.builder.xor(a, b),
}
_BOOL: Final[Mapping[str, Emit]] = {
    "logical_not": lambda s, t, x: s.builder.xor(x, s.number(t, 1)),
    **dict.fromkeys(("add", "or", "maximum"), lambda s, t, a, b: s.builder.or_(a, b)),
    **dict.fromkeys(("mul", "and", "minimum"), lambda s, t, a, b: s.builder.and_(a, b)),
    "xor": lambda s, t, a, b: s.builder.xor(a, b),
}
