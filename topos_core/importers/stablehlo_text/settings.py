"""Operations as equations: the attributes of each, under the names that JAX's primitives have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Final

from topos_core.importers.jax_jaxpr.equation import Unsupported
from topos_core.importers.stablehlo_text.types import numbers_of, type_of

Settings = Callable[[Any], dict[str, Any]]

PLAIN: Final[Mapping[str, str]] = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "remainder": "rem", "power": "pow",
    "maximum": "max", "minimum": "min", "negate": "neg", "abs": "abs", "sign": "sign", "exponential": "exp",
    "exponential_minus_one": "expm1", "log": "log", "log_plus_one": "log1p", "sqrt": "sqrt", "rsqrt": "rsqrt",
    "tanh": "tanh", "logistic": "logistic", "sine": "sin", "cosine": "cos", "tan": "tan", "floor": "floor",
    "ceil": "ceil", "is_finite": "is_finite", "and": "and", "or": "or", "xor": "xor", "not": "not", "clamp": "clamp",
    "optimization_barrier": "optimization_barrier", "erf": "erf", "erfc": "erfc", "sinh": "sinh", "cosh": "cosh",
    "square": "square", "cbrt": "cbrt", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh",
}  # fmt: skip
_COMPARISONS: Final = {"EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}
_REDUCERS: Final = {
    "stablehlo.add": "sum", "stablehlo.maximum": "max", "stablehlo.minimum": "min", "stablehlo.multiply": "prod",
    "stablehlo.and": "and", "stablehlo.or": "or",
}  # fmt: skip


def equation_of(operation: Any) -> tuple[str, dict[str, Any]]:
    """Gives the primitive and its settings.

    Raises:
        Unsupported: There is none.
    """
    dialect, _, name = operation.name.partition(".")
    if dialect not in ("stablehlo", "chlo"):
        raise Unsupported(f"topos has no formula for {operation.name}")
    if name in PLAIN:
        return PLAIN[name], {}
    if name == "compare":
        if "compare_type" in operation.attributes and "TOTALORDER" in str(operation.attributes["compare_type"]):
            raise Unsupported("it compares by the total order of floats")
        return _COMPARISONS[_word(operation.attributes["comparison_direction"])], {}
    if name in ("reduce", "reduce_window"):
        return _reduction(name, operation)
    found = _SETTINGS.get(name)
    if found is None:
        raise Unsupported(f"topos has no formula for {operation.name}")
    return found[0], found[1](operation)


def _word(attribute: Any) -> str:
    return str(attribute).rpartition(" ")[2].rstrip(">")


def _get(operation: Any, name: str, default: Any = None) -> Any:
    return numbers_of(operation.attributes[name]) if name in operation.attributes else default


def _whole(operation: Any, name: str, default: int = 0) -> int:
    return int(operation.attributes[name].value) if name in operation.attributes else default


def _shape(operation: Any) -> tuple[int, ...]:
    kind = type_of(operation.results[0].type)
    if kind is None:
        raise Unsupported(f"its result is {operation.results[0].type}")
    return kind.shape


def _padding(operation: Any) -> dict[str, Any]:
    sides = (_get(operation, f"edge_padding_{side}") for side in ("low", "high"))
    return {"padding_config": list(zip(*sides, _get(operation, "interior_padding"), strict=True))}


def _convolution(operation: Any) -> dict[str, Any]:
    from jaxlib.mlir.dialects import stablehlo

    numbers = stablehlo.ConvDimensionNumbers(operation.attributes["dimension_numbers"])
    spatial = list(numbers.input_spatial_dimensions)
    ones = (1,) * len(spatial)
    sides = _get(operation, "padding", (0,) * 2 * len(spatial))
    if any(_get(operation, "window_reversal", ())):
        raise Unsupported("it turns its window around")
    return {
        "window_strides": _get(operation, "window_strides", ones), "lhs_dilation": _get(operation, "lhs_dilation", ones),
        "rhs_dilation": _get(operation, "rhs_dilation", ones), "padding": list(zip(sides[::2], sides[1::2], strict=True)),
        "feature_group_count": _whole(operation, "feature_group_count", 1),
        "batch_group_count": _whole(operation, "batch_group_count", 1),
        "dimension_numbers": SimpleNamespace(
            lhs_spec=(numbers.input_batch_dimension, numbers.input_feature_dimension, *spatial),
            rhs_spec=(
                numbers.kernel_output_feature_dimension, numbers.kernel_input_feature_dimension,
                *numbers.kernel_spatial_dimensions,
            ),
            out_spec=(
                numbers.output_batch_dimension, numbers.output_feature_dimension, *numbers.output_spatial_dimensions,
            ),
        ),
    }  # fmt: skip


def _product(operation: Any) -> dict[str, Any]:
    from jaxlib.mlir.dialects import stablehlo

    numbers = stablehlo.DotDimensionNumbers(operation.attributes["dot_dimension_numbers"])
    contracting = (tuple(numbers.lhs_contracting_dimensions), tuple(numbers.rhs_contracting_dimensions))
    batching = (tuple(numbers.lhs_batching_dimensions), tuple(numbers.rhs_batching_dimensions))
    return {"dimension_numbers": (contracting, batching)}


def _gather(operation: Any) -> dict[str, Any]:
    from jaxlib.mlir.dialects import stablehlo

    numbers = stablehlo.GatherDimensionNumbers(operation.attributes["dimension_numbers"])
    indices = type_of(operation.operands[1].type)
    if indices is None or numbers.index_vector_dim < len(indices.shape) - 1:
        raise Unsupported("its index vectors do not lie along the last axis")
    return {
        "dimension_numbers": SimpleNamespace(
            offset_dims=tuple(numbers.offset_dims), collapsed_slice_dims=tuple(numbers.collapsed_slice_dims),
            start_index_map=tuple(numbers.start_index_map), operand_batching_dims=tuple(numbers.operand_batching_dims),
        ),
        "slice_sizes": _get(operation, "slice_sizes"), "mode": "CLIP", "fill_value": None,
        "index_vector_dim": numbers.index_vector_dim,
    }  # fmt: skip


def numbers_end(operation: Any) -> int:
    """Gives the axis of a scatter's indices along which one index lies."""
    from jaxlib.mlir.dialects import stablehlo

    numbers = stablehlo.ScatterDimensionNumbers(operation.attributes["scatter_dimension_numbers"])
    return int(numbers.index_vector_dim)


def scatter_axis(operation: Any) -> int:
    """Gives the axis along which a scatter adds whole rows.

    Raises:
        Unsupported: It combines in another way, or scatters windows, or along several axes.
    """
    from jaxlib.mlir.dialects import stablehlo

    numbers = stablehlo.ScatterDimensionNumbers(operation.attributes["scatter_dimension_numbers"])
    body = [each.operation.name for each in operation.regions[0].blocks[0].operations]
    if body != ["stablehlo.add", "stablehlo.return"]:
        raise Unsupported("it scatters by something else than a sum")
    x, indices, updates = (type_of(operand.type) for operand in operation.operands)
    axes = tuple(numbers.scattered_dims_to_operand_dims)
    if x is None or indices is None or updates is None or len(axes) != 1 or tuple(numbers.inserted_window_dims) != axes:
        raise Unsupported("it scatters windows, or along several axes")
    axis, end = axes[0], numbers.index_vector_dim
    shape = indices.shape if end == len(indices.shape) else indices.shape[:-1]
    single = end == len(indices.shape) or (end == len(indices.shape) - 1 and indices.shape[-1] == 1)
    windows = [k if k < axis else k + len(shape) - 1 for k in range(len(x.shape)) if k != axis]
    if not single or list(numbers.update_window_dims) != windows:
        raise Unsupported("its updates do not lie as rows of what it scatters into")
    if updates.shape != (*x.shape[:axis], *shape, *x.shape[axis + 1 :]):
        raise Unsupported("it scatters parts of rows")
    return int(axis)


def _reduction(name: str, operation: Any) -> tuple[str, dict[str, Any]]:
    """Reads a reducer of one op over both of its arguments; the seed is folded in by the walk."""
    block = operation.regions[0].blocks[0]
    body = [each.operation for each in block.operations]
    kind = _REDUCERS.get(body[0].name)
    if len(operation.operands) != 2 or len(body) != 2 or kind is None:
        raise Unsupported("its reducer is more than one plain op")
    if {hash(each) for each in body[0].operands} != {hash(each) for each in block.arguments}:
        raise Unsupported("its reducer reads something else than its two arguments")
    if list(body[1].operands) != list(body[0].results):
        raise Unsupported("its reducer gives something else than its op's result")
    if name == "reduce":
        return f"reduce_{kind}", {"axes": _get(operation, "dimensions")}
    rank = len(_shape(operation))
    sides = _get(operation, "padding", (0,) * 2 * rank)
    return f"reduce_window_{kind}", {
        "window_dimensions": _get(operation, "window_dimensions"),
        "window_strides": _get(operation, "window_strides", (1,) * rank),
        "window_dilation": _get(operation, "window_dilations", (1,) * rank),
        "base_dilation": _get(operation, "base_dilations", (1,) * rank),
        "padding": list(zip(sides[::2], sides[1::2], strict=True)),
    }


_SETTINGS: Final[Mapping[str, tuple[str, Settings]]] = {
    "convert": ("convert", lambda operation: {}),
    "select": ("select", lambda operation: {}),
    "broadcast_in_dim": (
        "broadcast_in_dim",
        lambda operation: {
            "shape": _shape(operation), "broadcast_dimensions": _get(operation, "broadcast_dimensions"),
        },
    ),
    "reshape": ("reshape", lambda operation: {"new_sizes": _shape(operation)}),
    "transpose": ("transpose", lambda operation: {"permutation": _get(operation, "permutation")}),
    "reverse": ("rev", lambda operation: {"dimensions": _get(operation, "dimensions")}),
    "concatenate": ("concatenate", lambda operation: {"dimension": _whole(operation, "dimension")}),
    "slice": (
        "slice",
        lambda operation: {name: _get(operation, name) for name in ("start_indices", "limit_indices", "strides")},
    ),
    "dynamic_slice": ("dynamic_slice", lambda operation: {"slice_sizes": _get(operation, "slice_sizes")}),
    "dynamic_update_slice": ("dynamic_update_slice", lambda operation: {}),
    "dynamic_reshape": ("reshape", lambda operation: {"new_sizes": _shape(operation)}),
    "dynamic_broadcast_in_dim": (
        "broadcast_in_dim",
        lambda operation: {
            "shape": _shape(operation), "broadcast_dimensions": _get(operation, "broadcast_dimensions"),
        },
    ),
    "dynamic_iota": ("iota", lambda operation: {"dimension": _whole(operation, "iota_dimension")}),
    "pad": ("pad", _padding),
    "iota": ("iota", lambda operation: {"dimension": _whole(operation, "iota_dimension")}),
    "round_nearest_even": ("round", lambda operation: {"rounding_method": 1}),
    "round_nearest_afz": ("round", lambda operation: {"rounding_method": 0}),
    "convolution": ("conv_general_dilated", _convolution),
    "dot_general": ("dot_general", _product),
    "gather": ("gather", _gather),
}  # fmt: skip
