"""`gated_mlp`: products in register tiles, and their gated product where the gate lies.

One projection that holds both sides runs as one product; the projection back reads the gated product from the cache.

Declines: TP205 where bits must equal the recorded ones; TP206 for dtypes that are no floats, and where gate, up and their
product order their elements differently.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from topos_core.kernels.cores.offering import Cost, blended, offer_core
from topos_core.kernels.cores.shape import memory_order
from topos_core.kernels.kernel import Decline, Offer, Stages, Terms
from topos_core.kernels.prepared import Prepared
from topos_core.kernels.products.gated import make_runner
from topos_core.kernels.products.offering import is_known, layer_cost
from topos_core.kernels.products.projections import make_layer, make_projections, stages_of
from topos_core.kernels.products.runner import stage_of
from topos_core.kernels.scratch import Stage, computed
from topos_core.matching.facts import CoreFacts, GatedMlpFacts, layer_of
from topos_core.matching.formula import WITHOUT_FUNCTIONS
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape
from topos_core.tape.type import numpy_dtype

SOURCES = {"up": "x", "gate": "x"}  # the gate last: the product takes its place


def offer(tape: Tape, match: Match, terms: Terms) -> Offer | Decline:
    """Offers the kernels of its parts as one."""
    facts: GatedMlpFacts = match.facts
    if not _in_order(facts.product):
        return Decline(
            "TP206", "no-kernel", "home's kernel for gated_mlp reads gate and up in the order of their product;"
            " these are moved between the projections and the product",
        )  # fmt: skip
    dtype = tape.ops[match.root].type.dtype
    layers = {layer_of(name, source, match.bindings, getattr(facts, name)): name for name, source in SOURCES.items()}
    names = [*layers.values(), *(["down"] if facts.down is not None else [])]
    costs = [
        layer_cost(getattr(facts, name), dtype, is_known(tape, match.bindings[f"{name}_weight"])) for name in names
    ]
    size = facts.product.extents["k"]
    total = blended([*costs, Cost(4 * size, 0.5)])
    inner = sum(getattr(facts, name).extents["b"] * getattr(facts, name).extents["n"] for name in layers.values())
    root, running = tape.ops[match.root].type, computed(dtype)

    def stages() -> tuple[Stage, ...]:
        found = stages_of({"gate": facts.gate, "up": facts.up}, layers, running)
        if facts.down is not None:
            return (*found, stage_of(facts.down, root, None, "down_weight"))
        return (*found, Stage(bringing=root.bytes)) if running != dtype else found

    held = inner + (
        size if "gate" in facts.parts or len(layers) == 1 else 0
    )  # else the product lies where the gate lay
    return offer_core(
        tape, match, terms, kernel=f"{len(names)} products in register tiles, the gate between them", flops=total.flops,
        transcendentals=0 if facts.activation in WITHOUT_FUNCTIONS else 2 * size, efficiency=total.efficiency,
        calls=len(names) + 1.0, between=inner * numpy_dtype(running).itemsize,
        held=held * numpy_dtype(running).itemsize, stages=Stages(stages),
    )  # fmt: skip


def prepare(tape: Tape, match: Match, constants: Mapping[int, np.ndarray]) -> Prepared:
    """Packs what is known."""
    facts: GatedMlpFacts = match.facts
    dtype = "f64" if tape.ops[match.root].type.dtype == "f64" else "f32"
    of = {"gate": facts.gate, "up": facts.up}
    projections = make_projections(of, facts.parts, SOURCES, dtype, match.bindings, constants)
    down = None if facts.down is None else make_layer("down", facts.down, dtype, "", match.bindings, constants)
    shape = facts.product.result.shape if facts.down is None else facts.down.layouts["x"].shape
    return make_runner(projections, facts.product.extents["k"], dtype, facts.activation, down, shape)


def _in_order(product: CoreFacts) -> bool:
    """Tells whether gate, up and their product number their elements alike."""
    orders = {memory_order(layout) for layout in (*product.layouts.values(), product.result)}
    return None not in orders and len(orders) == 1
