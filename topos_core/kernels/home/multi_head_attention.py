"""`multi_head_attention`: the kernels of `linear` and `attention` over one piece of memory.

Each projection runs once, whoever shares it; heads are read where a projection left them and written where the output
projection reads them, so nothing is transposed and nothing quadratic is written.

Declines: TP205 where bits must equal the recorded ones; TP206 for dtypes that are no floats.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from topos_core.kernels.attention import runner as attention
from topos_core.kernels.attention.block import Runner
from topos_core.kernels.attention.offering import attention_cost, attention_stage
from topos_core.kernels.cores.offering import blended, offer_core
from topos_core.kernels.kernel import Decline, Offer, Stages, Terms
from topos_core.kernels.prepared import Prepared
from topos_core.kernels.products.offering import is_known, layer_cost
from topos_core.kernels.products.projections import make_layer, make_projections, stages_of
from topos_core.kernels.products.runner import stage_of
from topos_core.kernels.scratch import Stage, computed
from topos_core.matching.facts import MultiHeadFacts, layer_of
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape
from topos_core.tape.type import TensorType, numpy_dtype


def offer(tape: Tape, match: Match, terms: Terms) -> Offer | Decline:
    """Offers the kernels of its parts as one."""
    facts: MultiHeadFacts = match.facts
    dtype = tape.ops[match.root].type.dtype
    layers = {
        layer_of(name, source, match.bindings, getattr(facts, name)): name for name, source in _sources(match).items()
    }
    names = [*layers.values(), "output"]
    costs = [
        layer_cost(getattr(facts, name), dtype, is_known(tape, match.bindings[f"{name}_weight"])) for name in names
    ]
    cost, transcendentals = attention_cost(facts.attention)
    total = blended([*costs, cost])
    inner = sum(getattr(facts, name).extents["b"] * getattr(facts, name).extents["n"] for name in layers.values())
    inner += facts.output.extents["b"] * facts.output.extents["r"]
    root, running = tape.ops[match.root].type, computed(dtype)

    def stages() -> tuple[Stage, ...]:
        heads = TensorType(running, (facts.output.extents["b"], facts.output.extents["r"]))
        return (
            *stages_of({"query": facts.query, "key": facts.key, "value": facts.value}, layers, running),
            attention_stage(facts.attention, heads, bound=False),
            stage_of(facts.output, root, None, "output_weight"),
        )

    return offer_core(
        tape, match, terms, kernel=f"{len(names)} products in register tiles, attention with scores in the cache",
        flops=total.flops, transcendentals=transcendentals, efficiency=total.efficiency, calls=len(names) + 1.0,
        between=inner * numpy_dtype(running).itemsize, stages=Stages(stages),
    )  # fmt: skip


def prepare(tape: Tape, match: Match, constants: Mapping[int, np.ndarray]) -> Prepared:
    """Packs what is known and looks at a constant mask."""
    facts: MultiHeadFacts = match.facts
    dtype = "f64" if tape.ops[match.root].type.dtype == "f64" else "f32"
    of = {"query": facts.query, "key": facts.key, "value": facts.value}
    projections = make_projections(of, facts.parts, _sources(match), dtype, match.bindings, constants)
    triangle = constants.get(match.bindings["mask"]) if "mask" in match.bindings else None
    output = make_layer("output", facts.output, dtype, "", match.bindings, constants)
    return Runner(projections, attention.make_runner(facts.attention, dtype, triangle), output, facts.output)


def _sources(match: Match) -> dict[str, str]:
    context = "context" if "context" in match.bindings else "x"
    return {"query": "x", "key": context, "value": context}
