"""`stablehlo.batch_norm_training`: mean and variance come back by name, to every value that the program made of them."""

from __future__ import annotations

from collections.abc import Mapping

from topos_core.emission.builder import Builder, Ssa
from topos_core.emission.raises.normalization import attributes, featured, stays, types, unfeatured, vector
from topos_core.matching.facts import NormFacts
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape
from topos_core.tape.type import TensorType


def raise_match(builder: Builder, tape: Tape, match: Match, bindings: Mapping[str, Ssa]) -> Mapping[int, Ssa]:
    """Writes the norm, its result in the root's layout, and the named results in theirs."""
    facts: NormFacts = match.facts
    shape = tape.ops[match.root].type.shape
    form = featured(builder, bindings["x"], facts.image)
    dtype, column = form.value.dtype, TensorType(form.value.dtype, (facts.channels,))
    scale = vector(builder, bindings.get("scale"), 1.0, facts.channels, dtype, "scale")
    shift = vector(builder, bindings.get("shift"), 0.0, facts.channels, dtype, "shift")
    name = builder.fresh("" if stays(form, facts.result, shape) else "normed")
    mean, variance = Ssa(builder.fresh("mean"), column), Ssa(builder.fresh("variance"), column)
    builder.line(
        f'{name}, {mean.name}, {variance.name} = "stablehlo.batch_norm_training"'
        f"({form.value.name}, {scale.name}, {shift.name}) {attributes(facts.epsilon, form.feature)}"
        f" : ({types([form.value.type, column, column])}) -> ({types([form.value.type, column, column])})"
    )
    normed = form._replace(value=Ssa(name, form.value.type))
    produced = {match.root: unfeatured(builder, normed, facts.result, shape)}
    for role, vector_of in (("mean", mean), ("variance", variance)):
        for value in match.named.get(role, ()):
            builder.at(value, tape.location_of(value).span)
            produced[value] = builder.reshape(vector_of, tape.ops[value].type.shape)
    return produced
