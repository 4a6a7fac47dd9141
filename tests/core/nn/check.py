"""One formula, three ways: on arrays, recorded and interpreted, and as a plain reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from topos_core.recording.trace import trace
from topos_core.run.interpreter import interpret
from topos_core.tape.tape import Tape
from topos_core.tape.type import TensorType, dtype_name


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    """Gives standard normals, f32."""
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)


def check(formula: Callable[..., Any], arrays: dict[str, np.ndarray], wanted: Any, tolerance: float = 1e-5) -> Tape:
    """Compares a formula on arrays and as a recording with a reference; gives the tape."""
    specs = {name: TensorType(dtype_name(array.dtype) or "", array.shape) for name, array in arrays.items()}
    tape = trace(formula, **specs)
    direct = formula(**arrays)
    recorded = interpret(tape, list(arrays.values()))
    wanteds = wanted if isinstance(wanted, tuple) else (wanted,)
    directs = direct if isinstance(direct, tuple) else (direct,)
    assert len(recorded) == len(directs) == len(wanteds)
    for one, two, reference in zip(recorded, directs, wanteds, strict=True):
        assert one.dtype == two.dtype
        assert one.shape == two.shape == reference.shape
        np.testing.assert_allclose(one, reference, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(two, reference, rtol=tolerance, atol=tolerance)
    return tape
