import numpy as np
import pytest

from topos_core.kernels.convolution.winograd import FORMS
from topos_core.kernels.envelope_table import RELATIVE
from topos_core.kernels.envelopes import envelope
from topos_core.kernels.home.manifest import patterns
from topos_core.kernels.probes import measure, probes
from topos_core.kernels.products import projections
from topos_core.matching.facts import CoreFacts


def test_every_kernel_was_measured_in_f32_and_f64():
    assert set(RELATIVE) == set(patterns()) | {form.name for form in FORMS}
    for name in patterns():
        assert RELATIVE[name].keys() >= {"f32", "f64"}


def test_a_dtype_that_was_not_measured_has_no_envelope():
    assert envelope("group_norm", "f16") is None
    assert envelope("convolution", "f32").relative == RELATIVE["convolution"]["f32"]


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16"])
@pytest.mark.parametrize("pattern", sorted(patterns()))
def test_the_shipped_errors_hold_on_the_examples(pattern, dtype):
    if dtype not in RELATIVE[pattern]:
        return
    found = [(probe.kind, measure(probe)) for probe in probes(pattern, dtype)]
    assert found
    for kind, measured in found:
        assert measured.relative <= RELATIVE[pattern][dtype], kind
        assert measured.specials, kind


def largest_error(pattern):
    return max(measure(probe).relative for probe in probes(pattern, "f32") if probe.kind == "normal")


def test_the_probes_tell_a_triangle_that_lies_otherwise(monkeypatch):
    def by_its_own_axes(facts, name, table, kind):
        if table is None or table.ndim < 2 or table.size != table.shape[-1] * table.shape[-2]:
            return False
        return bool((table.reshape(table.shape[-2:]) == np.tri(*table.shape[-2:], dtype=bool)).all())

    monkeypatch.setattr(CoreFacts, "is_causal", by_its_own_axes)
    assert largest_error("attention") > 0.1


@pytest.mark.parametrize("pattern", ["gated_mlp", "multi_head_attention"])
def test_the_probes_tell_a_weight_that_is_used_in_two_ways(pattern, monkeypatch):
    def by_what_is_bound(name, source, bindings, facts):
        return source, bindings[f"{name}_weight"], bindings.get(f"{name}_bias")

    monkeypatch.setattr(projections, "layer_of", by_what_is_bound)
    assert largest_error(pattern) > 0.1
