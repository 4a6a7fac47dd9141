"""f16 and bf16 as integers in memory and f32 in registers, on any machine, rounding half to even.

Source: Giesen, float->half variants (2013), for the subnormal numbers of f16.
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir

from topos_core.kernels.vocabulary.emitter import Emitter

_NAN: Final = 0x7F800000
_SIGN: Final = -0x80000000


def widened(e: Emitter, dtype: str, bits: Any) -> Any:
    """Gives the f32 of 16 bits; `e` writes f32."""
    builder = e.builder
    wide = builder.zext(bits, e.integer)
    if dtype == "bf16":
        return builder.bitcast(builder.shl(wide, e.constant(16, e.integer)), e.type)
    sign = builder.shl(builder.and_(wide, _number(e, 0x8000)), _number(e, 16))
    moved = builder.shl(builder.and_(wide, _number(e, 0x7FFF)), _number(e, 13))
    exponent = builder.and_(moved, _number(e, 0x7C00 << 13))
    normal = builder.add(moved, _number(e, (127 - 15) << 23))
    special = builder.add(normal, _number(e, (128 - 16) << 23))
    small = builder.bitcast(builder.add(normal, _number(e, 1 << 23)), e.type)
    small = builder.fsub(small, builder.bitcast(_number(e, 113 << 23), e.type))
    found = builder.select(_equal(e, exponent, 0x7C00 << 13), special, normal)
    found = builder.select(_equal(e, exponent, 0), builder.bitcast(small, e.integer), found)
    return builder.bitcast(builder.or_(found, sign), e.type)


def narrowed(e: Emitter, dtype: str, x: Any) -> Any:
    """Gives the 16 bits nearest to an f32."""
    builder = e.builder
    bits = builder.bitcast(x, e.integer)
    kind = ir.VectorType(ir.IntType(16), e.type.count) if isinstance(e.type, ir.VectorType) else ir.IntType(16)
    sign = builder.and_(bits, _number(e, _SIGN))
    magnitude = builder.xor(bits, sign)
    undefined = builder.icmp_signed(">", magnitude, _number(e, _NAN))
    if dtype == "bf16":
        odd = builder.and_(builder.lshr(bits, _number(e, 16)), _number(e, 1))
        found = builder.add(builder.add(bits, _number(e, 0x7FFF)), odd)
        found = builder.select(undefined, builder.or_(bits, _number(e, 0x400000)), found)
        return builder.trunc(builder.lshr(found, _number(e, 16)), kind)
    odd = builder.and_(builder.lshr(magnitude, _number(e, 13)), _number(e, 1))
    normal = builder.add(builder.add(magnitude, _number(e, 0xFFF - ((127 - 15) << 23))), odd)
    normal = builder.lshr(normal, _number(e, 13))
    half = e.constant(0.5)
    small = builder.fadd(builder.bitcast(magnitude, e.type), half)
    small = builder.sub(builder.bitcast(small, e.integer), builder.bitcast(half, e.integer))
    special = builder.select(undefined, _number(e, 0x7E00), _number(e, 0x7C00))
    found = builder.select(builder.icmp_signed("<", magnitude, _number(e, 113 << 23)), small, normal)
    found = builder.select(builder.icmp_signed(">=", magnitude, _number(e, 143 << 23)), special, found)
    return builder.trunc(builder.or_(found, builder.lshr(sign, _number(e, 16))), kind)


def _number(e: Emitter, value: int) -> Any:
    return e.constant(value, e.integer)


def _equal(e: Emitter, a: Any, value: int) -> Any:
    return e.builder.icmp_signed("==", a, _number(e, value))
