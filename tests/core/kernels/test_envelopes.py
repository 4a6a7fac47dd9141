import pytest

from topos_core.kernels.envelope_table import RELATIVE
from topos_core.kernels.envelopes import envelope
from topos_core.kernels.home.manifest import patterns
from topos_core.kernels.probes import measure, probes
from topos_core.kernels.variants import VARIANTS


def test_every_kernel_was_measured_in_f32_and_f64():
    assert set(RELATIVE) == set(patterns()) | set(VARIANTS)
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
