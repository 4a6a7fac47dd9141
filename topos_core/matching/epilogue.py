"""What follows a convolution: bias, batch norm, residual, activation, read upwards from the convolution's root.

One pass over the tape carries a *stage* from value to value: which convolution it comes from, how the value is laid out
over the convolution's result, and what has been applied so far.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from topos_core.matching.activation import ROOTS, Leaves, read_activation
from topos_core.matching.affine import Digit
from topos_core.matching.chains import ELEMENTWISE
from topos_core.matching.channelwise import Frame, Norm, Norms, channel_vector
from topos_core.matching.context import Context
from topos_core.matching.facts import ConvolutionFacts, Layout
from topos_core.matching.layout import Piece, build, usual
from topos_core.matching.match import Match
from topos_core.matching.moved_layout import view_of
from topos_core.matching.movement import moved
from topos_core.matching.tuples import new_tuple
from topos_core.matching.view import View
from topos_core.tape.op import Op

REACH: Final = 200
"""Values looked at to see whether a residual depends on its own convolution; past that it counts as dependent."""


class Stage(NamedTuple):
    """A value on the way from a convolution to the end of its epilogue.

    Args:
        convolution: The convolution's match.
        lies: How the value lies over the canonical result.
        bias, residual: Bound values, or None.
        norm: The batch norm's vectors and epsilon, or None.
        activation: Its name, or `none`; `residual_last` says that it stands before the residual.
        steps: (op, vector) where statistics were folded beforehand.
        alone: Whether every value since the convolution has one reader.
    """

    convolution: Match
    lies: Laid
    bias: int | None = None
    norm: Norm | None = None
    residual: int | None = None
    activation: str = "none"
    residual_last: bool = False
    steps: tuple[tuple[str, int], ...] = ()
    alone: bool = True

    @property
    def applied(self) -> bool:
        """Says whether anything has been applied."""
        return any(v is not None for v in (self.bias, self.norm, self.residual)) or self.is_scaled or self.is_activated

    @property
    def is_scaled(self) -> bool:
        """Says whether a batch norm or a step of one has been applied."""
        return self.norm is not None or bool(self.steps)

    @property
    def is_activated(self) -> bool:
        """Says whether an activation has been applied."""
        return self.activation != "none"


class Laid:
    """How a value that is computed from a convolution, element by element, lies over its canonical result."""

    __slots__ = ("_frame", "_layout", "channels", "view")

    def __init__(self, view: View, channels: int) -> None:
        self.view, self.channels = view, channels
        self._frame: Frame | None = None
        self._layout: tuple[ConvolutionFacts, Layout] | None = None

    def layout(self, facts: ConvolutionFacts) -> Layout:
        """Gives the layout of a value that lies so over the result of a convolution with these facts."""
        if self._layout is None or self._layout[0] is not facts:
            self._layout = facts, _layout(self.view, facts)
        return self._layout[1]

    @property
    def frame(self) -> Frame:
        """Gives the output channel, group above feature, as one number per digit."""
        if self._frame is None:
            features = self.view.base_shape[2]
            self._frame = tuple(
                [
                    tuple([new_tuple(Digit, (extent, (c[1] * features + c[2],))) for extent, c in axis])
                    for axis in self.view.axes
                ]
            )
        return self._frame


def read_stages(
    context: Context, roots: Sequence[Match], among: Sequence[tuple[Match, Sequence[int]]] = ()
) -> dict[int, Stage]:
    """Carries stages through the tape, from every convolution in `roots`.

    Those in `among` have their root's sum in common with the terms that are listed beside them.
    """
    stages: dict[int, Stage] = {}
    laid: dict[int, Laid] = {}
    begins = [_begun(context, match, others) for match, others in among]
    begun = {begin.convolution.root: begin for begin in begins if begin is not None}
    if not roots and not begun:
        return stages
    inner: set[int] = set()
    for match in (*roots, *(begin.convolution for begin in begun.values())):
        inner |= match.interior & match.computing
    starts = {match.root: match for match in roots if match.root not in inner}

    def is_leaf(value: int) -> bool:
        stage = stages.get(value)
        return stage is not None and not stage.is_scaled and stage.residual is None and not stage.is_activated

    def frame_of(value: int) -> tuple[Frame, int] | None:
        known = laid.get(value)
        return None if known is None else (known.frame, known.channels)

    norms = Norms(context, is_leaf, frame_of)
    leaves = Leaves(context.tape)
    for value, op in enumerate(context.tape.ops):
        stage: Stage | None = None
        if value not in inner and context.is_live(value):
            start = starts.get(value)
            if value in begun:
                stage = begun[value]
                laid[value] = stage.lies
            elif start is not None:
                laid[value] = Laid(_start(context, start), start.facts.out_channels)
                stage = Stage(start, laid[value])
            elif laid:
                _lay(context, laid, op, value)
                if value in laid:
                    stage = _next(context, stages, laid, norms, leaves, value)
        if stage is not None:
            if stage.alone and len(context.readers[value]) > 1:
                stage = stage._replace(alone=False)
            stages[value] = stage
        leaves.add(value, stage is not None and not stage.is_activated)
    return stages


def layout_of(stage: Stage) -> Layout:
    """Gives the layout of a stage's value."""
    return stage.lies.layout(stage.convolution.facts)


def _layout(view: View, facts: ConvolutionFacts) -> Layout:
    spatial = len(facts.windows)
    (roles,) = usual(spatial, "bgfS")
    rows = []
    for axis in view.axes:
        row = []
        for extent, coefficients in axis:
            ((form, step),) = [(k, c) for k, c in enumerate(coefficients) if c]
            row.append(new_tuple(Piece, (extent, roles[form], -step)))
        rows.append(row)
    features = facts.out_channels > facts.groups or facts.groups == 1
    wanted = ["b", *(["f"] if features else []), *roles[3:]]
    return build(rows, wanted, usual(spatial, "bfS", "bSf", "fS", "Sf", "bS", "S"), ("b", "f"))


def _lay(context: Context, laid: dict[int, Laid], op: Op, value: int) -> None:
    """Keeps the layout through elementwise ops and rearrangements."""
    for operand in reversed(op.operands):
        if operand in laid:
            below = laid[operand]
            break
    else:
        return
    if op.name in ("reshape", "permute"):
        view = moved(context.tape, op, lambda _: below.view)
        if view is not None:
            laid[value] = Laid(view, below.channels)
    elif op.name in ELEMENTWISE:
        laid[value] = below


def _next(
    context: Context,
    stages: Mapping[int, Stage],
    laid: Mapping[int, Laid],
    norms: Norms,
    leaves: Leaves,
    value: int,
) -> Stage | None:
    op = context.op(value)
    found = [(operand, stages[operand]) for operand in dict.fromkeys(op.operands) if operand in stages]
    if op.name in ("reshape", "permute"):
        if not found or found[0][1].residual is not None:
            return None  # past a residual the layouts of both would part ways
        return found[0][1]._replace(lies=laid[value])
    if op.name in ("add", "sub", "mul", "div"):
        norm = norms.read(value)
        if norm is not None:
            return stages[norm.leaf]._replace(norm=norm, lies=laid[value])
        stepped = _stepped(context, found, laid[value], value)
        if stepped is not None:
            return stepped
    if op.name == "add" and found:
        added = _added(context, found, value)
        if added is not None:
            return added
    if op.name in ROOTS and leaves.above(value):
        return _activated(context, stages, value)
    return None


def _start(context: Context, match: Match) -> View:
    """Gives a convolution root's view over its canonical result."""
    facts: ConvolutionFacts = match.facts
    roles = ("b", "g", "f", *(str(k) for k in range(len(facts.windows))))
    return view_of(facts.result, roles, context.op(match.root).type.shape)


def _begun(context: Context, match: Match, others: Sequence[int]) -> Stage | None:
    """Gives the stage at a sum of taps and other terms: one bias, one residual or both, or no stage."""
    lies = Laid(_start(context, match), match.facts.out_channels)
    bias, residual = None, None
    for other in others:
        vector = channel_vector(context, lies.frame, lies.channels, other) if bias is None else None
        if vector is not None:
            bias = vector
        elif residual is None and context.op(context.view(other).base).name != "constant":
            residual = other
        else:
            return None
    return Stage(match, lies, bias, residual=residual)


def _stepped(context: Context, found: Sequence[tuple[int, Stage]], laid: Laid, value: int) -> Stage | None:
    """Reads an op whose other operand varies along channels alone: a first addition is the bias."""
    op = context.op(value)
    if len(found) != 1 or len(set(op.operands)) < 2:
        return None
    operand, stage = found[0]
    if stage.residual is not None or stage.norm is not None or stage.is_activated:
        return None
    if op.name in ("sub", "div") and op.operands[0] != operand:
        return None
    other = next(o for o in op.operands if o != operand)
    vector = channel_vector(context, laid.frame, laid.channels, other)
    if vector is None:
        return None
    if op.name == "add" and stage.bias is None and not stage.steps:
        return stage._replace(bias=vector)
    return stage._replace(steps=(*stage.steps, (op.name, vector)))


def _added(context: Context, found: Sequence[tuple[int, Stage]], value: int) -> Stage | None:
    """Reads an addition as a residual."""
    op = context.op(value)
    if len(set(op.operands)) < 2:
        return None
    options: list[tuple[int, Stage]] = []
    for operand, stage in found:
        other = next(o for o in op.operands if o != operand)
        if stage.residual is not None or context.op(context.view(other).base).name == "constant":
            continue
        if not _depends(context, other, stage):
            options.append((other, stage))
    if not options:
        return None
    other, stage = max(options, key=lambda option: (option[1].applied, option[1].convolution.root))
    return stage._replace(residual=other, residual_last=stage.is_activated)


def _activated(context: Context, stages: Mapping[int, Stage], value: int) -> Stage | None:
    found = read_activation(context.tape, value, lambda v: v in stages and not stages[v].is_activated)
    if found is None:
        return None
    name, leaf = found
    return stages[leaf]._replace(activation=name)


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
