"""`stablehlo.batch_norm_inference`."""

from __future__ import annotations

from collections.abc import Mapping

from topos_core.emission.builder import Builder, Ssa
from topos_core.emission.raises.normalization import attributes, featured, stays, types, unfeatured, vector
from topos_core.matching.facts import NormFacts
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape


def raise_match(builder: Builder, tape: Tape, match: Match, bindings: Mapping[str, Ssa]) -> Mapping[int, Ssa]:
    """Writes the norm and its result in the root's layout."""
    facts: NormFacts = match.facts
    shape = tape.ops[match.root].type.shape
    form = featured(builder, bindings["x"], facts.image)
    word = "" if stays(form, facts.result, shape) else "normed"
    normed = normalize(builder, form.value, form.feature, facts.channels, facts.epsilon, bindings, "", word)
    return {match.root: unfeatured(builder, form._replace(value=normed), facts.result, shape)}


def normalize(
    builder: Builder,
    x: Ssa,
    feature: int,
    channels: int,
    epsilon: float,
    bindings: Mapping[str, Ssa],
    prefix: str,
    word: str,
) -> Ssa:
    """Writes the op over `x`; `prefix` stands before the binding names scale, shift, mean and variance."""
    defaults = {"scale": 1.0, "shift": 0.0, "mean": 0.0, "variance": 1.0}
    vectors = [
        vector(builder, bindings.get(prefix + name), default, channels, x.dtype, name)
        for name, default in defaults.items()
    ]
    arguments = ", ".join(operand.name for operand in (x, *vectors))
    kinds = types([x.type, *(operand.type for operand in vectors)])
    text = f'"stablehlo.batch_norm_inference"({arguments}) {attributes(epsilon, feature)}'
    return builder.define(text, x.type, f"({kinds}) -> {types([x.type])}", word)
