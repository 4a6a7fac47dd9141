"""Writes StableHLO lines: one method a shape of op, names made from the value at hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from topos_core.emission.syntax import dense, ints, location, signature, tensor
from topos_core.tape.span import UNKNOWN, Span
from topos_core.tape.type import FLOATS, SIGNED, TensorType, numpy_dtype


class Ssa(NamedTuple):
    """A name in the module and its type."""

    name: str
    type: TensorType

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return self.type.shape

    @property
    def dtype(self) -> str:
        """The element dtype."""
        return self.type.dtype


REDUCERS: Final = {"add": "total", "multiply": "product", "maximum": "larger", "minimum": "smaller"}
"""Reducing ops and what a body calls its result."""


class Builder:
    """The lines of one function.

    A result's name is the value's, `%v9`, with a word where it is a step on the way: `%v9_kernel`. The empty word names
    the value itself.
    """

    def __init__(self, *, locations: bool, paths: Callable[[str], str] = str) -> None:
        self.lines: list[str] = []
        self.span = UNKNOWN
        self._locations = locations
        self._paths = paths
        self._prefix = ""
        self._used: set[str] = set()

    def at(self, value: int, span: Span) -> None:
        """Starts the lines of one value, which come from one place."""
        self._prefix, self.span = f"%v{value}", span

    def fresh(self, word: str) -> str:
        """Gives a name that was not used before."""
        stem = f"{self._prefix}_{word}" if word else self._prefix
        name, count = stem, 2
        while name in self._used:
            name, count = f"{stem}{'' if word else '_'}{count}", count + 1
        self._used.add(name)
        return name

    def line(self, text: str, *, place: bool = True) -> None:
        """Appends a line inside the function; `place` ends it with the user's span."""
        self.lines.append(f"    {text}{f' {location(self.span, self._paths)}' if place and self._locations else ''}")

    def define(self, text: str, result: TensorType, types: str, word: str = "") -> Ssa:
        """Appends `%name = text : types`."""
        name = self.fresh(word)
        self.line(f"{name} = {text} : {types}")
        return Ssa(name, result)

    def call(self, op: str, operands: Sequence[Ssa], result: TensorType, attributes: str = "", word: str = "") -> Ssa:
        """Appends `stablehlo.op %a, %b, attributes : (types) -> type`."""
        arguments = ", ".join(operand.name for operand in operands) + (f", {attributes}" if attributes else "")
        return self.define(
            f"stablehlo.{op} {arguments}", result, signature([operand.type for operand in operands], result), word
        )

    def same(self, op: str, *operands: Ssa, word: str = "", attributes: str = "") -> Ssa:
        """Appends an op whose operands and result share one type."""
        arguments = ", ".join(operand.name for operand in operands) + (f", {attributes}" if attributes else "")
        return self.define(f"stablehlo.{op} {arguments}", operands[0].type, tensor(operands[0].type), word)

    def constant(self, value: Any, kind: TensorType, word: str = "") -> Ssa:
        """Appends a table, or a scalar that fills the type."""
        text = dense(value, kind)
        name = self.fresh(word)
        self.line(f"{name} = stablehlo.constant {text}")
        return Ssa(name, kind)

    def iota(self, kind: TensorType, axis: int, word: str = "") -> Ssa:
        """Counts along an axis."""
        return self.define(f"stablehlo.iota dim = {axis}", kind, tensor(kind), word)

    def convert(self, x: Ssa, dtype: str, word: str = "") -> Ssa:
        """Converts elements; nothing where the dtype is the same."""
        return x if x.dtype == dtype else self.call("convert", [x], TensorType(dtype, x.shape), word=word)

    def reshape(self, x: Ssa, shape: tuple[int, ...], word: str = "") -> Ssa:
        """Reshapes; nothing where the shape is the same."""
        return x if x.shape == shape else self.call("reshape", [x], TensorType(x.dtype, shape), word=word)

    def transpose(self, x: Ssa, order: Sequence[int], word: str = "") -> Ssa:
        """Permutes axes; nothing where they keep their places."""
        if list(order) == list(range(len(order))):
            return x
        kind = TensorType(x.dtype, tuple(x.shape[axis] for axis in order))
        return self.call("transpose", [x], kind, f"dims = [{ints(order)}]", word)

    def broadcast(self, x: Ssa, shape: tuple[int, ...], axes: Sequence[int], word: str = "") -> Ssa:
        """Broadcasts; operand axis k becomes result axis `axes[k]`. Nothing where the shape is the same."""
        if x.shape == shape:
            return x
        return self.call("broadcast_in_dim", [x], TensorType(x.dtype, shape), f"dims = [{ints(axes)}]", word)

    def reverse(self, x: Ssa, axes: Sequence[int], word: str = "") -> Ssa:
        """Reverses axes; nothing where there are none."""
        return self.same("reverse", x, attributes=f"dims = [{ints(axes)}]", word=word) if axes else x

    def pad(
        self, x: Ssa, fill: Any, low: Sequence[int], high: Sequence[int], interior: Sequence[int], word: str = ""
    ) -> Ssa:
        """Pads, crops where low or high is negative, and spreads elements."""
        shape = tuple(
            extent + before + after + max(extent - 1, 0) * between
            for extent, before, after, between in zip(x.shape, low, high, interior, strict=True)
        )
        filling = self.constant(fill, TensorType(x.dtype, ()), f"{word}_fill" if word else "fill")
        attributes = f"low = [{ints(low)}], high = [{ints(high)}], interior = [{ints(interior)}]"
        return self.call("pad", [x, filling], TensorType(x.dtype, shape), attributes, word)

    def compare(self, kind: str, a: Ssa, b: Ssa, word: str = "") -> Ssa:
        """Compares elements: LT LE GT GE EQ NE."""
        family = "FLOAT" if a.dtype in FLOATS else "SIGNED" if a.dtype in SIGNED else "UNSIGNED"
        result = TensorType("bool", a.shape)
        text = f"stablehlo.compare {kind}, {a.name}, {b.name}, {family}"
        return self.define(text, result, signature([a.type, b.type], result), word)

    def select(self, condition: Ssa, a: Ssa, b: Ssa, word: str = "") -> Ssa:
        """Chooses a where the condition holds, else b."""
        text = f"stablehlo.select {condition.name}, {a.name}, {b.name}"
        return self.define(text, a.type, f"{tensor(condition.type)}, {tensor(a.type)}", word)

    def reduce(self, x: Ssa, reducer: str, axes: Sequence[int], word: str = "") -> Ssa:
        """Reduces axes with one of `REDUCERS`, from its identity."""
        kept = tuple(extent for axis, extent in enumerate(x.shape) if axis not in axes)
        result, scalar = TensorType(x.dtype, kept), TensorType(x.dtype, ())
        seed = self.constant(identity(reducer, x.dtype), scalar, f"{word}_seed" if word else "seed")
        text = f"stablehlo.reduce({x.name} init: {seed.name}) applies stablehlo.{reducer}"
        return self.define(
            f"{text} across dimensions = [{ints(axes)}]", result, signature([x.type, scalar], result), word
        )

    def reduce_window(
        self,
        x: Ssa,
        reducer: str,
        result: tuple[int, ...],
        sizes: Sequence[int],
        strides: Sequence[int],
        *,
        dilations: Sequence[int] = (),
        base_dilations: Sequence[int] = (),
        padding: Sequence[tuple[int, int]] = (),
        word: str = "",
    ) -> Ssa:
        """Reduces sliding windows with one of `REDUCERS`, from its identity; attributes at their default are left out."""
        scalar, kind = TensorType(x.dtype, ()), TensorType(x.dtype, result)
        seed = self.constant(identity(reducer, x.dtype), scalar, "seed")
        name = self.fresh(word)
        left, right, both = self.fresh("left"), self.fresh("right"), self.fresh(REDUCERS[reducer])
        element = tensor(scalar)
        self.line(f'{name} = "stablehlo.reduce_window"({x.name}, {seed.name}) ({{', place=False)
        self.line(f"^bb0({left}: {element}, {right}: {element}):", place=False)
        self.line(f"  {both} = stablehlo.{reducer} {left}, {right} : {element}")
        self.line(f"  stablehlo.return {both} : {element}")
        attributes = f"window_dimensions = array<i64: {ints(sizes)}>, window_strides = array<i64: {ints(strides)}>"
        if any(dilation != 1 for dilation in base_dilations):
            attributes += f", base_dilations = array<i64: {ints(base_dilations)}>"
        if any(dilation != 1 for dilation in dilations):
            attributes += f", window_dilations = array<i64: {ints(dilations)}>"
        if any(pair != (0, 0) for pair in padding):
            pairs = ", ".join(f"[{low}, {high}]" for low, high in padding)
            attributes += f", padding = dense<[{pairs}]> : tensor<{len(padding)}x2xi64>"
        self.line(f"}}) {{{attributes}}} : {signature([x.type, scalar], kind)}")
        return Ssa(name, kind)

    def gather(self, x: Ssa, indices: Ssa, axis: int, word: str = "") -> Ssa:
        """Reads rows along an axis: the indices' axes take its place."""
        count = len(indices.shape)
        result = TensorType(x.dtype, x.shape[:axis] + indices.shape + x.shape[axis + 1 :])
        if result.size == 0:  # a slice of size 1 does not fit an empty axis
            return self.constant(0, result, word)
        offsets = [k if k < axis else k + count - 1 for k in range(len(x.shape)) if k != axis]
        sizes = [1 if k == axis else extent for k, extent in enumerate(x.shape)]
        numbers = (
            f"#stablehlo.gather<offset_dims = [{ints(offsets)}], collapsed_slice_dims = [{axis}],"
            f" start_index_map = [{axis}], index_vector_dim = {count}>"
        )
        text = (
            f'"stablehlo.gather"({x.name}, {indices.name}) {{dimension_numbers = {numbers},'
            f" slice_sizes = array<i64: {ints(sizes)}>}}"
        )
        return self.define(text, result, signature([x.type, indices.type], result), word)


def identity(reducer: str, dtype: str) -> Any:
    """Gives what a reduction of nothing is: 0, 1, the lowest or the highest number of the dtype."""
    if reducer in ("add", "multiply"):
        return 0 if reducer == "add" else 1
    lowest = reducer == "maximum"
    if dtype in FLOATS:
        return -np.inf if lowest else np.inf
    if dtype == "bool":
        return not lowest
    limits = np.iinfo(numpy_dtype(dtype))
    return limits.min if lowest else limits.max
