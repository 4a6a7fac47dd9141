"""`conv_bn_activation`: the convolution's tiles with bias, batch norm, residual and activation in their epilogue.

Bias and batch norm become one factor and one summand per channel, computed in f64, once where they are parameters. The
residual is added and relu clamps while a tile's sums are in registers; other activations run over the tile in the cache.
Where no factor can stand for the recorded steps (it is infinite, or overflows), sums are stored and the steps taken on them.

3x3 windows of known kernels run by Winograd's tiles where that pays, unless `off` names `winograd`; their error is up to
twenty times as large and stands in the offer. Where a sum is not finite, the direct kernel runs after all.

Declines: TP205 where bits must equal the recorded ones; TP206 for dtypes that are no floats.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from topos_core.kernels.convolution.activations import Ending
from topos_core.kernels.convolution.choice import by_tiles
from topos_core.kernels.convolution.factors import Factors, fold
from topos_core.kernels.convolution.offering import offer_convolution
from topos_core.kernels.convolution.runner import make_runner
from topos_core.kernels.kernel import Decline, Offer, Terms
from topos_core.kernels.margins import Margins
from topos_core.kernels.prepared import Prepared, all_known
from topos_core.matching.facts import EpilogueFacts
from topos_core.matching.formula import WITHOUT_FUNCTIONS
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape


def offer(tape: Tape, match: Match, terms: Terms) -> Offer | Decline:
    """Offers the tile kernel with its epilogue."""
    facts: EpilogueFacts = match.facts
    root = tape.ops[match.root].type
    affine = facts.bias or facts.norm is not None or bool(facts.steps)
    return offer_convolution(
        tape, match, facts.convolution, terms, result=facts.result,
        extra_flops=root.size * (2 * affine + facts.residual + (facts.activation != "none")),
        extra_bytes=root.bytes if facts.residual else 0,
        transcendentals=0 if facts.activation in WITHOUT_FUNCTIONS else root.size,
    )  # fmt: skip


def prepare(
    tape: Tape,
    match: Match,
    constants: Mapping[int, np.ndarray],
    off: frozenset[str] = frozenset(),
    margins: Margins | None = None,
) -> Prepared:
    """Packs the kernel and folds the epilogue's vectors where they are known."""
    facts: EpilogueFacts = match.facts
    convolution = replace(facts.convolution, result=facts.result)
    dtype = tape.ops[match.root].type.dtype

    def fold_vectors(bindings: Mapping[str, np.ndarray], computed: np.dtype) -> Factors:
        return fold(bindings, facts, computed)

    known = all_known(match, constants, match.bindings.keys() - {"x", "kernel", "residual"})
    ending = Ending(facts.activation, facts.residual, facts.residual_last)
    weights = constants.get(match.bindings["kernel"])
    tiled = by_tiles(tape, match, off)
    return make_runner(convolution, dtype, weights, fold_vectors, known, ending, tiled, margins)
