"""A layer norm and the linear layer that reads it.

Recognises
    A `layer_norm` over the features that a `linear` layer sums over, with the layer's bias and, where one follows, its activation
    (`linear_bias_activation`); rows flattened between them or not. The normalised value is a named result: the other projections
    of a block may read it too.

Why it pays
    Rows are normalised while they are in the cache that the products read them from, in one go.

Declines when
    Nothing of its own: it stands on its parts and declines with them.

Differs from the recorded ops
    Where scale is infinite and the recorded ops fold it (`x * k + (shift - mean * k)`): the kernel centres first and gives an
    infinity for a recorded NaN.

Not recognised
    An rms norm; a norm over other axes than those that are summed over (a mixer's tokens); movement between the two but
    flattening.

Source
    Xiong et al., On Layer Normalization in the Transformer Architecture (arXiv 2002.04745), for norms in front of layers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching.answers import ROOTS, places
from topos_core.matching.facts import NormLinearFacts
from topos_core.matching.joining import joined, match_at
from topos_core.matching.layout import order_of
from topos_core.matching.match import Match
from topos_core.matching.pattern import Example, Pattern
from topos_core.patterns import layer_norm, linear, linear_bias_activation
from topos_core.tape.tape import Tape

if TYPE_CHECKING:
    from topos_core.matching.context import Context

IDENTIFIER = "layer_norm_linear"


def find(context: Context, root: int, /) -> Match | None:
    """Gives the linear layer that ends at `root` together with the norm that it reads."""
    layer = match_at(context, linear_bias_activation.IDENTIFIER, root) or match_at(context, "linear", root)
    if layer is None:
        return None
    flattened = []
    value = layer.bindings["x"]
    while context.op(value).name == "reshape":
        flattened.append(value)
        (value,) = context.op(value).operands
    norm = match_at(context, "layer_norm", value)
    if norm is None:
        return None
    if order_of(norm.facts.result, (("k",), ("n",))) != order_of(layer.facts.layouts["x"], (("b",), ("r",))):
        return None
    bindings = {**norm.bindings, "weight": layer.bindings["w"]}
    bindings |= {"bias": layer.bindings["bias"]} if "bias" in layer.bindings else {}
    facts = NormLinearFacts(norm.facts, layer.facts)
    named = {**norm.named, "norm": (value,)}
    return joined(context, IDENTIFIER, root, [norm, layer], bindings, facts, flattened, named)


def evaluate(facts: NormLinearFacts, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Computes the match's own formula: `root`, and `norm` as it was recorded."""
    inner = {name: arrays[name] for name in ("x", "scale", "shift") if name in arrays}
    normalised = layer_norm.evaluate(facts.norm, inner)["root"]
    given = {"x": normalised, "w": arrays["weight"]}
    given |= {"bias": arrays["bias"]} if "bias" in arrays else {}
    of = linear_bias_activation if "activation" in facts.linear.options else linear
    return {"root": of.evaluate(facts.linear, given)["root"], "norm": normalised}


def work(tape: Tape, match: Match) -> Work:
    """Counts the norm, the layer and its activation; the normalised value is written too."""
    bindings = {name: match.bindings[name] for name in ("x", "scale", "shift") if name in match.bindings}
    (normalised, *_) = match.named["norm"]
    norm = Match("layer_norm", normalised, bindings, frozenset(), frozenset(), {}, match.facts.norm)
    given = {"x": normalised, "w": match.bindings["weight"]}
    given |= {"bias": match.bindings["bias"]} if "bias" in match.bindings else {}
    layer = Match("linear", match.root, given, frozenset(), frozenset(), {}, match.facts.linear)
    of = linear_bias_activation if "activation" in match.facts.linear.options else linear
    behind: Work = of.work(tape, layer)
    return layer_norm.work(tape, norm) + behind


def _places(context: Context) -> Collection[int]:
    """Lists where a layer or its activation ends, on tapes that have a layer norm."""
    if not places("layer_norm")(context):
        return ()
    activated = [
        v for v in linear_bias_activation.ends(context) if match_at(context, linear_bias_activation.IDENTIFIER, v)
    ]
    return {*places("linear")(context), *activated}


def _centred(x: Any, scale: Any, shift: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * scale + shift


def _projected(x: Any, scale: Any, shift: Any, w: Any, b: Any) -> Any:
    return _centred(x, scale, shift) @ w + b


def _first_of_a_block(x: Any, scale: Any, shift: Any, w: Any) -> Any:
    y = _centred(x, scale, shift)
    return np.maximum(y @ w, 0), y


def _mixer(x: Any, scale: Any, shift: Any, w: Any) -> Any:
    return _centred(x, scale, shift).swapaxes(1, 2) @ w


def _residual(x: Any, scale: Any, shift: Any, w: Any) -> Any:
    return (_centred(x, scale, shift) + x) @ w


_ROWS = {"x": "f32[4,5,6]", "scale": "f32[6]", "shift": "f32[6]"}

PATTERN = Pattern(
    identifier=IDENTIFIER,
    documentation=__doc__ or "",
    roots=ROOTS | linear_bias_activation.PATTERN.roots,
    find=find,
    where=_places,
    work=work,
    evaluate=evaluate,
    named=("norm",),
    examples=(
        Example("a projection with a bias", _projected, {**_ROWS, "w": "f32[6,7]", "b": "f32[7]"}),
        Example("with relu, the norm read again", _first_of_a_block, {**_ROWS, "w": "f32[6,7]"}),
    ),
    counterexamples=(
        Example("the layer sums over another axis", _mixer, {**_ROWS, "w": "f32[5,7]"}),
        Example("a residual between them", _residual, {**_ROWS, "w": "f32[6,7]"}),
    ),
)
