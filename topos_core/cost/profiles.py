"""The shipped machine profiles. Figures are data: each profile says where its own come from."""

from __future__ import annotations

import importlib
from dataclasses import replace
from functools import cache
from typing import Final

from topos_core.cost.machine import Machine, RecordedRates
from topos_core.errors import ConfigurationError

# NumPy 2.4 on one core of a 2-core Zen 5 with AVX-512, fp32; `benchmarks/numpy_rates.py` prints this table. Where one figure
# stands for a range (rows of a reduction took 3 to 29 ns), the smaller one is kept: a region that is taken must not lose.
_NUMPY: Final = RecordedRates(
    call_seconds=1.5e-6,
    view_seconds=0.85e-6,
    extra_seconds={
        "unfold": 2.3e-6, "strided": 2.3e-6, "broadcast": 1.6e-6, "matmul": 0.7e-6, "sum": 1.5e-6, "max": 2.3e-6,
        "min": 2.3e-6, "maximum": 3.0e-6, "minimum": 3.0e-6, "pad": 2.0e-6,
    },
    contraction_efficiency=0.9,
    contraction_half_extent=12,
    plain_flops_per_second=1.0e9,
    element_seconds={
        "exp": 0.32e-9, "expm1": 0.30e-9, "log": 0.24e-9, "log1p": 0.30e-9, "tanh": 0.17e-9, "erf": 11.0e-9,
        "sin": 0.45e-9, "cos": 0.45e-9, "sqrt": 0.27e-9, "rsqrt": 0.40e-9, "pow": 0.45e-9, "remainder": 2.0e-9,
        "select": 0.60e-9, "maximum": 0.60e-9, "minimum": 0.60e-9, "max": 0.15e-9, "min": 0.15e-9, "sum": 0.13e-9,
        "prod": 0.13e-9, "argmax": 0.06e-9, "cumsum": 2.9e-9, "logsumexp": 1.2e-9, "pad": 0.3e-9, "gather": 0.7e-9, "scatter_add": 6.1e-9,
    },
    dtype_factors={"f64": 2.5, "i64": 2.0, "u64": 2.0},
    half_element_seconds=3.6e-9,
    row_seconds=3.0e-9,
    strided_element_seconds=2.0e-9,
    memory_bytes_per_second=28.0e9,
)  # fmt: skip

_REFERENCE: Final = Machine(
    name="reference",
    title="reference (one core of a 2-core Zen 5 with AVX-512)",
    source="fixed figures of one core of a 2-core Zen 5 with AVX-512, NumPy 2.4 with OpenBLAS; the same on every host",
    provenance="modelled",
    planning_only=False,
    flops_per_second={"f32": 263e9, "f64": 131e9, "f16": 100e9, "bf16": 100e9},
    transcendental_seconds={"f32": 0.13e-9, "f64": 0.60e-9, "f16": 0.26e-9, "bf16": 0.26e-9},
    memory_bytes_per_second=40e9,
    cache_bytes_per_second=118e9,
    cache_bytes=32 << 20,
    call_seconds=4.0e-6,
    vector_registers=32,
    lanes=16,
    recorded=_NUMPY,
    masked=True,
)

# NVIDIA A100 40 GB, from its data sheet and whitepaper (2020): 19.5 TF f32, 312 TF f16/bf16 tensor cores, 9.7 TF f64,
# 1555 GB/s, 40 MB L2, 108 SMs of 2048 threads. Launch overhead and cache rate are planning figures, not measurements.
_A100: Final = Machine(
    name="a100",
    title="NVIDIA A100 40 GB",
    source="data sheet figures, for planning only; nothing was measured",
    provenance="modelled",
    planning_only=True,
    flops_per_second={"f32": 19.5e12, "f64": 9.7e12, "f16": 312e12, "bf16": 312e12},
    transcendental_seconds={"f32": 0.2e-12, "f64": 2.0e-12, "f16": 0.2e-12, "bf16": 0.2e-12},
    memory_bytes_per_second=1555e9,
    cache_bytes_per_second=4000e9,
    cache_bytes=40 << 20,
    call_seconds=4.0e-6,
    vector_registers=255,
    lanes=108 * 2048,
    recorded=RecordedRates(
        call_seconds=4.0e-6,
        view_seconds=0.0,
        extra_seconds={},
        contraction_efficiency=0.8,
        contraction_half_extent=64,
        plain_flops_per_second=9.7e12,
        element_seconds={},
        dtype_factors={},
        half_element_seconds=0.0,
        row_seconds=0.0,
        strided_element_seconds=0.02e-12 * 32,
        memory_bytes_per_second=1555e9,
    ),
    masked=False,  # not known: memory is told with the copies that masks spare
)

_SHIPPED: Final = (_REFERENCE, _A100)


def machine_names() -> tuple[str, ...]:
    """Lists what `--machine` takes."""
    return ("host", *(machine.name for machine in _SHIPPED))


def machine(name: str, *, calibrated: Machine | None = None) -> Machine:
    """Gives a profile by name; `host` is `calibrated` where a calibration exists, else derived and labelled so.

    Raises:
        ConfigurationError: TP504, no such profile.
    """
    if name == "host":
        return calibrated if calibrated is not None else derived_host()
    for profile in _SHIPPED:
        if profile.name == name:
            return profile
    raise ConfigurationError(f"no machine profile {name!r}; use one of {' '.join(machine_names())}", code="TP504")


@cache
def derived_host() -> Machine:
    """Derives a profile of this host from its vector width alone: the reference's figures, peak scaled. Not measured."""
    width = _vector_lanes()
    scale = width / _REFERENCE.lanes
    return replace(
        _REFERENCE,
        name="host",
        title=f"not calibrated: the figures of reference for {width * 32}-bit vectors",
        source="derived from the reference profile and this host's vector width; not measured",
        flops_per_second={dtype: rate * scale for dtype, rate in _REFERENCE.flops_per_second.items()},
        transcendental_seconds={dtype: t / scale for dtype, t in _REFERENCE.transcendental_seconds.items()},
        vector_registers=32 if width == 16 else 16,
        lanes=width,
        masked=None,
    )


def _vector_lanes() -> int:
    """Counts f32 lanes of the widest vectors that NumPy dispatches to; 4 where it does not say."""
    try:
        features = importlib.import_module("numpy._core._multiarray_umath").__cpu_features__
    except (ImportError, AttributeError):  # a NumPy that keeps it elsewhere: stay with the least
        return 4
    if features.get("AVX512F"):
        return 16
    return 8 if features.get("AVX2") else 4
