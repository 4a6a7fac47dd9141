"""Matrix products and convolutions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from topos_core import nn
from topos_core.importers.jax_jaxpr.equation import Equation, Translate, Unsupported
from topos_core.recording import elementwise, movement
from topos_core.recording.value import Value


def _dot_general(equation: Equation) -> Value:
    (left, right), (left_batch, right_batch) = equation.params["dimension_numbers"]
    a, b = (elementwise.cast(each, equation.result.dtype) for each in equation.operands)
    free_a = [at for at in range(a.ndim) if at not in left and at not in left_batch]
    free_b = [at for at in range(b.ndim) if at not in right and at not in right_batch]
    if not left_batch and len(left) == 1 and left[0] == a.ndim - 1 and b.ndim == 2 and a.ndim >= 1:
        return a @ (b if right[0] == 0 else b.T)
    a = movement.transpose(a, (*left_batch, *free_a, *left))
    b = movement.transpose(b, (*right_batch, *right, *free_b))
    lead, count = a.shape[: len(left_batch)], len(left_batch)
    rows, columns = a.shape[count : count + len(free_a)], b.shape[count + len(right) :]
    inner = math.prod(a.shape[count + len(free_a) :])
    matrices = movement.reshape(a, (*lead, math.prod(rows), inner)) @ movement.reshape(
        b, (*lead, inner, math.prod(columns))
    )
    return movement.reshape(matrices, (*lead, *rows, *columns))


def _convolution(equation: Equation) -> Value:
    params = equation.params
    if params["batch_group_count"] != 1:
        raise Unsupported("it convolves groups of the batch")
    numbers = params["dimension_numbers"]
    x, weight = (elementwise.cast(each, equation.result.dtype) for each in equation.operands)
    image = movement.transpose(x, tuple(numbers.lhs_spec))
    kernel = movement.transpose(weight, tuple(numbers.rhs_spec))
    spread = [each - 1 for each in params["lhs_dilation"]]
    padding = [(int(low), int(high)) for low, high in params["padding"]]
    if any(spread) or min((min(side) for side in padding), default=0) < 0:
        low, high = zip(*padding, strict=True)
        image = movement.pad_with(image, (0, 0, *low), (0, 0, *high), 0, (0, 0, *spread))
        padding = [(0, 0)] * len(padding)
    y = nn.convolution(
        image, kernel, None, tuple(params["window_strides"]), padding, tuple(params["rhs_dilation"]),
        params["feature_group_count"],
    )  # fmt: skip
    return movement.transpose(y, tuple(int(each) for each in np.argsort(numbers.out_spec)))


PRIMITIVES: Final[Mapping[str, Translate]] = {"dot_general": _dot_general, "conv_general_dilated": _convolution}
