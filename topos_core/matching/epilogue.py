"""What follows a convolution: bias, batch norm, residual, activation, read upwards from the convolution's root.

One pass over the tape carries a *stage* from value to value: which convolution it comes from, how the value is laid out
over the convolution's result, and what has been applied so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from topos_core.matching.activation import read_activation
from topos_core.matching.affine import Digit, Digits, regrouped
from topos_core.matching.context import Context
from topos_core.matching.contraction import Cut, shared_digits
from topos_core.matching.facts import ConvolutionFacts, Layout, NormFacts
from topos_core.matching.layout import Piece, build, usual
from topos_core.matching.match import Match, NearMiss
from topos_core.matching.movement import moved
from topos_core.matching.view import View

CANONICAL: Final = -2  # the base of a stage's view: the result as [batch, group, feature, positions...]
ACTIVATIONS: Final = frozenset(("maximum", "minimum", "mul", "div", "tanh", "select", "add"))
REACH: Final = 200
"""Values looked at to see whether a residual depends on its own convolution; past that it counts as dependent."""


class Stage(NamedTuple):
    """A value on the way from a convolution to the end of its epilogue.

    Args:
        convolution: The convolution's match.
        layout: The value's view over the canonical result.
        bias, residual: Bound values, or None.
        norm: The batch norm's match, or None.
        activation: Its name, or `none`.
        alone: Whether every value since the convolution has one reader.
    """

    convolution: Match
    layout: View
    bias: int | None = None
    norm: Match | None = None
    residual: int | None = None
    activation: str = "none"
    alone: bool = True

    @property
    def applied(self) -> bool:
        """Says whether anything has been applied."""
        return self.bias is not None or self.norm is not None or self.residual is not None or self.activation != "none"


Answer = Callable[[int], Match | NearMiss | None]


def read_stages(context: Context, roots: Sequence[Match], norm: Answer) -> dict[int, Stage]:
    """Carries stages through the tape. `roots` are convolutions; `norm` answers for batch norms at a value."""
    stages: dict[int, Stage] = {}
    if not roots:
        return stages
    inner: set[int] = set()
    for match in roots:
        inner |= match.interior & match.computing
    starts = {match.root: match for match in roots if match.root not in inner}
    first = min(starts, default=len(context.tape.ops))
    for value in range(first, len(context.tape.ops)):
        if value in inner or not context.is_live(value):
            continue
        start = starts.get(value)
        stage = Stage(start, _start(context, start)) if start is not None else _next(context, stages, value, norm)
        if stage is not None:
            stages[value] = stage._replace(alone=stage.alone and len(context.readers[value]) <= 1)
    return stages


def layout_of(stage: Stage) -> Layout:
    """Gives the layout of a stage's value."""
    facts: ConvolutionFacts = stage.convolution.facts
    spatial = len(facts.windows)
    roles = ("b", "g", "f", *(str(k) for k in range(spatial)))
    rows = []
    for axis in stage.layout.axes:
        row = []
        for digit in axis:
            ((form, step),) = ((k, c) for k, c in enumerate(digit.coefficients) if c)
            row.append(Piece(digit.extent, roles[form], -step))
        rows.append(row)
    features = facts.out_channels > facts.groups or facts.groups == 1
    wanted = ["b", *(["f"] if features else []), *roles[3:]]
    return build(rows, wanted, usual(spatial, "bfS", "bSf", "fS", "Sf", "bS", "S"), ("b", "f"))


def _next(context: Context, stages: Mapping[int, Stage], value: int, norm: Answer) -> Stage | None:
    op = context.op(value)
    found = [(operand, stages[operand]) for operand in dict.fromkeys(op.operands) if operand in stages]
    if op.name in ("reshape", "permute"):
        return _moved(context, value, found[0][1]) if found else None
    if op.name in ("add", "sub", "mul", "div", "neg"):
        normed = _normalised(stages, norm(value))
        if normed is not None:
            return normed
    if op.name == "add" and found:
        added = _added(context, value, found)
        if added is not None:
            return added
    if op.name in ACTIVATIONS:
        return _activated(context, stages, value)
    return None


def _start(context: Context, match: Match) -> View:
    """Gives a convolution root's view over its canonical result."""
    facts: ConvolutionFacts = match.facts
    roles = ("b", "g", "f", *(str(k) for k in range(len(facts.windows))))
    return _view_of(facts.result, roles, context.op(match.root).type.shape)


def _view_of(layout: Layout, roles: Sequence[str], shape: Sequence[int]) -> View:
    """Gives the view of a value of `shape` over a base with one axis per role."""
    extents = dict.fromkeys(roles, 1)
    steps: dict[int, int] = {}
    for role in roles:
        own = sorted((k for k, r in enumerate(layout.roles) if r == role), key=lambda k: -layout.rank[k])
        for k in own:
            steps[k] = extents[role]
            extents[role] *= layout.shape[k]
    digits = [
        Digit(extent, tuple(steps[k] if other == role else 0 for other in roles))
        for k, (extent, role) in enumerate(zip(layout.shape, layout.roles, strict=True))
    ]
    axes: tuple[Digits, ...] = tuple((digit,) if digit.extent > 1 else () for digit in digits)
    view = View(CANONICAL, tuple(extents.values()), axes, (0,) * len(roles), (1,) * len(roles), ())
    groups = regrouped(view.digits, shape)
    assert groups is not None  # a layout's axes refine the recorded ones
    return view._replace(axes=groups)


def _moved(context: Context, value: int, stage: Stage) -> Stage | None:
    """Follows a rearrangement; past a residual the layouts of both would part ways."""
    if stage.residual is not None:
        return None
    layout = moved(context.tape, context.op(value), lambda _: stage.layout)
    return None if layout is None else stage._replace(layout=layout)


def _added(context: Context, value: int, found: Sequence[tuple[int, Stage]]) -> Stage | None:
    """Reads an addition as a bias where the other operand varies along channels alone, else as a residual."""
    op = context.op(value)
    if len(set(op.operands)) < 2:
        return None
    options: list[tuple[int, Stage]] = []
    for operand, stage in found:
        other = next(o for o in op.operands if o != operand)
        if stage.activation != "none" or stage.residual is not None:
            continue
        if stage.bias is None and stage.norm is None:
            vector = channel_vector(context, stage, other)
            if vector is not None:
                return stage._replace(bias=vector)
        if context.op(context.view(other).base).name != "constant" and not _depends(context, other, stage):
            options.append((other, stage))
    if not options:
        return None
    other, stage = max(options, key=lambda option: (option[1].applied, option[1].convolution.root))
    return stage._replace(residual=other)


def _normalised(stages: Mapping[int, Stage], answer: Match | NearMiss | None) -> Stage | None:
    """Reads a batch norm whose statistics are given, over the channels of the convolution."""
    if not isinstance(answer, Match) or answer.bindings["x"] not in stages:
        return None
    stage = stages[answer.bindings["x"]]
    facts: NormFacts = answer.facts
    if stage.norm is not None or stage.residual is not None or stage.activation != "none":
        return None
    if facts.image != facts.result or facts.channels != stage.convolution.facts.out_channels:
        return None
    channels = _view_of(facts.image, ("c", "n"), stage.layout.shape)
    if not _is_channel(stage, [_only(digit, 0) for axis in channels.axes for digit in axis], channels):
        return None
    return stage._replace(norm=answer)


def _activated(context: Context, stages: Mapping[int, Stage], value: int) -> Stage | None:
    found = read_activation(context.tape, value, lambda v: v in stages and stages[v].activation == "none")
    if found is None:
        return None
    name, leaf = found
    return stages[leaf]._replace(activation=name)


def channel_vector(context: Context, stage: Stage, value: int) -> int | None:
    """Finds the value behind `value` that holds one element per output channel; None where it varies otherwise."""
    count = stage.convolution.facts.out_channels
    for candidate in _chain(context, value):
        op = context.op(candidate)
        if op.type.size != count or (count == 1 and op.name == "constant"):
            continue  # a number, not a vector of one
        view = context.view(value)
        if view.base != candidate:
            view = Cut(context.tape, context.views, frozenset((candidate,))).of(value)
        if view.base == candidate and not view.bounds and not any(view.offsets) and set(view.divisors) <= {1}:
            weights = [1] * len(view.base_shape)
            for k in reversed(range(len(weights) - 1)):
                weights[k] = weights[k + 1] * view.base_shape[k + 1]
            flat = [
                sum(w * c for w, c in zip(weights, digit.coefficients, strict=True))
                for axis in view.axes
                for digit in axis
            ]
            if _is_channel(stage, flat, view):
                return candidate
    return None


def _chain(context: Context, value: int) -> Iterator[int]:
    """Lists a value and what it moves, the deepest first."""
    chain = [value]
    base = context.view(value).base
    while chain[-1] != base and context.op(chain[-1]).operands:
        chain.append(context.op(chain[-1]).operands[0])
    return reversed(chain)


def _is_channel(stage: Stage, flat: Sequence[int], view: View) -> bool:
    """Says whether a vector's index, one coefficient per digit of `view`, is the output channel: group, then feature."""
    features = stage.layout.base_shape[2]
    at = 0
    for mine, theirs in zip(stage.layout.axes, view.axes, strict=True):
        indexed = tuple(Digit(digit.extent, (flat[at + k],)) for k, digit in enumerate(theirs))
        at += len(theirs)
        pairs = shared_digits(mine, indexed)
        if pairs is None:
            return False
        for _, stepped, index in pairs:
            assert stepped is not None  # both sides have digits
            assert index is not None
            if stepped[1] * features + stepped[2] != index[0]:
                return False
    return True


def _only(digit: Digit, form: int) -> int:
    return digit.coefficients[form]


def _depends(context: Context, value: int, stage: Stage) -> bool:
    """Says whether a value is computed from the stage's own convolution."""
    root = stage.convolution.root
    if stage.alone or value < root:
        return False
    seen: set[int] = set()
    stack = [value]
    while stack:
        at = stack.pop()
        if at == root or len(seen) > REACH:
            return True
        if at > root and at not in seen:
            seen.add(at)
            stack.extend(context.op(at).operands)
    return False
