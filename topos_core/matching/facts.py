"""What a match tells kernels and raises, in layouts that neither needs views nor digits to read.

A `Layout` says how to look at a value: reshape it to `shape`; axis k then has the role `roles[k]`. Roles are `b`
(batch), `f` (feature), `i` (input channel of a kernel), `o` (output channel), `g` (group, the major part of `o`, and of
`f`), `c` (channel of a norm), `n` (reduced by a norm), and `0`, `1`, `2` for spatial axes. A role may stand several
times; its axes are then one mixed-radix number, most significant first, in the order in which they stand unless `order`
says otherwise. A role that has extent 1 everywhere may be absent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from topos_core.matching.view import View

Sides = tuple[int, int]


class Layout(NamedTuple):
    """How to look at a value: reshape to `shape`, then axis k plays `roles[k]`. A NamedTuple because a match makes several.

    `rank` orders the axes of one role: among axes of equal role the one with the smaller `rank` is more significant.
    """

    shape: tuple[int, ...]
    roles: tuple[str, ...]
    rank: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """One spatial axis: output position p reads input `p * stride + tap * dilation - low` of the (base-dilated) image.

    `low` and `high` may be negative (a crop). `base_dilation` d puts d - 1 zeros between image elements (a transposed
    convolution). `reversed` says that the recorded kernel runs backwards along this axis.
    """

    size: int = 1
    stride: int = 1
    dilation: int = 1
    low: int = 0
    high: int = 0
    base_dilation: int = 1
    reversed: bool = False


@dataclass(frozen=True, slots=True)
class ConvolutionFacts:
    """A convolution: bindings `x` (image), `kernel`, and for `conv_bn_activation` the epilogue's.

    `image` has each of b, f, 0.. exactly once (units inserted). `kernel` has roles g, o, i, 0.. . `result` is the root's
    layout with roles b, g, f, 0.. (`g` above `f`). `batch`, `in_channels` (per group), `out_channels` (in all), `groups`.
    """

    image: Layout
    kernel: Layout
    result: Layout
    windows: tuple[Window, ...]
    groups: int
    batch: int
    in_channels: int
    out_channels: int


@dataclass(frozen=True, slots=True)
class WindowReduceFacts:
    """A reduction over windows: binding `x`.

    `windows` has one entry per axis of `x` as recorded (size 1 where nothing slides). `result` looks at the root; its
    roles are axis numbers of `x` as strings. `pad_fill` is what the recorded program reads outside the image; None where
    nothing is padded. `scale` multiplies the reduced value (1 / count for an average; 1.0 otherwise). An average whose
    divisor differs by position has `counted`: per axis how many positions before and behind the image count as elements,
    (0, 0) where padding is left out; it divides by the number of a window's taps that count.
    """

    reducer: Literal["max", "min", "sum"]
    windows: tuple[Window, ...]
    result: Layout
    pad_fill: float | None
    scale: float = 1.0
    counted: tuple[Sides, ...] | None = None

    @property
    def is_average(self) -> bool:
        """Says whether a sum is divided by a number of elements."""
        return self.scale != 1.0 or self.counted is not None


@dataclass(frozen=True, slots=True)
class NormFacts:
    """A batch norm: bindings `x`, `scale`?, `shift`?, and `mean`, `variance` for inference.

    `image` looks at `x`, `result` at the root, both with roles `c` and `n`. `count` is the number of reduced elements.
    Vectors (`scale`, `mean`, named results) hold one element per `c`, whatever their recorded shape.
    """

    image: Layout
    result: Layout
    channels: int
    count: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class EpilogueFacts:
    """What `conv_bn_activation` does after the convolution, in order: bias, batch norm or steps, residual, activation.

    `activation` is one of `formula.ACTIVATIONS`. Of the four relus one is the maximum; `relu_where_positive` and
    `relu_where_not_negative` give 0 for NaN, the latter and `relu_unless_negative` keep -0. What ends in `of_exp` is made of
    e / (1 + e), which overflows to NaN. `norm` holds the epsilon of an inference batch norm (bindings
    `bn_mean bn_variance bn_scale bn_shift`), else None. `bias` and `residual` say whether those bindings exist; the residual
    has the root's type and layout. `residual_last` puts the activation first.
    `steps` stand where statistics were folded beforehand: step k is `add`, `sub`, `mul` or `div` by the vector `step<k>` with
    one element per output channel; `norm` is then None. `among` says that no value holds the convolution alone: bias and
    residual are summed among its taps.
    """

    convolution: ConvolutionFacts
    result: Layout
    bias: bool
    norm: float | None
    residual: bool
    activation: str
    residual_last: bool = False
    steps: tuple[str, ...] = ()
    among: bool = False


@dataclass(frozen=True, slots=True)
class DepthwisePointwiseFacts:
    """A depthwise convolution with its epilogue and the pointwise one that reads it, with its own.

    Bindings `x`, and those of each convolution's epilogue with `depthwise_` or `pointwise_` in front. The pointwise
    convolution's `image` looks at what `depthwise.result` looks at: their channels are numbered alike; its other axes may
    count positions in one.
    """

    depthwise: EpilogueFacts
    pointwise: EpilogueFacts


@dataclass(frozen=True, slots=True)
class CoreFacts:
    """A scalar core: every binding's layout and the root's, with the roles that the pattern's term gives to axes.

    `layouts` has one entry per binding, `result` looks at the root. `extents` counts positions per role; a role of extent
    1 may stand in no layout. `constants` are the numbers that the program chose (`epsilon`, `scale`). `options` say which
    of several formulas it is, in the pattern's own words (`approximate: tanh`, `mask: keeps`).
    """

    layouts: Mapping[str, Layout]
    result: Layout
    extents: Mapping[str, int]
    constants: Mapping[str, float] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)

    def lies_along(self, name: str, roles: Sequence[str]) -> bool:
        """Tells whether a binding has exactly one whole axis a role, in this order; axes of extent 1 count for nothing."""
        layout = self.layouts.get(name)
        if layout is None:
            return False
        lying = [(role, extent) for role, extent in zip(layout.roles, layout.shape, strict=True) if extent != 1]
        return lying == [(role, self.extents[role]) for role in roles if self.extents[role] != 1]

    def is_causal(self, name: str, table: np.ndarray | None, kind: str) -> bool:
        """Tells whether a mask lies along positions `i` and keys `j` alone, and lets position i see keys 0 to i only.

        Args:
            name: Its binding.
            table: Its values, of the recorded shape; None where they are not known.
            kind: `keeps` or `hides` for flags, `added` for numbers, of which those that are not 0 hide.
        """
        if table is None or not self.lies_along(name, ("i", "j")):
            return False
        lying = table.reshape(self.extents["i"], self.extents["j"])  # the recorded axes say nothing of what they are
        seen = lying == 0 if kind == "added" else lying == (kind == "keeps")
        return bool((seen == np.tri(*seen.shape, dtype=np.bool_)).all())


class LayerOf(NamedTuple):
    """What one projection of a block is: a value, a weight and a bias, and how each is looked at.

    By one square weight a value is projected in two ways, `x @ w` and `x @ w.T`: what is bound says not which.
    """

    source: str
    weight: int
    bias: int | None
    layouts: tuple[tuple[str, Layout], ...]
    result: Layout


def layer_of(name: str, source: str, bindings: Mapping[str, int], facts: CoreFacts) -> LayerOf:
    """Identifies a projection of a block: those that are equal are computed once.

    Args:
        name: Of its side: the weight and the bias are bound as `<name>_weight` and `<name>_bias`.
        source: What the value that it projects is bound as.
        bindings: The block's.
        facts: The projection's own.
    """
    layouts = tuple(sorted(facts.layouts.items()))
    return LayerOf(source, bindings[f"{name}_weight"], bindings.get(f"{name}_bias"), layouts, facts.result)


@dataclass(frozen=True, slots=True)
class NormLinearFacts:
    """A layer norm and the linear layer that reads it: bindings `x`, `scale`?, `shift`?, `weight`, `bias`?.

    `linear.options` names the activation behind the layer, where there is one. The norm is a named result: others may
    read it.
    """

    norm: CoreFacts
    linear: CoreFacts


@dataclass(frozen=True, slots=True)
class GatedMlpFacts:
    """A gated layer: `activation(gate) * up`, both projections of one value, and the projection of the product behind it.

    Bindings `x`, `gate_weight`, `gate_bias`?, `up_weight`, `up_bias`?; `gate` and `up` are the facts of those projections,
    `product` looks at what they give. Where one projection holds both, `parts` has the index map of each on its result;
    its weight is then bound under both names. `down` is the projection of the product (`down_weight`, `down_bias`?), whose
    x is the product's root.
    """

    activation: str
    product: CoreFacts
    gate: CoreFacts
    up: CoreFacts
    down: CoreFacts | None
    parts: Mapping[str, View]


@dataclass(frozen=True, slots=True)
class MultiHeadFacts:
    """Attention with its projections: bindings `x` (queries), `context` (keys and values; absent where it is x),
    `query_weight`, `key_weight`, `value_weight`, `output_weight` and a `.._bias` where there is one, `mask`?, `keep`?.

    `attention` looks at the projected q, k, v. Where one projection holds several of them, `parts` has the index map of each
    on that projection's result; its weight is then bound under each name.
    """

    attention: CoreFacts
    query: CoreFacts
    key: CoreFacts
    value: CoreFacts
    output: CoreFacts
    parts: Mapping[str, View]


@dataclass(frozen=True, slots=True)
class SiblingFacts:
    """Products of `x: [rows, steps]` with `w0: [steps, columns[0]]` and so on; the last one is the root."""

    rows: int
    steps: int
    columns: tuple[int, ...]

    @property
    def results(self) -> tuple[str, ...]:
        """Names what the products give, in their order."""
        return (*(f"sibling{number}" for number in range(len(self.columns) - 1)), "root")
