"""Window reduce: the largest, the smallest, the sum or the average of every window.

Recognises
    Reductions (max, min, sum) over windows of any rank, stride, dilation and pad, spelled by unfold,
    `sliding_window_view`, reshape into tiles, gathers by constant tables, strided views, or as a fold of shifted slices
    (`maximum` of `maximum`, `a + b + c`) in any order. A sum divided by the window's count is an average; so is one that is
    divided by how many elements each window has in the image, counted by the same windows over ones or given as a
    table. Averages of tiles may be taken axis by axis; f16 and bf16 may be reduced in f32. The pad's fill
    is part of the match; a pad that the reduction would notice (0 under a max) stays an op in front of it, and is told.

Why it pays
    A window view repeats every element as often as windows overlap; a kernel reads it once and writes one result.

Declines when
    `pad-fill` (a note on the windows of the padded value): 0 under a max is no pool that pads with -inf. `divisor`: a sum over windows is divided by another number than the window's count (a note on the sum).
    `grid`: slices of one value are folded, but their offsets lie on no grid.

Not recognised
    Averages times a table of reciprocal counts, divided by a float table of more than 64 counts (that is a parameter: let
    the program count ones), or by counts whose axes are moved behind; averages of overlapping windows taken axis by axis
    (each is one); differences of running sums; averages of windows that are cut out one by one; windows that are cast to
    f64 before they are reduced. Weighted folds (`0.25 * a + 0.5 * b`), a fold one of whose steps another op reads.
    Reductions of whole axes, and of whole axes together with tiles of another (the statistics of a norm). Pools of powers
    (an lp pool, `sqrt(sum(x^2))` of each window).

Source
    The window semantics of StableHLO (`stablehlo.reduce_window`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from topos_core.cost.work import Work
from topos_core.matching.closure import Region, interior, outside_readers
from topos_core.matching.counting import counted_by_ones, counted_by_table, is_unmoved, repeated
from topos_core.matching.facts import WindowReduceFacts
from topos_core.matching.form import Form, OffGrid
from topos_core.matching.formula import Arrays, reduce_windows
from topos_core.matching.grid import fault, slides
from topos_core.matching.match import Match, NearMiss
from topos_core.matching.pattern import Example, Pattern
from topos_core.matching.pooling import STEPS, Pooling, read_pooling, slides_nowhere
from topos_core.matching.recut import recut
from topos_core.matching.unscaled import splat, unscaled_forms
from topos_core.matching.widened import NARROW, widened_forms, widens
from topos_core.matching.window import Difference
from topos_core.tape.tape import Tape
from topos_core.tape.type import numpy_dtype

if TYPE_CHECKING:
    from topos_core.matching.context import Context

IDENTIFIER = "window_reduce"


def find(context: Context, root: int) -> Match | NearMiss | None:
    """Tries to read a reduction, or an average of one, as a reduction over windows."""
    found = _read(context, root)
    if isinstance(found, Match) and _is_constant(context, found.bindings["x"]):
        return None  # it is computed once, before a run
    return found


def _read(context: Context, root: int) -> Match | NearMiss | None:
    op = context.op(root)
    if op.name == "cast":
        return _narrowed(context, root)
    if op.name in ("mul", "div"):
        return _average(context, root) or (_by_position(context, root) if op.name == "div" else None)
    if op.name == "concat" and context.is_piece(root):
        return None
    form = context.form(root)
    if isinstance(form, OffGrid):
        return None if form.is_product else _off_grid(root, form)
    if form.is_product or form.operation is None:
        return None
    if slides_nowhere(form):
        return _widened(context, root, form)
    answer = read_pooling(context.tape, form)
    miss = answer if isinstance(answer, Difference) and answer.code != "view" else None
    if not isinstance(answer, Pooling):
        answer = recut(context, root, form, lambda other: _accepted(context.tape, other))
    told = None if miss is None else _near_miss(context, root, form, miss)
    if answer is None:
        return told
    return _match(context, root, answer.image, answer.facts, () if told is None else (told,))


def work(tape: Tape, match: Match) -> Work:
    """Counts one operation per output and further tap, and one more for the scale."""
    facts = match.facts
    result = tape.type_of(match.root)
    taps = math.prod(window.size for window in facts.windows)
    flops = result.size * (taps - 1 + facts.is_average)
    return Work(flops=flops, bytes_read=tape.type_of(match.bindings["x"]).bytes, bytes_written=result.bytes)


def evaluate(facts: WindowReduceFacts, arrays: Arrays) -> dict[str, np.ndarray]:
    """Computes the root from the bindings' arrays and the facts alone."""
    return {"root": reduce_windows(facts, arrays)}


def _average(context: Context, root: int) -> Match | NearMiss | None:
    """Reads `sum / count` and `sum * (1 / count)`, the reciprocal rounded at the value's dtype."""
    op = context.op(root)
    in_turn = _averaged_in_turn(context, root)
    if in_turn is not None:
        return in_turn
    sides = [(op.operands[0], op.operands[1])]
    if op.name == "mul":
        sides.append((op.operands[1], op.operands[0]))
    for total, number in sides:
        factor = splat(context, number)
        source = context.view(total).base
        if factor is None or context.op(source).name not in ("sum", "add"):
            continue
        below = context.answer(PATTERN, source) or _read(context, source)
        if not isinstance(below, Match) or below.facts.reducer != "sum" or below.facts.scale != 1.0:
            continue
        if total != source:
            return None  # movement between the sum and its scale: the sum stands alone
        count = math.prod(window.size for window in below.facts.windows)
        dtype = numpy_dtype(op.type.dtype)
        needed = dtype.type(count) if op.name == "div" else dtype.type(1 / count)
        if factor != needed:
            return _wrong_divisor(root, op.name, float(factor), count)
        return _match(context, root, below.bindings["x"], replace(below.facts, scale=1 / count))
    return None


def _averaged_in_turn(context: Context, root: int) -> Match | None:
    """Reads an average of averages, taken axis by axis, where nobody else reads the inner ones."""
    form, scale = context.once(unscaled_forms).average(root)
    if form is None or slides_nowhere(form):
        return None
    answer = read_pooling(context.tape, form)
    if not isinstance(answer, Pooling):
        return None
    count = math.prod(window.size for window in answer.facts.windows)
    if not math.isclose(scale * count, 1.0, rel_tol=1e-6):
        return None
    return _match(context, root, answer.image, replace(answer.facts, scale=1 / count))


def _widened(context: Context, root: int, form: Form) -> Match | None:
    """Reads windows that are cast to f32 before they are reduced."""
    if not any(widens(context.tape, context.op(base)) for base in form.bases):
        return None
    wide = context.once(widened_forms).of(root)
    answer = read_pooling(context.tape, wide) if isinstance(wide, Form) and not slides_nowhere(wide) else None
    return _match(context, root, answer.image, answer.facts) if isinstance(answer, Pooling) else None


def _narrowed(context: Context, root: int) -> Match | None:
    """Reads what was reduced in f32 and is cast back to the type of its elements."""
    op = context.op(root)
    if op.type.dtype not in NARROW:
        return None
    below = context.answer(PATTERN, op.operands[0])
    if not isinstance(below, Match) or context.op(below.bindings["x"]).type.dtype != op.type.dtype:
        return None
    return _match(context, root, below.bindings["x"], below.facts)


def _by_position(context: Context, root: int) -> Match | None:
    """Reads a sum, or an average, that is divided by how many elements each window has, or by that of ones."""
    total, number = context.op(root).operands
    below = context.answer(PATTERN, total)
    if not isinstance(below, Match) or below.facts.reducer != "sum" or below.facts.counted is not None:
        return None
    facts, shape = below.facts, context.op(below.bindings["x"]).type.shape
    if not is_unmoved(facts.result, context.op(root).type.shape):
        return None
    counted = counted_by_table(context, facts, shape, number) if facts.scale == 1.0 else None
    view = context.view(number)
    if counted is None and repeated(view, context.op(root).type.shape):
        ones = _ones(context, view.base)
        if ones is not None and ones.facts.scale == facts.scale:
            image = context.op(ones.bindings["x"]).type.shape
            counted = counted_by_ones(facts, shape, ones.facts, image)
    if counted is None:
        return None
    bindings = dict(below.bindings)
    inside, own = context.region(root, bindings), context.region(total, bindings)
    counting = inside.computing - own.computing - {root}
    watched = context.observed.union(context.tape.results)
    if not watched.isdisjoint(counting) or outside_readers(context.readers, counting, {root}):
        # what others read too is counted once, before a run, and belongs to nobody
        inside = Region(own.interior | {total}, own.computing | {root})
    facts = replace(facts, scale=1.0, counted=counted)
    return Match(IDENTIFIER, root, bindings, inside.interior, inside.computing, {}, facts)


def _ones(context: Context, value: int) -> Match | None:
    """Reads a value as a sum or an average over windows of an image of ones, in its own axes; casts are passed."""
    op = context.op(value)
    if op.name == "cast":
        view = context.view(op.operands[0])
        return _ones(context, view.base) if view.is_identity else None
    if op.name not in PATTERN.roots:
        return None
    found = _read(context, value)
    if not isinstance(found, Match) or not is_unmoved(found.facts.result, op.type.shape):
        return None
    return found if _is_constant(context, found.bindings["x"], 1) else None


def _is_constant(context: Context, value: int, number: Any = None) -> bool:
    """Says whether a value is a constant, or moved from one; where a number is given, that number everywhere."""
    view = context.view(value)
    if view.base < 0 or context.op(view.base).name != "constant":
        return False
    if number is None:
        return True
    held = context.op(view.base).attributes["value"]
    return not view.bounds and bool((np.asarray(held) == number).all())


def _accepted(tape: Tape, form: Form) -> Pooling | None:
    answer = read_pooling(tape, form)
    return answer if isinstance(answer, Pooling) else None


def _match(
    context: Context, root: int, image: int, facts: WindowReduceFacts, stopped: tuple[NearMiss, ...] = ()
) -> Match:
    bindings = {"x": image}
    inside = context.region(root, bindings)
    return Match(IDENTIFIER, root, bindings, inside.interior, inside.computing, {}, facts, stopped)


def _near_miss(context: Context, root: int, form: Form, difference: Difference) -> NearMiss:
    within = interior(context.tape, root, form.bases)
    pads = [v for v in within if context.op(v).name == "pad"]
    return NearMiss(
        IDENTIFIER, root, max(pads, default=root), difference.code, difference.sentence, difference.expected,
        difference.found, difference.held, len(STEPS), difference.numbers,
    )  # fmt: skip


def _off_grid(root: int, form: OffGrid) -> NearMiss | None:
    count = len(form.terms)
    if count < 3 or not slides(form.views, form.ranks):
        return None
    wrong = fault(form.views, form.ranks)
    return NearMiss(
        IDENTIFIER, root, form.terms[wrong.place], "grid",
        f"{count} slices of one value are folded, but they lie on no grid: {wrong.found}",
        "offsets on a grid", wrong.found, 1, len(STEPS), {"slices": count},
    )  # fmt: skip


def _wrong_divisor(root: int, name: str, factor: float, count: int) -> NearMiss:
    divisor = factor if name == "div" else (1 / factor if factor else math.inf)
    return NearMiss(
        IDENTIFIER, root, root, "divisor",
        f"the sum of {count} elements is divided by {divisor:g}; their average divides by {count}",
        f"a divisor of {count}", f"a divisor of {divisor:g}", 2, len(STEPS), {"divisor": divisor, "count": count},
    )  # fmt: skip


def _examples() -> tuple[Example, ...]:
    from numpy.lib.stride_tricks import sliding_window_view

    def windows(x: Any) -> Any:
        return sliding_window_view(x, (2, 2), axis=(2, 3))[:, :, ::2, ::2].max(axis=(-2, -1))

    def tiles(x: Any) -> Any:
        return x.reshape(2, 3, 3, 2, 3, 2).max(axis=(3, 5))

    def fold(x: Any) -> Any:
        return np.maximum(
            np.maximum(x[:, :, ::2, ::2], x[:, :, 1::2, 1::2]), np.maximum(x[:, :, ::2, 1::2], x[:, :, 1::2, ::2])
        )

    def padded(x: Any) -> Any:
        y = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
        return sliding_window_view(y, (3, 3), axis=(2, 3)).max(axis=(-2, -1))

    def padded_with_zero(x: Any) -> Any:
        y = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        return sliding_window_view(y, (3, 3), axis=(2, 3)).max(axis=(-2, -1))

    def smoothed(x: Any) -> Any:
        return x[:, :-2] + x[:, 1:-1] + x[:, 2:]

    def without_padding(x: Any) -> Any:
        def total(image: Any) -> Any:
            padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
            return sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::2, ::2].sum(axis=(-2, -1))

        return total(x) / total(np.ones_like(x))

    def averaged(x: Any) -> Any:
        return x.reshape(2, 3, 3, 2, 3, 2).astype(np.float32).mean(axis=(3, 5))

    image = {"x": "f32[2,3,6,6]"}
    return (
        Example("windows and max", windows, image),
        Example("tiles and max", tiles, image),
        Example("a fold of strided slices", fold, image),
        Example("padded with -inf", padded, image),
        Example("padded with zero", padded_with_zero, image),
        Example("an average that leaves padding out", without_padding, image),
        Example("an average of f16 in f32", averaged, {"x": "f16[2,3,6,6]"}),
        Example("a running sum", smoothed, {"x": "f32[2,9]"}),
    )


def _counterexamples() -> tuple[Example, ...]:
    def off_grid(x: Any) -> Any:
        return np.maximum(np.maximum(x[:, 0:5], x[:, 1:6]), x[:, 3:8])

    def whole_axis(x: Any) -> Any:
        return x.mean(axis=-1)

    def group_statistic(x: Any) -> Any:
        return x.reshape(2, 2, 3, 6, 6).sum(axis=(2, 3, 4))

    return (
        Example("slices off the grid", off_grid, {"x": "f32[2,9]"}, "grid"),
        Example("a whole axis", whole_axis, {"x": "f32[2,9]"}),
        Example("a group's statistic", group_statistic, {"x": "f32[2,6,6,6]"}),
    )


PATTERN = Pattern(
    identifier=IDENTIFIER,
    documentation=__doc__ or "",
    roots=frozenset(("max", "min", "sum", "maximum", "minimum", "add", "mul", "div", "concat", "cast")),
    find=find,
    work=work,
    evaluate=evaluate,
    examples=_examples(),
    counterexamples=_counterexamples(),
)
