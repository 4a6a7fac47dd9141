"""How attention's scores are masked: the forms in which a mask is a factor, has one, or chooses between scores and a fill.

A form has all of attention's holes; those that it does without are excluded where it is declared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from topos_core.matching.declared import Form, Lookalike, anchor, difference


def scaled_scores(q: Any, k: Any, mask: Any, scale: float, bias: Any = None) -> Any:
    """Gives the products with their scale, and what is added to them."""
    return plus(plus(q @ k.swapaxes(1, 2) * scale, mask), bias)


def plus(scores: Any, term: Any) -> Any:
    """Adds a term that may be missing."""
    return scores if term is None else scores + term


def less_largest(scores: Any) -> Any:
    """Subtracts the largest score of each row."""
    return scores - scores.max(-1, keepdims=True)


def weights_of(scores: Any) -> Any:
    """Gives the softmax of scores."""
    powers = np.exp(less_largest(scores))
    return anchor(powers / powers.sum(-1, keepdims=True))


def weighted(q: Any, k: Any, v: Any, mask: Any, bias: Any, keep: Any, drop: Any, scale: float, weight: float) -> Any:
    """The mask has a number in front: it is subtracted."""
    return weights_of(plus(scaled_scores(q, k, mask * weight, scale), bias)) @ v


def keeps(q: Any, k: Any, v: Any, mask: Any, bias: Any, keep: Any, drop: Any, scale: float, fill: float) -> Any:
    """The mask says which scores stay."""
    return weights_of(plus(np.where(mask, scaled_scores(q, k, None, scale), fill), bias)) @ v


def keeps_dropped(
    q: Any, k: Any, v: Any, mask: Any, bias: Any, keep: Any, drop: Any, scale: float, fill: float, rescale: float
) -> Any:
    """The mask says which scores stay, and the weights have a factor."""
    return weights_of(np.where(mask, scaled_scores(q, k, None, scale), fill)) * (drop * rescale) @ v


def hides(q: Any, k: Any, v: Any, mask: Any, bias: Any, keep: Any, drop: Any, scale: float, fill: float) -> Any:
    """The mask says which scores go."""
    return weights_of(plus(np.where(mask, fill, scaled_scores(q, k, None, scale)), bias)) @ v


def hides_dropped(
    q: Any, k: Any, v: Any, mask: Any, bias: Any, keep: Any, drop: Any, scale: float, fill: float, rescale: float
) -> Any:
    """The mask says which scores go, and the weights have a factor."""
    return weights_of(np.where(mask, fill, scaled_scores(q, k, None, scale))) * (drop * rescale) @ v


def keeps_before_scale(
    q: Any, k: Any, v: Any, mask: Any, bias: Any, keep: Any, drop: Any, scale: float, fill: float
) -> Any:
    """The mask says which scores stay, and the fill is scaled too."""
    return weights_of(np.where(mask, q @ k.swapaxes(1, 2), fill) * scale) @ v


def added_and_kept(
    q: Any, k: Any, v: Any, mask: Any, bias: Any, keep: Any, drop: Any, scale: float, fill: float
) -> Any:
    """A mask is added, and another one says which scores stay."""
    return weights_of(np.where(keep, scaled_scores(q, k, mask, scale), fill)) @ v


def kept_twice(q: Any, k: Any, v: Any, mask: Any, bias: Any, keep: Any, drop: Any, scale: float, fill: float) -> Any:
    """Two masks say which scores stay."""
    return weights_of(np.where(keep, np.where(mask, scaled_scores(q, k, None, scale), fill), fill)) @ v


def keeps_shifted_twice(
    q: Any, k: Any, v: Any, mask: Any, bias: Any, keep: Any, drop: Any, scale: float, fill: float
) -> Any:
    """The mask says which scores stay, and the largest one is subtracted once more."""
    return weights_of(less_largest(np.where(mask, scaled_scores(q, k, None, scale), fill))) @ v


def hides_shifted_twice(
    q: Any, k: Any, v: Any, mask: Any, bias: Any, keep: Any, drop: Any, scale: float, fill: float
) -> Any:
    """The mask says which scores go, and the largest one is subtracted once more."""
    return weights_of(less_largest(np.where(mask, fill, scaled_scores(q, k, None, scale)))) @ v


def mask_multiplied(q: Any, k: Any, v: Any, mask: Any, bias: Any, keep: Any, drop: Any, scale: float) -> Any:
    """A mask that is multiplied turns a score into 0, which is no -inf."""
    return weights_of(difference(q @ k.swapaxes(1, 2) * scale * mask)) @ v


def mask_multiplied_and_added(
    q: Any, k: Any, v: Any, mask: Any, bias: Any, keep: Any, drop: Any, scale: float, weight: float
) -> Any:
    """With a large number added where the mask leaves 0."""
    return weights_of(difference(q @ k.swapaxes(1, 2) * scale * mask) + bias * weight) @ v


def tempered(q: Any, k: Any, v: Any, mask: Any, bias: Any, keep: Any, drop: Any, scale: float) -> Any:
    """A factor that all keys share, `mask: [b, i]`: a temperature that is a value."""
    return weights_of(difference(q @ k.swapaxes(1, 2) * scale * mask[:, :, None])) @ v


ROLES: Final[Mapping[Callable[..., Any], str]] = {
    keeps: "keeps", keeps_dropped: "keeps", hides: "hides", hides_dropped: "hides", keeps_before_scale: "keeps",
    kept_twice: "keeps", keeps_shifted_twice: "keeps", hides_shifted_twice: "hides",
}  # fmt: skip
"""What the mask of a form says of a score; it is added where a form is not listed."""

ONE: Final = frozenset(("mask",))
TWO: Final = frozenset(("mask", "bias"))
KEEP: Final = frozenset(("keep",))
DROP: Final = frozenset(("drop",))
LATER: Final = frozenset(("keep", "drop"))
FURTHER: Final = frozenset(("bias", "keep", "drop"))
NO_BIAS: Final = frozenset(("bias", "keep"))

_BOOLEAN: Final = {"mask": "bool", "keep": "bool"}


def _chosen(formula: Callable[..., Any], excluded: frozenset[str] = LATER) -> Form:
    return Form(formula, required=ONE, excluded=excluded, constants=("fill",), dtypes=_BOOLEAN)


def _twice(formula: Callable[..., Any], dtypes: Mapping[str, str]) -> Form:
    return Form(formula, required=ONE | KEEP, excluded=DROP | {"bias"}, constants=("fill",), dtypes=dtypes)


def _dropped(formula: Callable[..., Any]) -> Form:
    constants = ("fill", "rescale")
    return Form(formula, required=ONE | DROP, excluded=NO_BIAS, constants=constants, dtypes=_BOOLEAN)


CHOOSING: Final = (
    _chosen(keeps), _chosen(hides), _chosen(keeps_before_scale, FURTHER), _twice(added_and_kept, {"keep": "bool"}),
    _twice(kept_twice, _BOOLEAN),
)  # fmt: skip
CHOOSING_DROPPED: Final = (_dropped(keeps_dropped), _dropped(hides_dropped))
CHOOSING_SHIFTED: Final = (_chosen(keeps_shifted_twice, FURTHER), _chosen(hides_shifted_twice, FURTHER))
WEIGHTED: Final = Form(weighted, required=ONE, excluded=LATER, constants=("weight",))

TEMPERED: Final = Lookalike(
    tempered,
    "scale-value",
    "scores with one number in front, known before the run",
    "scores multiplied by a value that is the same for all keys: q multiplied by it is an input like any other",
    ONE,
    FURTHER,
    labels={"mask": "b i"},
)
MULTIPLIED: Final = tuple(
    Lookalike(
        form,
        "mask-multiplied",
        "scores with one number in front, and a mask that is added or selects",
        "scores multiplied by a value: where a mask is 0 a score becomes 0, not -inf",
        required,
        FURTHER - required,
        constants,
    )
    for form, required, constants in ((mask_multiplied, ONE, ()), (mask_multiplied_and_added, TWO, ("weight",)))
)
