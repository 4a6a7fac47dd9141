"""Convolution: a kernel slides over an image and every product is summed.

Recognises
    Products of windows and a kernel, summed: over 1 to 3 or more spatial axes, with stride, dilation, groups
    (depthwise), asymmetric or negative pads of zero, zeros between elements (transposed), reversed kernels, channels
    first or last, batch or channels of extent 1. The spelling does not matter: unfold and matmul, `sliding_window_view` and
    einsum or tensordot, stacked slices, shifted slices summed, strided views, gathers by constant tables. Without a
    window it is a convolution if an unbatched kernel meets an image of rank 3 or more whose channel axis precedes a
    spatial one (1x1); one pixel whose axes neither kernel nor result have is a linear layer, and so is
    `[batch, time, width]` that meets `[width, heads, head]` or `[heads, width, head]`. Groups that share a kernel count as batch.

Why it pays
    The windows matrix repeats every element as often as windows overlap (9 times for 3x3); a kernel reads it once.

Declines when
    `pad-fill` (a note on the convolution of the padded image): the pad is something else than 0. `grid`: slices of one
    value are multiplied and summed, but their offsets lie on no grid. `sign`: of three or more such slices the lesser part is
    subtracted.

Not recognised
    Channels made one at a time that get a bias or an activation before they are stacked. Folds with movement between their
    steps. Taps among which something else is summed are no convolution of their own: `conv_bn_activation` has them with a
    bias and a residual, an array of zeros that the sum begins with, say. Taps of several kernel values, one each. Taps that are cut out of
    `np.roll`, which go on at the other end. Weights
    written as numbers into the sum (0.25 * a + 0.5 * b). Kernels that differ by position. Windows that go through another
    op before the product (a cast: cast the image instead). Products that are padded before they are summed, as a transposed
    convolution by overlapping results is. A batch in two axes with another axis between them is bound at the value that
    joins them.

Source
    The window semantics of StableHLO (`stablehlo.convolution`); `examples/seed_convolution.py` fixes the roles of
    axes of extent 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching.closure import common_chain, interior
from topos_core.matching.convolution import STEPS, Convolution, is_linear, is_linear_product, read_convolution
from topos_core.matching.facts import ConvolutionFacts
from topos_core.matching.form import Form, OffGrid
from topos_core.matching.formula import Arrays, convolve
from topos_core.matching.grid import fault, slides
from topos_core.matching.kernel_layout import moved_kernel
from topos_core.matching.match import Match, NearMiss
from topos_core.matching.pattern import Example, Pattern
from topos_core.matching.recut import recut
from topos_core.matching.signs import Signed, signed_sums
from topos_core.matching.window import Difference, read_form
from topos_core.tape.tape import Tape

if TYPE_CHECKING:
    from topos_core.matching.context import Context

IDENTIFIER = "convolution"


def find(context: Context, root: int) -> Match | NearMiss | None:
    """Tries to read a sum of products as a convolution."""
    op = context.op(root)
    if op.name == "concat" and context.is_piece(root):
        return None
    if op.name == "matmul":
        views = [context.view(operand) for operand in op.operands]
        if is_linear_product(*views):
            return _stacked_off_grid(context, root, [view.base for view in views])
    if op.name == "add" and (signed := context.once(signed_sums).get(root)) is not None:
        reading = read_form(signed.form)
        answer = read_convolution(context.tape, signed.form, reading)
        if isinstance(answer, Convolution) and not answer.pointwise:
            if root == max(value for value in signed.inside if context.op(value).name == "add"):
                return _subtracted(signed)
            if isinstance(context.form(root), OffGrid):
                return None  # what is off the grid is a part of what is told above
    form = context.form(root)
    if isinstance(form, OffGrid):
        if not form.is_product or not slides(form.views, form.ranks):
            return None
        if among(context, context.forms.outermost(root)) is not None:
            return None  # some of the taps of what goes on behind a bias
        wrong = fault(form.views, form.ranks)
        return _off_grid(root, form.terms[wrong.place], len(form.terms), wrong.found)
    if not form.is_product or form.operation != "sum":
        return None
    if is_linear(form):
        return _stacked_off_grid(context, root, form.bases)
    reading = read_form(form)
    answer = read_convolution(context.tape, form, reading)
    told = None
    if isinstance(answer, Difference) and answer.code != "view":
        told = _near_miss(context, root, form, answer)
    if not isinstance(answer, Convolution):
        answer = recut(context, root, form, lambda other: _accepted(context.tape, other), reading)
    if told is not None:  # a pad of something else than 0 stays an op, and the windows are those of the padded image
        return told if answer is None else replace(_match(context, root, answer), stopped=(told,))
    if answer is None or answer.pointwise:
        miss = _stacked_off_grid(context, root, form.bases)
        if miss is not None or answer is None:
            return miss
    return _match(context, root, answer)


def among(context: Context, root: int) -> tuple[Match, tuple[int, ...]] | None:
    """Gives the convolution whose taps a sum has beside one or two other terms, and those terms.

    No value holds that convolution, because its sum began with a bias, say: its match has the sum's root.
    """
    found = context.forms.beside(root)
    if found is None or found[0].operation != "sum" or is_linear(found[0]):
        return None
    form, others = found
    reading = read_form(form)
    answer = read_convolution(context.tape, form, reading)
    if not isinstance(answer, Convolution):
        answer = recut(context, root, form, lambda other: _accepted(context.tape, other), reading, others)
    return None if answer is None or answer.pointwise else (_match(context, root, answer, others), others)


def work(tape: Tape, match: Match) -> Work:
    """Counts a multiply-add per output, input channel and tap."""
    facts = match.facts
    result = tape.type_of(match.root)
    taps = math.prod(window.size for window in facts.windows)
    read = sum(tape.type_of(value).bytes for value in set(match.bindings.values()))
    return Work(flops=2 * result.size * facts.in_channels * taps, bytes_read=read, bytes_written=result.bytes)


def evaluate(facts: ConvolutionFacts, arrays: Arrays) -> dict[str, np.ndarray]:
    """Computes the root from the bindings' arrays and the facts alone."""
    return {"root": convolve(facts, arrays)}


def _accepted(tape: Tape, form: Form) -> Convolution | None:
    answer = read_convolution(tape, form, read_form(form))
    return answer if isinstance(answer, Convolution) else None


def _match(context: Context, root: int, found: Convolution, beside: tuple[int, ...] = ()) -> Match:
    """Binds the image's base and, for the kernel, the value nearest to the root that rearranges the whole kernel."""
    tape = context.tape
    kernel, facts = found.kernel, found.facts
    if kernel != found.image:
        within = interior(tape, root, (found.image, kernel, *beside))
        for value in reversed(common_chain(tape, context.readers, within, kernel, root)[1:]):
            view = context.view(value)
            layout = moved_kernel(found.kernel_steps, found.facts, view) if view.base == found.kernel else None
            if layout is not None:
                kernel, facts = value, replace(facts, kernel=layout)
                break
    bindings = {"x": found.image, "kernel": kernel}
    inside = context.region(root, bindings | {f"beside{k}": value for k, value in enumerate(beside)})
    return Match(IDENTIFIER, root, bindings, inside.interior, inside.computing, {}, facts)


def _near_miss(context: Context, root: int, form: Form, difference: Difference) -> NearMiss:
    within = interior(context.tape, root, form.bases)
    pads = [v for v in within if context.op(v).name == "pad" and float(context.op(v).attributes["fill"]) != 0]
    return NearMiss(
        IDENTIFIER, root, max(pads, default=root), difference.code, difference.sentence, difference.expected,
        difference.found, difference.held, len(STEPS), difference.numbers,
    )  # fmt: skip


def _off_grid(root: int, at: int, terms: int, found: str) -> NearMiss:
    return NearMiss(
        IDENTIFIER, root, at, "grid",
        f"{terms} slices of one value are multiplied and summed, but they lie on no grid: {found}",
        "offsets on a grid", found, 1, len(STEPS), {"slices": terms},
    )  # fmt: skip


def _subtracted(signed: Signed) -> NearMiss:
    few = len(signed.subtracted)
    which = f"the one at {signed.offset}, is" if few == 1 else f"{few} more, the first at {signed.offset}, are"
    return NearMiss(
        IDENTIFIER, signed.root, signed.subtracted[0], "sign",
        f"{signed.terms - few} slices of one value are multiplied and added, as taps are, but {which} subtracted",
        "taps that are all added", f"{few} of {signed.terms} subtracted", len(STEPS) - 1, len(STEPS),
        {"slices": signed.terms, "subtracted": few},
    )  # fmt: skip


def _stacked_off_grid(context: Context, root: int, bases: Sequence[int]) -> NearMiss | None:
    """Answers for stacked slices of one value that became no digit: almost a window."""
    for base in bases:
        op = context.op(base)
        if op.name != "concat" or len(op.operands) < 3:
            continue
        views = [context.view(o) for o in op.operands]
        first = views[0]
        alike = all(v._replace(offsets=first.offsets) == first for v in views)
        if alike and first.base != op.operands[0] and slides(views, [len(first.base_shape)]):
            wrong = fault(views, [len(first.base_shape)])
            return _off_grid(root, op.operands[wrong.place], len(views), wrong.found)
    return None


def _examples() -> tuple[Example, ...]:
    from numpy.lib.stride_tricks import sliding_window_view

    def windows_einsum(x: Any, w: Any) -> Any:
        return np.einsum("bchwij,ocij->bohw", sliding_window_view(x, (3, 3), axis=(2, 3)), w)

    def shifted_slices(x: Any, w: Any) -> Any:
        y = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        return sum(
            np.einsum("bchw,oc->bohw", y[:, :, i : i + 6, j : j + 6], w[:, :, i, j]) for i in range(3) for j in range(3)
        )

    def padded_with_ones(x: Any, w: Any) -> Any:
        y = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=1.0)
        return np.einsum("bchwij,ocij->bohw", sliding_window_view(y, (3, 3), axis=(2, 3)), w)

    def depthwise(x: Any, w: Any) -> Any:
        return (sliding_window_view(x, (3, 3), axis=(2, 3)) * w[None, :, None, None]).sum(axis=(-2, -1))

    def pointwise(x: Any, w: Any) -> Any:
        return np.einsum("bchw,oc->bohw", x, w)

    def one_pixel(x: Any, w: Any) -> Any:
        return (x.reshape(2, 6) @ w.reshape(4, 6).T).reshape(2, 4, 1, 1)

    return (
        Example("windows and einsum", windows_einsum, {"x": "f32[2,3,6,6]", "w": "f32[4,3,3,3]"}),
        Example("shifted slices summed", shifted_slices, {"x": "f32[2,3,6,6]", "w": "f32[4,3,3,3]"}),
        Example("depthwise", depthwise, {"x": "f32[2,3,6,6]", "w": "f32[3,3,3]"}),
        Example("1x1", pointwise, {"x": "f32[2,3,6,6]", "w": "f32[4,3]"}),
        Example("1x1 over one pixel", one_pixel, {"x": "f32[2,6,1,1]", "w": "f32[4,6,1,1]"}),
        Example("padded with ones", padded_with_ones, {"x": "f32[2,3,6,6]", "w": "f32[4,3,3,3]"}),
    )


def _counterexamples() -> tuple[Example, ...]:

    def wrong_tap(x: Any, w: Any) -> Any:
        offsets = [(0, 0), (0, 1), (1, 0), (0, 0)]
        taps = np.stack([x[:, :, i : i + 5, j : j + 5] for i, j in offsets], axis=2)
        return (taps[:, None] * w.reshape(1, 4, 3, 4, 1, 1)).sum(axis=(2, 3))

    def subtracted(x: Any, w: Any) -> Any:
        return x[:, :-2] * w[0] - x[:, 1:-1] * w[1] + x[:, 2:] * w[2]

    def last_axis(x: Any, w: Any) -> Any:
        return x @ w

    def batched(q: Any, k: Any) -> Any:
        return np.einsum("bhqd,bhkd->bhqk", q, k)

    def one_pixel(x: Any, w: Any) -> Any:
        return x.reshape(2, 6) @ w

    def joined_heads(x: Any, w: Any) -> Any:
        return x.reshape(2, 4, 3, 5).transpose(0, 2, 1, 3).reshape(2, 3, 20) @ w

    def relative_positions(x: Any, r: Any) -> Any:
        q = x.reshape(2, 3, 3, 3, 4, 5).transpose(3, 0, 4, 1, 2, 5)[0].reshape(8, 3, 3, 5)
        return np.einsum("bhwc,hkc->bhwk", q, r)

    return (
        Example("a tap off the grid", wrong_tap, {"x": "f32[2,3,6,6]", "w": "f32[4,3,2,2]"}, "grid"),
        Example("a tap that is subtracted", subtracted, {"x": "f32[2,9]", "w": "f32[3]"}, "sign"),
        Example("a linear layer", last_axis, {"x": "f32[2,5,3]", "w": "f32[3,4]"}),
        Example("attention scores", batched, {"q": "f32[2,2,5,4]", "k": "f32[2,2,5,4]"}),
        Example("a linear layer of one flattened pixel", one_pixel, {"x": "f32[2,6,1,1]", "w": "f32[6,5]"}),
        Example("heads that come together in a linear layer", joined_heads, {"x": "f32[8,3,5]", "w": "f32[20,7]"}),
        Example("a product for every row of pixels", relative_positions, {"x": "f32[2,3,3,60]", "r": "f32[3,3,5]"}),
    )


PATTERN = Pattern(
    identifier=IDENTIFIER,
    documentation=__doc__ or "",
    roots=frozenset(("matmul", "sum", "add", "concat")),
    find=find,
    work=work,
    evaluate=evaluate,
    examples=_examples(),
    counterexamples=_counterexamples(),
)
