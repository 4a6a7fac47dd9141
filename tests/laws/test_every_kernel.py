"""Every kernel of home is within its shipped error of float64: any shape, every dtype that has one, any strides and values.

Extents are drawn around where vectors and tiles end. The programs are the patterns' own examples with other extents, so a
pattern whose kernel this law hardly reaches fails it.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from topos_core import nn
from topos_core.kernels.envelope_table import RELATIVE
from topos_core.kernels.home.manifest import patterns as kernels
from topos_core.kernels.probes import KINDS, Probe, matched, measure
from topos_core.matching.catalog import patterns

EXTENTS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 47, 48, 49, 63, 64, 65)
"""Around the lanes of 128 to 512 bits and the registers of a tile's row."""
LEAST = 4
"""Programs that every kernel must have been run on, of different extents."""
NUMBER = re.compile(r"(?<=[\[,])\d+")


def heads(x, wq, wk, wv, wo):
    q, k, v = ((x @ w).reshape(*x.shape[:2], 3, -1).swapaxes(1, 2) for w in (wq, wk, wv))
    return nn.attention(q, k, v).swapaxes(1, 2).reshape(*x.shape[:2], -1) @ wo


FURTHER = {
    "multi_head_attention": (heads, {"x": "f32[2,5,12]", **dict.fromkeys(("wq", "wk", "wv", "wo"), "f32[12,12]")}),
}
"""Programs for patterns whose examples write their extents down."""


def resized(specs, extents):
    return {name: NUMBER.sub(lambda found: str(extents[found[0]]), spec) for name, spec in specs.items()}


@st.composite
def probes(draw, pattern):
    """Draws an example, a dtype, extents for some of its extents, and the kind of values or memory."""
    programs = [(example.function, example.specs) for example in patterns()[pattern].examples]
    function, given = draw(st.sampled_from([FURTHER[pattern]] if pattern in FURTHER else programs))
    own = sorted({number for spec in given.values() for number in NUMBER.findall(spec)})
    changed = draw(st.sets(st.sampled_from(own)) if own else st.just(set()))
    extents = {number: draw(st.sampled_from(EXTENTS)) if number in changed else int(number) for number in own}
    dtype = draw(st.sampled_from(sorted(RELATIVE[pattern])))
    kind = draw(st.sampled_from(KINDS))
    specs = resized(given, extents)
    found = matched(pattern, dtype, (function, specs))
    assume(found is not None)
    return dtype, tuple(specs.items()), Probe(*found, kind)


def check(pattern, examples):
    seen = set()

    @settings(
        max_examples=examples, derandomize=True, database=None, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(probes(pattern))
    def law(drawn):
        dtype, shapes, probe = drawn
        measured = measure(probe)
        assert measured.relative <= RELATIVE[pattern][dtype], (dtype, shapes, probe.kind, measured)
        assert measured.specials, (dtype, shapes, probe.kind)
        seen.add(shapes)

    law()
    assert len(seen) >= LEAST, f"{pattern}: only {len(seen)} programs"


@pytest.mark.parametrize("pattern", sorted(kernels()))
def test_every_kernel_is_within_its_error(pattern):
    check(pattern, 25)


@pytest.mark.conformance
@pytest.mark.parametrize("pattern", sorted(kernels()))
def test_every_kernel_is_within_its_error_at_length(pattern):
    check(pattern, 600)
