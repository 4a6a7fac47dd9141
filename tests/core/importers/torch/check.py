"""One module, two ways: run by torch, and imported and interpreted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from topos_core.importers.imported import trace  # noqa: E402
from topos_core.importers.torch_export.dtypes import array_of, type_of  # noqa: E402
from topos_core.run.interpreter import interpret  # noqa: E402
from topos_core.tape.tape import Tape  # noqa: E402


class Calling(torch.nn.Module):
    """A function as a module; modules among the function's own attributes are not needed."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *arguments: Any) -> Any:
        return self.function(*arguments)


def imported(function: Any, *tensors: Any) -> Tape:
    """Imports a module (as it is) or a function for inputs like these."""
    module = function if isinstance(function, torch.nn.Module) else Calling(function)
    return trace(module, *[type_of(tensor) for tensor in tensors])


def check(function: Any, *tensors: Any, tolerance: float = 2e-5) -> Tape:
    """Holds the interpreted tape to torch's own results: types equal, values near, nothing opaque."""
    tape = imported(function, *tensors)
    assert opaque(tape) == []
    with torch.no_grad():
        wanted = leaves(function(*[tensor.clone() for tensor in tensors]))
    found = interpret(tape, [array_of(tensor) for tensor in tensors])
    assert len(found) == len(wanted)
    for got, tensor in zip(found, wanted, strict=True):
        expected = array_of(tensor)
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        bound = tolerance if got.dtype.itemsize > 2 else 1e-2
        np.testing.assert_allclose(got.astype(np.float64), expected.astype(np.float64), rtol=bound, atol=bound)
    return tape


def leaves(result: Any) -> list[Any]:
    """Lists the tensors of a nested result."""
    return [each for each in torch.utils._pytree.tree_leaves(result) if isinstance(each, torch.Tensor)]


def opaque(tape: Tape) -> list[tuple[str, str]]:
    """Lists a tape's foreign ops with the reason why they are."""
    return [(op.attributes["foreign"], op.attributes["note"]) for op in tape.ops if op.name == "opaque"]


def normals(*shape: int) -> Any:
    """Gives standard normals, f32."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape)))
