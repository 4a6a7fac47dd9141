"""Which ways of doing things a processor gets: those that were measured on it; others are taken as what was measured elsewhere."""

import pytest

from topos_core.kernels.host import describe

WIDE = frozenset({"avx512f", "avx512vl", "avx512dq", "avx512bw", "avx2", "fma"})
GATES = ("reads_far_rows", "fetches_streams", "takes_left_whole", "waits_for_lines", "waits_for_rows", "shares_panels")
MEASURED = {
    "znver5": GATES,
    "znver4": ("reads_far_rows", "fetches_streams"),
    "rocketlake": (),
    "emeraldrapids": (),
    "znver3": (),
    "znver6": (),
    "bdver4": (),
    "generic": (),
}


@pytest.mark.parametrize("cpu", MEASURED)
def test_a_processor_gets_what_was_measured_on_it(cpu):
    target = describe("x86_64-linux", cpu, "", WIDE)
    assert tuple(gate for gate in GATES if getattr(target, gate)) == MEASURED[cpu]
