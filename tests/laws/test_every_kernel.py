"""Every kernel of home is within its shipped error of float64: any shape, every dtype that has one, any strides and values.

Extents are drawn around where vectors and tiles end (`topos_core/kernels/drawn.py`). The programs are the patterns' own
examples with other extents, so a pattern whose kernel this law hardly reaches fails it. Each of Winograd's forms is a kernel of its
own, with programs and an error of its own. `--hypothesis-seed` draws others.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from topos_core.kernels.conditioning import condition, inside
from topos_core.kernels.drawn import TILES, drawn
from topos_core.kernels.envelope_table import RELATIVE
from topos_core.kernels.home.manifest import patterns as kernels
from topos_core.kernels.probes import measure

LEAST = 4
"""Programs that every kernel must have been run on, of different extents."""
KERNELS = sorted((*kernels(), *TILES))


@st.composite
def probes(draw, pattern):
    found = drawn(pattern, sorted(RELATIVE[pattern]), lambda options: draw(st.sampled_from(options)))
    assume(found is not None)
    return found


def check(pattern, examples, seed=None):
    seen = set()

    @settings(
        max_examples=examples, derandomize=seed is None, database=None, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(probes(pattern))
    def law(found):
        measured, relative = measure(found.probe), RELATIVE[pattern][found.dtype]
        told = (found.dtype, found.specs, found.probe.kind, found.probe.match.id, measured)
        assert inside(found.probe, measured, relative), (*told, relative, condition(found.probe))
        assert measured.specials, told
        seen.add(tuple(found.specs.items()))

    law()
    assert len(seen) >= LEAST, f"{pattern}: only {len(seen)} programs"


@pytest.mark.parametrize("pattern", KERNELS)
def test_every_kernel_is_within_its_error(pattern):
    check(pattern, 25)


@pytest.mark.conformance
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("pattern", KERNELS)
def test_every_kernel_is_within_its_error_at_length(pattern, request):
    check(pattern, 600, request.config.getoption("hypothesis_seed", None))
