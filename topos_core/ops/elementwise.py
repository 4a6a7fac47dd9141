"""Elementwise ops: they neither broadcast nor promote, so every operand has the result's shape.

Where the rules differ from NumPy: `maximum` and `minimum` order -0 below +0, `sign(-0)` is -0, an integer `div` drops the
fraction (the recorder spells `//` with it), an integer `pow` with a negative exponent is the exact quotient without its
fraction. Integer division by zero gives 0, as in NumPy. f16 and bf16 results are computed in f32 and rounded once where NumPy
has no loop of its own. NumPy's exp, tanh and their kin have several loops that differ in bits and are chosen by memory
layout, so their operands are made C-contiguous first; a splat stays a splat.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from topos_core.cost.work import Work
from topos_core.ops.cast import cast_array
from topos_core.ops.definition import Evaluate, Infer, Into, OpDefinition, TypeMismatch
from topos_core.ops.erf import erf
from topos_core.ops.extremes import greater, lesser
from topos_core.ops.pieces import in_pieces
from topos_core.tape.type import DTYPE_NAMES, FLOATS, INTEGERS, TensorType, is_float, numpy_dtype

COMPARISONS: Final[Mapping[str, np.ufunc]] = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
}  # fmt: skip

_NUMBERS: Final = FLOATS + INTEGERS
_ANY: Final = DTYPE_NAMES
_BITS: Final = (*INTEGERS, "bool")


def _unary(name: str, dtypes: tuple[str, ...], remedy: str) -> Infer:
    allowed = frozenset(dtypes)

    def infer(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
        (x,) = types
        if x[0] in allowed:
            return x
        raise TypeMismatch(f"{name} is not defined for {x}; {remedy}")

    return infer


def _binary(name: str, dtypes: tuple[str, ...], remedy: str) -> Infer:
    allowed = frozenset(dtypes)

    def infer(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
        a, b = types
        if a == b and a[0] in allowed:
            return a
        raise _binary_mismatch(name, a, b, remedy)

    return infer


def _binary_mismatch(name: str, a: TensorType, b: TensorType, remedy: str) -> TypeMismatch:
    if a.dtype != b.dtype:
        return TypeMismatch(f"{name}: operand dtypes differ: {a} and {b}; cast one of them")
    if a.shape != b.shape:
        return TypeMismatch(f"{name}: operand shapes differ: {a} and {b}; broadcast one of them")
    return TypeMismatch(f"{name} is not defined for {a}; {remedy}")


def _infer_compare(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    a, b = types
    if a != b:
        raise _binary_mismatch("compare", a, b, "")
    if attributes["kind"] not in COMPARISONS:
        raise TypeMismatch(f"compare: no kind {attributes['kind']!r}; use one of {' '.join(COMPARISONS)}")
    return TensorType("bool", a.shape)


def _infer_select(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    condition, a, b = types
    if a != b:
        raise _binary_mismatch("select", a, b, "")
    if condition.dtype != "bool" or condition.shape != a.shape:
        raise TypeMismatch(
            f"select: the condition is {condition}, the values are {a}; compare it with 0 and broadcast it"
        )
    return a


def _infer_cast(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    if attributes["dtype"] not in DTYPE_NAMES:
        raise TypeMismatch(f"cast: no dtype {attributes['dtype']!r}; use one of {' '.join(DTYPE_NAMES)}")
    return TensorType(attributes["dtype"], types[0].shape)


def _ufunc(function: Callable[..., Any]) -> Evaluate:
    def evaluate(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
        return np.asarray(function(*arrays))

    return evaluate


def _ufunc_into(function: Callable[..., Any]) -> Into:
    def into(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType, out: np.ndarray) -> None:
        function(*arrays, out=out)

    return into


def _pieces_into(function: Callable[..., Any]) -> Into:
    def into(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType, out: np.ndarray) -> None:
        in_pieces(function, arrays, out, writes=function in (greater, lesser))

    return into


def _settled(function: Callable[..., Any]) -> Evaluate:
    """Like `_ufunc`, for functions whose bits would depend on the operands' layout."""

    def evaluate(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
        return np.asarray(function(*map(_in_order, arrays)))

    return evaluate


def _settled_into(function: Callable[..., Any]) -> Into:
    def into(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType, out: np.ndarray) -> None:
        function(*map(_in_order, arrays), out=out)

    return into


def _in_order(x: np.ndarray) -> np.ndarray:
    return x if _is_splat(x) else np.asarray(x, order="C")


def _is_splat(x: np.ndarray) -> bool:
    return not any(x.strides)


def _in_f32(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """Computes f16 and bf16 in f32 and rounds once."""

    def widened(x: np.ndarray) -> np.ndarray:
        return function(x.astype(np.float32)).astype(x.dtype) if x.dtype.itemsize == 2 else function(x)

    return widened


def _reciprocal_root(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.divide(x.dtype.type(1), np.sqrt(x)))


def _sign(x: np.ndarray) -> np.ndarray:
    return np.where(x == 0, x, np.sign(x)) if is_float(x.dtype) else np.asarray(np.sign(x))


def _divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if is_float(a.dtype):
        return np.asarray(np.divide(a, b))
    quotient: np.ndarray = np.floor_divide(a, b)
    if a.dtype.kind == "i":  # floor to truncation
        quotient = quotient + ((np.remainder(a, b) != 0) & ((a < 0) != (b < 0))).astype(a.dtype)
    return quotient


def _divide_into(
    arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType, out: np.ndarray
) -> None:
    a, b = arrays
    if is_float(out.dtype):
        np.divide(a, b, out=out)
    else:
        in_pieces(_divide, arrays, out)


def _power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind != "i":
        return np.asarray(np.power(a, b))
    raised = np.power(a, np.maximum(b, 0))  # NumPy refuses negative exponents
    quotient = np.where(a == 1, 1, np.where(a == -1, np.where(b & 1, -1, 1), 0)).astype(a.dtype)
    return np.where(b < 0, quotient, raised)


def _power_into(
    arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType, out: np.ndarray
) -> None:
    a, b = (_in_order(x) for x in arrays)
    if out.dtype.kind == "i":
        in_pieces(_power, (a, b), out)
    else:
        np.power(a, b, out=out)


def _evaluate_compare(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
    return np.asarray(COMPARISONS[attributes["kind"]](*arrays))


def _evaluate_select(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
    return np.where(*arrays)


def _compare_into(
    arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType, out: np.ndarray
) -> None:
    compare: Callable[..., Any] = COMPARISONS[attributes["kind"]]
    compare(*arrays, out=out)


def _select_into(
    arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType, out: np.ndarray
) -> None:
    condition, a, b = arrays
    np.copyto(out, b)
    np.copyto(out, a, where=condition)


def _cast_into(
    arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType, out: np.ndarray
) -> None:
    (x,) = arrays
    plain = x.dtype.kind in "iub" or is_float(out.dtype)  # NumPy's own conversion follows the cast rule
    if out.dtype.kind != "b" and plain:
        np.copyto(out, x, casting="unsafe")
    else:
        in_pieces(lambda piece: cast_array(piece, out.dtype), arrays, out)


def _evaluate_cast(arrays: Sequence[np.ndarray], attributes: Mapping[str, Any], result: TensorType) -> np.ndarray:
    return cast_array(arrays[0], numpy_dtype(result.dtype))


def _cheap(types: Sequence[TensorType], attributes: Mapping[str, Any], result: TensorType) -> Work:
    return Work(flops=result.size, bytes_read=sum(t.bytes for t in types), bytes_written=result.bytes)


def _transcendental(types: Sequence[TensorType], attributes: Mapping[str, Any], result: TensorType) -> Work:
    return Work(transcendentals=result.size, bytes_read=sum(t.bytes for t in types), bytes_written=result.bytes)


def _one(name: str, dtypes: tuple[str, ...], function: Callable[..., Any], remedy: str) -> OpDefinition:
    into, in_place = _writes(function)
    infer = _unary(name, dtypes, remedy)
    return OpDefinition(name, "elementwise", 1, infer, _ufunc(function), _cheap, into=into, in_place=in_place)


def _hard(name: str, function: Callable[..., Any]) -> OpDefinition:
    infer = _unary(name, FLOATS, "cast it to a float dtype first")
    into = _settled_into(function)
    return OpDefinition(name, "elementwise", 1, infer, _settled(function), _transcendental, into=into)


def _two(name: str, dtypes: tuple[str, ...], function: Callable[..., Any], remedy: str) -> OpDefinition:
    into, in_place = _writes(function)
    infer = _binary(name, dtypes, remedy)
    return OpDefinition(name, "elementwise", 2, infer, _ufunc(function), _cheap, into=into, in_place=in_place)


def _writes(function: Callable[..., Any]) -> tuple[Into, bool]:
    """Says how a function writes into a given array, and whether over an operand."""
    if isinstance(function, np.ufunc):
        return _ufunc_into(function), True
    return _pieces_into(function), False


DEFINITIONS: Final = (
    _one("neg", _NUMBERS, np.negative, "use logical_not"),
    _one("abs", _NUMBERS, np.abs, "a bool has no magnitude"),
    _hard("exp", np.exp),
    _hard("expm1", np.expm1),
    _hard("log", np.log),
    _hard("log1p", np.log1p),
    _one("sqrt", FLOATS, np.sqrt, "cast it to a float dtype first"),
    _one("rsqrt", FLOATS, _in_f32(_reciprocal_root), "cast it to a float dtype first"),
    _hard("tanh", np.tanh),
    _hard("erf", erf),
    _hard("sin", np.sin),
    _hard("cos", np.cos),
    _one("floor", FLOATS, np.floor, "integers are whole already"),
    _one("ceil", FLOATS, np.ceil, "integers are whole already"),
    _one("round", FLOATS, np.rint, "integers are whole already"),
    _one("sign", _NUMBERS, _sign, "a bool has no sign"),
    _one("logical_not", ("bool",), np.logical_not, "compare it with 0, or use xor with -1 for bits"),
    _two("add", _ANY, np.add, ""),
    _two("sub", _NUMBERS, np.subtract, "use xor for bools"),
    _two("mul", _ANY, np.multiply, ""),
    OpDefinition(
        "div", "elementwise", 2, _binary("div", _NUMBERS, "cast bools first"), _ufunc(_divide), _cheap,
        into=_divide_into, in_place=True,
    ),
    OpDefinition(
        "pow", "elementwise", 2, _binary("pow", _NUMBERS, "cast bools first"), _settled(_power), _transcendental,
        into=_power_into,
    ),
    _two("maximum", _ANY, greater, ""),
    _two("minimum", _ANY, lesser, ""),
    _two("remainder", _NUMBERS, np.remainder, "cast bools first"),
    OpDefinition("compare", "elementwise", 2, _infer_compare, _evaluate_compare, _cheap, ("kind",), _compare_into),
    _two("and", _BITS, np.bitwise_and, "bits exist for integers and bools only"),
    _two("or", _BITS, np.bitwise_or, "bits exist for integers and bools only"),
    _two("xor", _BITS, np.bitwise_xor, "bits exist for integers and bools only"),
    OpDefinition("select", "elementwise", 3, _infer_select, _evaluate_select, _cheap, into=_select_into),
    OpDefinition("cast", "elementwise", 1, _infer_cast, _evaluate_cast, _cheap, ("dtype",), _cast_into),
)  # fmt: skip
