from __future__ import annotations

import pytest

from topos_core.cost.profiles import machine
from topos_core.cost.roofline import kernel_seconds
from topos_core.cost.work import Work

REFERENCE = machine("reference")


@pytest.mark.parametrize(("extra", "cached"), [(-1, True), (0, True), (1, False)])
def test_a_working_set_counts_as_cached_up_to_the_cache(extra: int, cached: bool) -> None:
    moved = REFERENCE.cache_bytes + extra
    rate = REFERENCE.cache_bytes_per_second if cached else REFERENCE.memory_bytes_per_second
    predicted = kernel_seconds(Work(bytes_read=moved), "f32", REFERENCE)
    assert predicted.memory_seconds == moved / rate
    assert predicted.bound == "memory"


def test_time_is_the_larger_of_compute_and_traffic_plus_the_call() -> None:
    flops = 263_000_000
    work = Work(flops=flops, transcendentals=1_000_000, bytes_read=1000, bytes_written=1000)
    predicted = kernel_seconds(work, "f32", REFERENCE)
    assert predicted.compute_seconds == pytest.approx(1e-3 + 0.13e-3)
    assert predicted.seconds == predicted.compute_seconds + REFERENCE.call_seconds
    assert predicted.bound == "compute"


def test_efficiency_divides_the_bound_and_not_the_call() -> None:
    work = Work(flops=10_000_000)
    full, half = (kernel_seconds(work, "f32", REFERENCE, efficiency) for efficiency in (1.0, 0.5))
    assert half.compute_seconds == 2 * full.compute_seconds
    assert half.call_seconds == full.call_seconds


def test_nothing_to_do_costs_the_call() -> None:
    predicted = kernel_seconds(Work(), "f32", REFERENCE)
    assert predicted.seconds == REFERENCE.call_seconds
    assert predicted.bound == "call overhead"


def test_f64_has_its_own_peak() -> None:
    work = Work(flops=10_000_000)
    assert (
        kernel_seconds(work, "f64", REFERENCE).compute_seconds
        > 1.9 * kernel_seconds(work, "f32", REFERENCE).compute_seconds
    )
