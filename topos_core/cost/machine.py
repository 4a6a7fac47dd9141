"""Machine profiles: what a predicted time is predicted with. Data only; `profiles` holds the shipped ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from topos_core.errors import ConfigurationError

Provenance = Literal["modelled", "measured"]


@dataclass(frozen=True, slots=True)
class RecordedRates:
    """How fast recorded ops run one by one (NumPy here; one kernel each on an accelerator).

    Args:
        call_seconds: Overhead of one op, Python included.
        view_seconds: Overhead of one op that answers with a view.
        extra_seconds: What some ops' calls take beside that, by op name.
        contraction_efficiency: Fraction of the peak that a large matmul reaches.
        contraction_half_extent: The smallest of m, n, k at which a matmul reaches half of that.
        plain_flops_per_second: Matmul rate of dtypes that BLAS does not have.
        element_seconds: Compute time per result element by op name, where it is not hidden by memory traffic.
        dtype_factors: What `element_seconds` is multiplied by, by dtype name; 1 where absent.
        half_element_seconds: Per element of any elementwise op in f16 or bf16.
        row_seconds: Overhead of one innermost row of a reduction that reduces its innermost axis.
        strided_element_seconds: Per element of a copy whose innermost run is one element.
        memory_bytes_per_second: Traffic of arrays that are larger than the cache; fresh pages included.
    """

    call_seconds: float
    view_seconds: float
    extra_seconds: Mapping[str, float]
    contraction_efficiency: float
    contraction_half_extent: int
    plain_flops_per_second: float
    element_seconds: Mapping[str, float]
    dtype_factors: Mapping[str, float]
    half_element_seconds: float
    row_seconds: float
    strided_element_seconds: float
    memory_bytes_per_second: float


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine, one thread unless its source says otherwise.

    Args:
        name: What `--machine` takes.
        title: For people.
        source: Where the figures come from; shown beside every predicted time.
        provenance: Whether the figures were measured on this host; predictions made with them stay `modelled`.
        planning_only: Plans can be made for it, not run on it.
        flops_per_second: Peak multiply-adds (two flops each) by dtype name.
        transcendental_seconds: One exp, tanh, log or their kin in a vector kernel, by dtype name.
        memory_bytes_per_second: Traffic of working sets above `cache_bytes`.
        cache_bytes_per_second: Traffic of working sets up to `cache_bytes`.
        cache_bytes: Largest working set that stays in the last-level cache.
        call_seconds: Overhead of one fused kernel call.
        vector_registers: Values that can live in registers at once: the cap for a fused loop's temporaries.
        lanes: Elements that the whole machine works on at once; occupancy is counted against it.
        recorded: How fast the recorded ops run.
        masked: Whether vectors load and store some of their lanes alone at the speed of all; None for this host, whose kernels know.
    """

    name: str
    title: str
    source: str
    provenance: Provenance
    planning_only: bool
    flops_per_second: Mapping[str, float]
    transcendental_seconds: Mapping[str, float]
    memory_bytes_per_second: float
    cache_bytes_per_second: float
    cache_bytes: int
    call_seconds: float
    vector_registers: int
    lanes: int
    recorded: RecordedRates
    notes: tuple[str, ...] = field(default=())
    masked: bool | None = None


def machine_from(data: Mapping[str, Any]) -> Machine:
    """Reads a profile that a calibration wrote.

    Raises:
        ConfigurationError: TP501, a field is missing or unknown.
    """
    try:
        recorded = RecordedRates(**data["recorded"])
        fields = {name: value for name, value in data.items() if name != "recorded"}
        fields["notes"] = tuple(fields.get("notes", ()))
        return Machine(**fields, recorded=recorded)
    except (KeyError, TypeError) as error:
        raise ConfigurationError(
            f"a machine profile cannot be read: {error}; have it written anew", code="TP501"
        ) from None
