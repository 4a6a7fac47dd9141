"""`convolution`: register tiles over offset lists, without an im2col.

The image is copied once into zero-padded planes, split by the residue of the stride, so that every tap of every position
reads consecutive lanes; an image without padding and stride is read in place. See `kernels/convolution/geometry.py`.

Where zeros stand between image elements (a transposed convolution), each phase of the stride is a dense convolution of its own;
see `kernels/convolution/phases.py`.

3x3 windows of known kernels run by Winograd's tiles where that pays, unless `off` names `winograd`; their error is up to
twenty times as large and stands in the offer. Where a sum is not finite, the direct kernel runs after all.

Envelope: products are added in chains of 512 per accumulator, in f32 for f16, bf16 and f32, in f64 for f64.
Declines: TP205 where bits must equal the recorded ones; TP206 for dtypes that are no floats.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from topos_core.kernels.convolution.activations import Ending
from topos_core.kernels.convolution.choice import by_tiles
from topos_core.kernels.convolution.factors import Factors, unchanged
from topos_core.kernels.convolution.offering import offer_convolution
from topos_core.kernels.convolution.runner import make_runner
from topos_core.kernels.kernel import Decline, Offer, Terms
from topos_core.kernels.margins import Margins
from topos_core.kernels.prepared import Prepared
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape


def offer(tape: Tape, match: Match, terms: Terms) -> Offer | Decline:
    """Offers the tile kernel for float convolutions."""
    return offer_convolution(tape, match, match.facts, terms, extra_bytes=0, transcendentals=0)


def prepare(
    tape: Tape,
    match: Match,
    constants: Mapping[int, np.ndarray],
    off: frozenset[str] = frozenset(),
    margins: Margins | None = None,
) -> Prepared:
    """Packs a kernel whose values are known."""
    facts = match.facts
    dtype = tape.ops[match.root].type.dtype

    def fold(bindings: Mapping[str, np.ndarray], computed: np.dtype) -> Factors:
        return unchanged(facts.out_channels, computed)

    kernel = constants.get(match.bindings["kernel"])
    tiled = by_tiles(tape, match, off)
    return make_runner(facts, dtype, kernel, fold, {}, Ending(), tiled, margins)
