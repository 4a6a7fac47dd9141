"""Elementwise meaning: operands are promoted as NumPy would, cast, broadcast, and then one op is recorded.

`direct` is for ufuncs that are ops; `topos_core/recording/formulas.py` spells the others out of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from topos_core.recording import constant, formulas
from topos_core.recording.promotion import (
    NoDtype,
    common_dtype,
    is_numpy_scalar,
    is_weak,
    loop_of,
    without_numpy_scalars,
)
from topos_core.recording.recorder import NOTHING, Recorder, recorder_of
from topos_core.recording.remedies import of_ufunc
from topos_core.recording.value import Value
from topos_core.tape.type import FLOATS, numpy_dtype

_OPS: Final[Mapping[np.ufunc, str]] = {
    np.add: "add", np.subtract: "sub", np.multiply: "mul", np.divide: "div", np.power: "pow", np.float_power: "pow",
    np.maximum: "maximum", np.minimum: "minimum", np.remainder: "remainder",
    np.negative: "neg", np.absolute: "abs", np.fabs: "abs", np.exp: "exp", np.expm1: "expm1", np.log: "log",
    np.log1p: "log1p", np.sqrt: "sqrt", np.tanh: "tanh", np.sin: "sin", np.cos: "cos", np.floor: "floor",
    np.ceil: "ceil", np.rint: "round", np.sign: "sign",
}  # fmt: skip
_COMPARISONS: Final[Mapping[np.ufunc, Mapping[str, str]]] = {
    np.less: {"kind": "lt"}, np.less_equal: {"kind": "le"}, np.greater: {"kind": "gt"},
    np.greater_equal: {"kind": "ge"}, np.equal: {"kind": "eq"}, np.not_equal: {"kind": "ne"},
}  # fmt: skip
_ON_BOOLS: Final = {"add": "or", "mul": "and", "maximum": "or", "minimum": "and"}
_WHOLE: Final = ("floor", "ceil", "round")
_FOREIGN_UNARY: Final = {"erf": "erf"}  # scipy.special's ufuncs go by name: SciPy is not imported


def apply(ufunc: np.ufunc, operands: tuple[Any, ...], dtype: Any = None) -> Value:
    """Records a ufunc.

    Raises:
        RecordingError: The ufunc has no recorded meaning, or the operands do not fit.
    """
    name = _OPS.get(ufunc)
    if name is not None:
        return direct(name, ufunc, operands, dtype)
    attributes = _COMPARISONS.get(ufunc)
    if attributes is not None:
        return _compare(ufunc, operands, attributes)
    formula = formulas.formula_of(ufunc)
    if formula is not None:
        if dtype is not None:
            operands = tuple(astype(x, dtype, copy=False) if isinstance(x, Value) else x for x in operands)
        return formula(*operands)
    if ufunc.__name__ in _FOREIGN_UNARY:
        return direct(_FOREIGN_UNARY[ufunc.__name__], ufunc, operands, dtype)
    foreign = formulas.FOREIGN.get(ufunc.__name__)
    if foreign is not None:
        return foreign(*_in_its_loop(ufunc, operands, dtype))
    twin = getattr(np, ufunc.__name__, None)  # SciPy has an exp2, log1p and expm1 of its own
    known = isinstance(twin, np.ufunc) and twin is not ufunc and (twin in _OPS or formulas.formula_of(twin) is not None)
    remedy = of_ufunc(ufunc.__name__, namesake=known)
    raise recorder_of(*operands).error(f"{ufunc.__name__} has no recorded meaning; {remedy}")


def direct(
    name: str, ufunc: np.ufunc, operands: tuple[Any, ...], dtype: Any = None, attributes: Mapping[str, Any] = NOTHING
) -> Value:
    """Records op `name` with the dtypes that `ufunc` would run in."""
    recorder = recorder_of(*operands)
    operands, kinds, loop = _resolve(recorder, ufunc, operands, dtype)
    if loop[-1] == "bool" and name != "compare":
        if name in ("abs", *_WHOLE):
            return formulas.fresh(operands[0])
        name = _ON_BOOLS.get(name, name)
    elif name in _WHOLE and loop[-1] not in FLOATS:
        return formulas.fresh(operands[0])
    shape = _broadcast(recorder, name, operands)
    lifted = tuple([constant.lift_as(recorder, x, wanted, shape) for x, wanted in zip(operands, loop)])  # noqa: B905  # loop also holds the result
    result = recorder.record(name, lifted, attributes)
    if any(map(is_numpy_scalar, operands)):
        _note_widening(recorder, ufunc, operands, kinds, loop, result)
    return result


def cast(x: Value, dtype: str) -> Value:
    """Casts to a dtype by name; nothing is recorded where x has it."""
    return x if x.type.dtype == dtype else x.recorder.record("cast", (x,), {"dtype": dtype})


def astype(x: Value, dtype: Any, *, copy: bool = True) -> Value:
    """Casts as ndarray.astype: the same dtype gives another handle, or x itself where no copy is asked for."""
    result = cast(x, constant.dtype_named(x.recorder, dtype))
    return formulas.fresh(result) if copy and result is x else result


def select(condition: Any, a: Any = None, b: Any = None) -> Value:
    """Records np.where with three arguments."""
    recorder = recorder_of(condition, a, b)
    if a is None or b is None:
        raise recorder.error(
            "np.where(mask) gives as many indices as the data holds; give both values: np.where(mask, a, b)"
        )
    mask, a, b = (constant.operand(recorder, x) for x in (condition, a, b))
    kinds = constant.kinds_of(recorder, (a, b))
    dtype = _common(recorder, kinds)
    shape = _broadcast(recorder, "where", (mask, a, b))
    if isinstance(mask, Value):
        mask = constant.lift_as(recorder, formulas.nonzero(mask), "bool", shape)
    else:
        mask = constant.lift_as(recorder, np.not_equal(mask, 0), "bool", shape)
    result = recorder.record(
        "select", (mask, constant.lift_as(recorder, a, dtype, shape), constant.lift_as(recorder, b, dtype, shape))
    )
    if any(map(is_numpy_scalar, (a, b))):
        narrow = _common(recorder, without_numpy_scalars(kinds, (a, b)))
        if narrow != dtype and dtype in FLOATS and any(isinstance(x, Value) and x.type.dtype in FLOATS for x in (a, b)):
            _note(recorder, (a, b), narrow, dtype, result)
    return result


def clip(x: Any, low: Any = None, high: Any = None, out: Any = None, *, min: Any = None, max: Any = None) -> Value:
    """Records np.clip: maximum, then minimum."""
    recorder = recorder_of(x, low, high, min, max)
    if out is not None:
        raise recorder.error("clip(out=...) writes into an array; use the returned value")
    low, high = (low if low is not None else min), (high if high is not None else max)
    result = x
    if low is not None:
        result = apply(np.maximum, (result, low))
    if high is not None:
        result = apply(np.minimum, (result, high))
    return formulas.fresh(result) if result is x else result


def power(base: Any, exponent: Any) -> Value:
    """Records `**` as NumPy evaluates it: ndarray.__pow__ has short cuts for some Python scalars; np.power has none."""
    if isinstance(base, Value) and is_weak(exponent):
        floating = base.type.dtype in FLOATS
        if exponent == 2 and isinstance(exponent, int) and base.type.dtype == "bool":
            base = cast(base, "i8")  # what np.square makes of bools
        if exponent == 2 and base.type.dtype != "bool":
            return (
                apply(np.multiply, (base, base))
                if floating or isinstance(exponent, int)
                else _power_of_int(base, exponent)
            )
        if floating and exponent == 1:
            return formulas.fresh(base)
        if floating and exponent == 0.5:
            return apply(np.sqrt, (base,))
        if floating and exponent == -1:
            return apply(np.divide, (1, base))
        if not floating and isinstance(exponent, int) and exponent < 0:
            raise base.recorder.error(
                f"{base.type} to the power {exponent}: integers to negative integer powers are not allowed; cast the base to a float"
            )
    return apply(np.power, (base, exponent))


def round_to(x: Value, decimals: int = 0, out: Any = None) -> Value:
    """Records np.round: scales, rounds half to even, scales back."""
    if out is not None:
        raise x.recorder.error("round(out=...) writes into an array; use the returned value")
    if x.type.dtype not in FLOATS:
        if decimals < 0:
            raise x.recorder.error(
                f"round({x.type}, {decimals}): integers are rounded to whole tens only after a cast to a float"
            )
        return formulas.fresh(x)
    if decimals == 0:
        return apply(np.rint, (x,))
    scale = 10.0 ** abs(decimals)
    there, back = (np.multiply, np.divide) if decimals > 0 else (np.divide, np.multiply)
    return apply(back, (apply(np.rint, (apply(there, (x, scale)),)), scale))


def _power_of_int(base: Value, exponent: float) -> Value:
    wide = cast(base, "f64")
    return apply(np.multiply, (wide, wide)) if exponent == 2 else apply(np.power, (base, exponent))


def _resolve(
    recorder: Recorder, ufunc: np.ufunc, operands: tuple[Any, ...], dtype: Any
) -> tuple[tuple[Any, ...], tuple[str, ...], tuple[str, ...]]:
    """Gives the operands made uniform, their kinds, and the dtypes of the loop that NumPy would run."""
    operands = tuple([x if type(x) is Value else constant.operand(recorder, x) for x in operands])
    kinds = constant.kinds_of(recorder, operands)
    try:
        wanted = None if dtype is None else constant.dtype_named(recorder, dtype)
        return operands, kinds, loop_of(ufunc, kinds, wanted)
    except NoDtype as error:
        raise recorder.error(f"{ufunc.__name__}: {error}") from None
    except TypeError:
        shown = " and ".join(kinds)
        raise recorder.error(f"{ufunc.__name__} is not defined for {shown}; cast an operand first") from None


def _in_its_loop(ufunc: np.ufunc, operands: tuple[Any, ...], dtype: Any) -> tuple[Any, ...]:
    """Casts recorded operands to the dtypes that the ufunc would run in; bf16, which SciPy does not know, stays."""
    recorder = recorder_of(*operands)
    operands = tuple(constant.operand(recorder, x) for x in operands)
    if "bf16" in constant.kinds_of(recorder, operands):
        return operands
    _, _, loop = _resolve(recorder, ufunc, operands, dtype)
    return tuple(cast(x, wanted) if isinstance(x, Value) else x for x, wanted in zip(operands, loop, strict=False))


def _broadcast(recorder: Recorder, name: str, operands: tuple[Any, ...]) -> tuple[int, ...]:
    shapes = [x.type.shape if type(x) is Value else np.shape(x) for x in operands]
    first = shapes[0]
    for shape in shapes:
        if shape != first:
            break
    else:
        return first
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        shown = " and ".join(str(x.type) if isinstance(x, Value) else str(list(np.shape(x))) for x in operands)
        raise recorder.error(
            f"{name}: {shown} do not broadcast together; trailing extents must be equal or 1"
        ) from None


def _compare(ufunc: np.ufunc, operands: tuple[Any, ...], attributes: Mapping[str, str]) -> Value:
    for at, x in enumerate(operands):
        other = operands[1 - at]
        if is_weak(x) and isinstance(x, int) and isinstance(other, Value) and other.type.dtype not in (*FLOATS, "bool"):
            limits = np.iinfo(numpy_dtype(other.type.dtype))
            if not limits.min <= x <= limits.max:  # NumPy answers these too: every element lies on one side
                answer = bool(ufunc(0, 1 if x > 0 else -1) if at else ufunc(1 if x > 0 else -1, 0))
                return constant.splat(other.recorder, answer, "bool", other.type.shape)
    return direct("compare", ufunc, operands, None, attributes)


def _common(recorder: Recorder, kinds: tuple[str, ...]) -> str:
    try:
        return common_dtype(kinds)
    except (TypeError, NoDtype) as error:
        raise recorder.error(f"{' and '.join(kinds)} have no common dtype ({error}); cast one of them") from None


def common(recorder: Recorder, operands: tuple[Any, ...]) -> str:
    """Gives the dtype that operands share in `where`, `concatenate` and products."""
    return _common(recorder, constant.kinds_of(recorder, operands))


def _note_widening(
    recorder: Recorder,
    ufunc: np.ufunc,
    operands: tuple[Any, ...],
    kinds: tuple[str, ...],
    loop: tuple[str, ...],
    result: Value,
) -> None:
    """Notes TP701 where a NumPy scalar, and nothing else, made a float wider."""
    if not any(isinstance(x, Value) and x.type.dtype in FLOATS for x in operands):
        return
    narrow = loop_of(ufunc, without_numpy_scalars(kinds, operands))
    if narrow[0] != loop[0]:
        _note(recorder, operands, narrow[0], loop[0], result)


def _note(recorder: Recorder, operands: tuple[Any, ...], narrow: str, wide: str, result: Value) -> None:
    scalar = next(x for x in operands if is_numpy_scalar(x))
    recorder.note(
        "TP701",
        result,
        f"{narrow} became {wide} here because {scalar.item()!r} is a NumPy {scalar.dtype} scalar; use float() or math.sqrt for it",
    )
