"""`layer_norm_linear`: rows are normalised into the named result, then multiplied from the cache.

Declines: TP205 where bits must equal the recorded ones; TP206 for dtypes that are no floats.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from topos_core.kernels.convolution.activations import epilogue
from topos_core.kernels.cores import rows
from topos_core.kernels.cores.offering import Cost, blended, offer_core
from topos_core.kernels.kernel import Decline, Offer, Stages, Terms
from topos_core.kernels.prepared import Prepared, known_of
from topos_core.kernels.products import runner as products
from topos_core.kernels.products.offering import is_known, layer_cost
from topos_core.kernels.scratch import Stage
from topos_core.matching.facts import NormLinearFacts
from topos_core.matching.formula import WITHOUT_FUNCTIONS
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape


@dataclass(frozen=True, slots=True)
class NormLinear:
    """Runs one match: the norm's kernel, then the layer's."""

    norm: rows.Runner
    layer: products.Runner

    def run(self, bindings: Mapping[str, np.ndarray], out: Mapping[str, np.ndarray], threads: int) -> None:
        """Runs the match; see `Prepared`."""
        self.norm.run(bindings, {"result": out["norm"]}, threads)
        given = {"x": out["norm"], "w": bindings["weight"]}
        if "bias" in bindings:
            given["bias"] = bindings["bias"]
        self.layer.run(given, {"result": out["result"]}, threads)


def offer(tape: Tape, match: Match, terms: Terms) -> Offer | Decline:
    """Offers the kernels of its parts as one."""
    facts: NormLinearFacts = match.facts
    root, normalised = (tape.ops[value].type for value in (match.root, match.named["norm"][0]))
    hard = facts.linear.options.get("activation", "none") not in WITHOUT_FUNCTIONS
    layer = layer_cost(facts.linear, root.dtype, is_known(tape, match.bindings["weight"]))
    total = blended(
        [Cost(9 * normalised.size, 0.5), layer._replace(flops=layer.flops + (4 if hard else 0) * root.size)]
    )
    copied = rows.copies(facts.norm, ("n",), columns=True)

    def stages() -> tuple[Stage, ...]:
        return (
            rows.stage_of(facts.norm, normalised, ("k", "n"), copied),
            products.stage_of(facts.linear, root, "norm", "weight"),
        )

    # the norm is a named result: a buffer of the run, not scratch
    return offer_core(
        tape, match, terms, kernel=f"rows normalised in the cache, register tiles over {facts.linear.extents['r']} products",
        flops=total.flops, transcendentals=facts.norm.extents["k"] + (2 * root.size if hard else 0),
        efficiency=total.efficiency, copied=copied, between=normalised.bytes, held=0,
        calls=2.0, stages=Stages(stages),
    )  # fmt: skip


def prepare(tape: Tape, match: Match, constants: Mapping[int, np.ndarray]) -> Prepared:
    """Packs what is known of the layer."""
    facts: NormLinearFacts = match.facts
    dtype = tape.ops[match.root].type.dtype
    norm = rows.make_runner(
        facts.norm, dtype, "norm", ("layer",), columns=True, lead=2, known=known_of(match, constants)
    )
    bound = {name: constants.get(match.bindings[name]) for name in ("weight", "bias") if name in match.bindings}
    after = epilogue(facts.linear.options.get("activation", "none"))
    return NormLinear(norm, products.make_runner(facts.linear, dtype, bound["weight"], bound.get("bias"), after))
