"""The recording handle: behaves like an array of the ecosystem, and every operation on it becomes an op.

A Value names a value of the tape. `x += y` moves the handle on to the new value, so that every other name of the handle
sees the change, as every name of a NumPy array would; handles that share memory in NumPy (views) share `memory` here, and
an in-place update is refused while another one of them is alive.

The file is long because one class has all of an array's operators and methods; each is one line onto a formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import ref

import numpy as np

from topos_core.tape.type import TensorType, numpy_dtype

if TYPE_CHECKING:
    from topos_core.recording.recorder import Recorder


class Value:
    """A recorded array: `f32[2,3]` that does not exist yet."""

    __slots__ = ("__weakref__", "index", "memory", "recorder", "type")
    __hash__ = object.__hash__

    def __init__(self, recorder: Recorder, index: int, type: TensorType) -> None:
        self.recorder = recorder
        self.index = index
        self.type = type
        self.memory: list[ref[Value]] | None = None

    # -- what is known about it
    @property
    def shape(self) -> tuple[int, ...]:
        """Gives the extents."""
        return self.type.shape

    @property
    def dtype(self) -> np.dtype:
        """Gives NumPy's dtype."""
        return numpy_dtype(self.type.dtype)

    @property
    def ndim(self) -> int:
        """Counts axes."""
        return len(self.type.shape)

    @property
    def size(self) -> int:
        """Counts elements."""
        return math.prod(self.type.shape)

    @property
    def itemsize(self) -> int:
        """Gives the bytes of one element."""
        return numpy_dtype(self.type.dtype).itemsize

    @property
    def nbytes(self) -> int:
        """Gives the bytes of all elements."""
        return self.type.bytes

    @property
    def device(self) -> str:
        """Gives the array API's device."""
        return "cpu"

    @property
    def T(self) -> Value:
        """Reverses the axes."""
        return views.transpose(self)

    @property
    def mT(self) -> Value:
        """Swaps the last two axes."""
        return views.matrix_transpose(self)

    @property
    def real(self) -> Value:
        """Gives the value itself: topos has no complex numbers."""
        return self

    def __len__(self) -> int:
        if not self.type.shape:
            raise self.recorder.error("len() of a scalar value; reshape it to one axis first")
        return self.type.shape[0]

    def __iter__(self) -> Iterator[Value]:
        if not self.type.shape:
            raise self.recorder.error("iteration over a scalar value; reshape it to one axis first")
        return (self[i] for i in range(self.type.shape[0]))

    # -- NumPy's protocols and the array API's
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        return numpy_protocol.call_ufunc(self, ufunc, method, inputs, keywords)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Any:
        return numpy_protocol.call_function(self, function, arguments, keywords)

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return np

    # -- arithmetic
    def __add__(self, other: Any) -> Value:
        return elementwise.apply(np.add, (self, other))

    def __radd__(self, other: Any) -> Value:
        return elementwise.apply(np.add, (other, self))

    def __sub__(self, other: Any) -> Value:
        return elementwise.apply(np.subtract, (self, other))

    def __rsub__(self, other: Any) -> Value:
        return elementwise.apply(np.subtract, (other, self))

    def __mul__(self, other: Any) -> Value:
        return elementwise.apply(np.multiply, (self, other))

    def __rmul__(self, other: Any) -> Value:
        return elementwise.apply(np.multiply, (other, self))

    def __truediv__(self, other: Any) -> Value:
        return elementwise.apply(np.divide, (self, other))

    def __rtruediv__(self, other: Any) -> Value:
        return elementwise.apply(np.divide, (other, self))

    def __floordiv__(self, other: Any) -> Value:
        return elementwise.apply(np.floor_divide, (self, other))

    def __rfloordiv__(self, other: Any) -> Value:
        return elementwise.apply(np.floor_divide, (other, self))

    def __mod__(self, other: Any) -> Value:
        return elementwise.apply(np.remainder, (self, other))

    def __rmod__(self, other: Any) -> Value:
        return elementwise.apply(np.remainder, (other, self))

    def __divmod__(self, other: Any) -> tuple[Value, Value]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Value, Value]:
        return other // self, other % self

    def __pow__(self, other: Any, modulus: None = None) -> Value:
        return elementwise.power(self, other)

    def __rpow__(self, other: Any) -> Value:
        return elementwise.power(other, self)

    def __matmul__(self, other: Any) -> Value:
        return contraction.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Value:
        return contraction.matmul(other, self)

    def __and__(self, other: Any) -> Value:
        return elementwise.apply(np.bitwise_and, (self, other))

    def __rand__(self, other: Any) -> Value:
        return elementwise.apply(np.bitwise_and, (other, self))

    def __or__(self, other: Any) -> Value:
        return elementwise.apply(np.bitwise_or, (self, other))

    def __ror__(self, other: Any) -> Value:
        return elementwise.apply(np.bitwise_or, (other, self))

    def __xor__(self, other: Any) -> Value:
        return elementwise.apply(np.bitwise_xor, (self, other))

    def __rxor__(self, other: Any) -> Value:
        return elementwise.apply(np.bitwise_xor, (other, self))

    def __lshift__(self, other: Any) -> Value:
        return elementwise.apply(np.left_shift, (self, other))

    def __rshift__(self, other: Any) -> Value:
        return elementwise.apply(np.right_shift, (self, other))

    def __neg__(self) -> Value:
        return elementwise.apply(np.negative, (self,))

    def __pos__(self) -> Value:
        return self.copy()

    def __abs__(self) -> Value:
        return elementwise.apply(np.absolute, (self,))

    def __invert__(self) -> Value:
        return elementwise.apply(np.invert, (self,))

    def __round__(self, digits: int = 0) -> Value:
        if self.type.shape:
            raise self.recorder.error(
                f"round() of {self.type}: Python rounds numbers only; write np.round(x, {digits})"
            )
        return elementwise.round_to(self, digits)

    # -- comparison
    def __lt__(self, other: Any) -> Value:
        return elementwise.apply(np.less, (self, other))

    def __le__(self, other: Any) -> Value:
        return elementwise.apply(np.less_equal, (self, other))

    def __gt__(self, other: Any) -> Value:
        return elementwise.apply(np.greater, (self, other))

    def __ge__(self, other: Any) -> Value:
        return elementwise.apply(np.greater_equal, (self, other))

    def __eq__(self, other: Any) -> Value:  # type: ignore[override]  # elementwise, as in NumPy
        return elementwise.apply(np.equal, (self, other))

    def __ne__(self, other: Any) -> Value:  # type: ignore[override]
        return elementwise.apply(np.not_equal, (self, other))

    # -- in place
    def __iadd__(self, other: Any) -> Value:
        return in_place.update(self, elementwise.apply, np.add, other)

    def __isub__(self, other: Any) -> Value:
        return in_place.update(self, elementwise.apply, np.subtract, other)

    def __imul__(self, other: Any) -> Value:
        return in_place.update(self, elementwise.apply, np.multiply, other)

    def __itruediv__(self, other: Any) -> Value:
        return in_place.update(self, elementwise.apply, np.divide, other)

    def __ifloordiv__(self, other: Any) -> Value:
        return in_place.update(self, elementwise.apply, np.floor_divide, other)

    def __imod__(self, other: Any) -> Value:
        return in_place.update(self, elementwise.apply, np.remainder, other)

    def __ipow__(self, other: Any) -> Value:  # type: ignore[misc]  # the base's modulus is never given in place
        return in_place.update(self, lambda _, operands: elementwise.power(*operands), np.power, other)

    def __imatmul__(self, other: Any) -> Value:
        return in_place.update(self, lambda _, operands: contraction.matmul(*operands), np.matmul, other)

    def __iand__(self, other: Any) -> Value:
        return in_place.update(self, elementwise.apply, np.bitwise_and, other)

    def __ior__(self, other: Any) -> Value:
        return in_place.update(self, elementwise.apply, np.bitwise_or, other)

    def __ixor__(self, other: Any) -> Value:
        return in_place.update(self, elementwise.apply, np.bitwise_xor, other)

    # -- movement
    def __getitem__(self, key: Any) -> Value:
        return views.getitem(self, key)

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Value:
        """Gives the same elements in row-major order under another shape."""
        return views.reshape(self, _one_or_many(shape), order, copy=copy)

    def transpose(self, *axes: Any) -> Value:
        """Reorders the axes; reverses them without arguments."""
        return views.transpose(self, _one_or_many(axes) if axes else None)

    def swapaxes(self, axis1: int, axis2: int) -> Value:
        """Exchanges two axes."""
        return views.swapaxes(self, axis1, axis2)

    def squeeze(self, axis: Any = None) -> Value:
        """Drops axes of extent 1."""
        return views.squeeze(self, axis)

    def ravel(self, order: str = "C") -> Value:
        """Gives one axis."""
        return views.reshape(self, (-1,), order)

    def flatten(self, order: str = "C") -> Value:
        """Gives one axis, as a copy."""
        return formulas.fresh(movement.reshape(self, (-1,), order))

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Value:
        """Gives a diagonal as the last axis."""
        return views.diagonal(self, offset, axis1, axis2)

    def repeat(self, repeats: Any, axis: int | None = None) -> Value:
        """Repeats elements."""
        return repetition.repeat(self, repeats, axis)

    def take(self, indices: Any, axis: int | None = None, out: None = None, mode: str = "raise") -> Value:
        """Picks along an axis by index."""
        return lookup.take(self, indices, axis, out, mode)

    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Value:
        """Casts; the same dtype gives another handle unless `copy` is False."""
        return elementwise.astype(self, dtype, copy=copy)

    def copy(self, order: str = "C") -> Value:
        """Gives another handle of the same value: what a copy is to a NumPy array."""
        return Value(self.recorder, self.index, self.type)

    def __copy__(self) -> Value:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Value:
        return self.copy()

    # -- reductions
    def sum(
        self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, **keywords: Any
    ) -> Value:
        """Adds up."""
        return reductions.sum(self, axis, dtype, out, keepdims, **keywords)

    def prod(
        self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, **keywords: Any
    ) -> Value:
        """Multiplies."""
        return reductions.prod(self, axis, dtype, out, keepdims, **keywords)

    def max(self, axis: Any = None, out: None = None, keepdims: bool = False, **keywords: Any) -> Value:
        """Takes the largest; NaN wins."""
        return reductions.max(self, axis, out, keepdims, **keywords)

    def min(self, axis: Any = None, out: None = None, keepdims: bool = False, **keywords: Any) -> Value:
        """Takes the smallest; NaN wins."""
        return reductions.min(self, axis, out, keepdims, **keywords)

    def mean(
        self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, **keywords: Any
    ) -> Value:
        """Averages."""
        return averages.mean(self, axis, dtype, out, keepdims, **keywords)

    def var(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
        **keywords: Any,
    ) -> Value:
        """Gives the variance, in two passes."""
        return averages.var(self, axis, dtype, out, ddof, keepdims, **keywords)

    def std(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
        **keywords: Any,
    ) -> Value:
        """Gives the standard deviation."""
        return averages.std(self, axis, dtype, out, ddof, keepdims, **keywords)

    def any(self, axis: Any = None, out: None = None, keepdims: bool = False, **keywords: Any) -> Value:
        """Tells whether some element is not 0."""
        return reductions.any(self, axis, out, keepdims, **keywords)

    def all(self, axis: Any = None, out: None = None, keepdims: bool = False, **keywords: Any) -> Value:
        """Tells whether no element is 0."""
        return reductions.all(self, axis, out, keepdims, **keywords)

    def argmax(self, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Value:
        """Gives the index of the first NaN, else of the first maximum."""
        return reductions.argmax(self, axis, out, keepdims=keepdims)

    def argmin(self, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Value:
        """Gives the index of the first NaN, else of the first minimum."""
        return reductions.argmin(self, axis, out, keepdims=keepdims)

    def cumsum(self, axis: int | None = None, dtype: Any = None, out: None = None) -> Value:
        """Gives running sums."""
        return reductions.cumsum(self, axis, dtype, out)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None) -> Value:
        """Sums a diagonal."""
        return reductions.trace(self, offset, axis1, axis2, dtype, out)

    # -- elementwise by method
    def clip(self, min: Any = None, max: Any = None, out: None = None) -> Value:
        """Limits every element to [min, max]."""
        return elementwise.clip(self, min, max, out)

    def round(self, decimals: int = 0, out: None = None) -> Value:
        """Rounds half to even."""
        return elementwise.round_to(self, decimals, out)

    def conj(self) -> Value:
        """Gives another handle: topos has no complex numbers."""
        return self.copy()

    conjugate = conj

    def dot(self, other: Any) -> Value:
        """Multiplies as np.dot does."""
        return contraction.dot(self, other)

    # -- reading
    def __repr__(self) -> str:
        return f"<{self.type} %{self.index} = {self.recorder.ops[self.index].name}>"

    def __str__(self) -> str:
        reading.observe_print(self)
        return str(self.type)

    def __format__(self, spec: str) -> str:
        reading.observe_print(self)
        return reading.formatted(str(self.type), spec)

    def item(self, *position: int) -> reading.Reading:
        """Gives something that can only be formatted, and records that this value is read here."""
        return reading.item(self, position)

    # -- what cannot be recorded
    def __bool__(self) -> NoReturn:
        raise reading.refuse_truth(self)

    def __float__(self) -> NoReturn:
        raise reading.refuse_number(self, "float()")

    def __int__(self) -> NoReturn:
        raise reading.refuse_number(self, "int()")

    def __complex__(self) -> NoReturn:
        raise reading.refuse_number(self, "complex()")

    def __index__(self) -> NoReturn:
        raise reading.refuse_index(self)

    def __trunc__(self) -> NoReturn:
        raise reading.refuse_number(self, "math.trunc()")

    def __floor__(self) -> NoReturn:
        raise reading.refuse_number(self, "math.floor()")

    def __ceil__(self) -> NoReturn:
        raise reading.refuse_number(self, "math.ceil()")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise reading.refuse_array(self)

    def __setitem__(self, key: Any, item: Any) -> NoReturn:
        raise reading.refuse_assignment(self)

    def __delitem__(self, key: Any) -> NoReturn:
        raise reading.refuse_assignment(self)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise reading.refuse_pickle(self)

    def __getattr__(self, name: str) -> NoReturn:
        raise reading.missing_attribute(self, name)


def _one_or_many(arguments: tuple[Any, ...]) -> Any:
    """Takes `x.reshape(2, 3)` and `x.reshape((2, 3))` alike."""
    return arguments[0] if len(arguments) == 1 else arguments


# The formulas need the class, and its methods need the formulas: the class comes first.
from topos_core.recording import (  # noqa: E402
    averages,
    contraction,
    elementwise,
    formulas,
    in_place,
    lookup,
    movement,
    numpy_protocol,
    reading,
    reductions,
    repetition,
    views,
)
