"""What a convolution kernel costs, and when there is none."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

from topos_core.cost.work import Work
from topos_core.kernels.convolution.choice import by_tiles, columns_of
from topos_core.kernels.convolution.geometry import KNOWN, Problem, pair, problem
from topos_core.kernels.convolution.phases import least_flops, phases_of
from topos_core.kernels.convolution.reading import ReadAlike, ReadImage, ReadKernel, convolution_stage, read_image
from topos_core.kernels.convolution.winograd import FORMS, Form, products_of, whole_tiles
from topos_core.kernels.cores.offering import Cost, blended
from topos_core.kernels.envelopes import envelope, unmeasured
from topos_core.kernels.kernel import Decline, Offer, Stages, Terms
from topos_core.kernels.masking import masked_on
from topos_core.kernels.scratch import InColumns, Reading, Stage, Written, moved_result
from topos_core.matching.facts import ConvolutionFacts, DepthwisePointwiseFacts, Layout
from topos_core.matching.formula import WITHOUT_FUNCTIONS
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape
from topos_core.tape.type import FLOATS

DEPTHWISE_EFFICIENCY: Final = 0.25
"""Share of the peak of a window's sums: one row has no reuse, so it is bound by loads."""
LANES: Final = {"f32": 16, "f64": 8, "f16": 16, "bf16": 16}
"""Lanes that the estimate counts with; fixed, so that a verdict never depends on the machine that asks."""
TILED: Final = "Winograd F({0}x{0}, 3x3), register tiles; direct where a result is not finite"
TILED_EFFICIENCY: Final = 0.6
"""Share of the peak that products and transforms reach together: 0.55 to 0.65 (`python -m benchmarks --only conv3_56 conv3_28`)."""


def offer_convolution(
    tape: Tape,
    match: Match,
    facts: ConvolutionFacts,
    terms: Terms,
    *,
    result: Layout | None = None,
    extra_flops: int = 0,
    extra_bytes: int,
    transcendentals: int,
) -> Offer | Decline:
    """Prices the tile kernel; `extra_flops`, `extra_bytes` and `transcendentals` are the epilogue's, and so is `result` where
    its layout is another than the convolution's."""
    unfit = _unfit(tape, match, facts)
    if unfit is not None:
        return unfit
    tiled = by_tiles(tape, match, terms.off)
    counted = _counted(facts, _lanes(tape, match))
    whole = counted.whole
    cost = Cost(products_of(whole, tiled), TILED_EFFICIENCY) if tiled else counted.cost
    kernel, root = tape.ops[match.bindings["kernel"]].type, tape.ops[match.root].type
    labels = ("b", "g", "f", *(role for role in whole.roles if role))

    masked = masked_on(terms.machine)

    def stages() -> tuple[Stage, ...]:
        finished = facts if result is None else replace(facts, result=result)
        image = _read(finished, root.dtype, tiled, masked)
        return (convolution_stage(finished, root, image, labels, "residual" in match.bindings),)

    return _priced(
        tape, match, terms, kernel=TILED.format(tiled.side) if tiled else counted.kernel, measured_as=tiled.name if tiled else match.pattern,
        cost=cost._replace(flops=cost.flops + extra_flops) if extra_flops else cost, transcendentals=transcendentals,
        extra_bytes=extra_bytes + (kernel.bytes * (tiled.products - 9) // 9 if tiled else 0),
        planes=_laid_elements(facts, tiled.name if tiled else "", masked) * _computed_bytes(tape, match), stages=Stages(stages),
        apart=Written(result or facts.result, labels) if _writes_apart(whole, root.dtype) else None,
        columns=columns_of(match) if tiled else None,
    )  # fmt: skip


def _writes_apart(convolution: Problem, dtype: str) -> bool:
    """Tells whether a result's rows may stand apart at no cost.

    Rows shorter than a register would be stored lane by lane, where a dense result without columns between its rows is one long row.
    """
    if dtype not in ("f32", "f64"):
        return False
    width = convolution.windows[2]
    whole = (width.size - 1) * width.dilation < width.stride
    return not (whole and convolution.result[2] < LANES[dtype])


class _Counted(NamedTuple):
    """A convolution's geometry, what its direct kernel costs, and its name."""

    whole: Problem
    cost: Cost
    kernel: str


@lru_cache(maxsize=KNOWN)
def _counted(facts: ConvolutionFacts, lanes: int) -> _Counted:
    convolution = problem(facts)
    cost = Cost(least_flops(convolution), _efficiency(convolution, lanes))
    return _Counted(convolution, cost, _name(convolution))


def _read(facts: ConvolutionFacts, dtype: str, tiled: Form | None, masked: bool) -> ReadImage:
    """Tells how a convolution reads its image: by `tiled`, or directly."""
    whole = problem(facts)
    runs = [whole_tiles(whole, tiled)] if tiled else [phase.problem for phase in phases_of(whole)] or [whole]
    return read_image(dtype, facts, whole, runs, "tiles" if tiled else "direct", masked)


@lru_cache(maxsize=KNOWN)
def _laid_elements(facts: ConvolutionFacts, tiled: str, masked: bool) -> int:
    """Counts the elements of the planes that a dense image is copied to; `tiled` names Winograd's tiles, "" the direct kernel."""
    form = next((form for form in FORMS if form.name == tiled), None)
    return _read(facts, "f32", form, masked).laid_elements()


def offer_separable(tape: Tape, match: Match, facts: DepthwisePointwiseFacts, terms: Terms) -> Offer | Decline:
    """Prices a pointwise convolution whose right operand a depthwise one makes."""
    unfit = _unfit(tape, match, facts.depthwise.convolution)
    if unfit is not None:
        return unfit
    first, second = pair(facts)
    costs, transcendentals = [], 0
    efficiencies = (DEPTHWISE_EFFICIENCY, _efficiency(second, _lanes(tape, match)))
    for of, stage, efficiency in zip((first, second), (facts.depthwise, facts.pointwise), efficiencies, strict=True):
        size = of.batch * of.groups * of.rows * of.positions
        steps = 2 + stage.residual + (stage.activation != "none")
        costs.append(Cost(of.flops + steps * size, efficiency))
        transcendentals += 0 if stage.activation in WITHOUT_FUNCTIONS else size
    root, read = tape.ops[match.root].type, facts.depthwise.convolution
    image = read_image(root.dtype, read, first, [first], "separable", masked_on(terms.machine))
    return _priced(
        tape, match, terms, kernel="depthwise convolution in the cache of the pointwise one", measured_as=match.pattern,
        cost=blended(costs), transcendentals=transcendentals, extra_bytes=root.bytes if facts.pointwise.residual else 0,
        planes=image.laid_elements() * _computed_bytes(tape, match),
        stages=Stages(lambda: (Stage(_separable_reads(match, facts, image), *moved_result(root, True)),)),
    )  # fmt: skip


def _separable_reads(match: Match, facts: DepthwisePointwiseFacts, image: ReadImage) -> tuple[tuple[str, Reading], ...]:
    running = image.dtype
    reads: list[tuple[str, Reading]] = [
        ("depthwise_kernel", ReadKernel(running, facts.depthwise.convolution)),
        ("pointwise_kernel", ReadKernel(running, facts.pointwise.convolution)),
        ("x", image),
    ]
    if "pointwise_residual" in match.bindings:
        reads.append(("pointwise_residual", ReadAlike(running)))
    return tuple(reads)


def _unfit(tape: Tape, match: Match, facts: ConvolutionFacts) -> Decline | None:
    """Declines what no convolution kernel does."""
    root = tape.ops[match.root].type
    if root.dtype not in FLOATS:
        return Decline(
            "TP206", "no-kernel", f"the kernels compute in floats, this convolution is {root}; cast it to f32 or f64"
        )
    if len(facts.windows) > 3:
        return Decline(
            "TP206", "no-kernel", f"home has kernels for 1 to 3 spatial axes, this convolution has {len(facts.windows)}"
        )
    return None


def _priced(
    tape: Tape,
    match: Match,
    terms: Terms,
    *,
    kernel: str,
    measured_as: str,
    cost: Cost,
    transcendentals: int,
    extra_bytes: int,
    planes: int,
    stages: Stages,
    apart: Written | None = None,
    columns: InColumns | None = None,
) -> Offer | Decline:
    """Offers a kernel, unless its error is unknown or bits are asked for.

    Args:
        measured_as: The row of the table of envelopes.
        extra_bytes: Read besides the image and kernels.
        planes: Bytes of the image's copies into planes.
        stages: What the kernel copies and makes elsewhere.
        apart: How the root is written where its rows stand apart.
        columns: How it is written where its columns must follow each other.
    """
    root = tape.ops[match.root].type
    measured = envelope(measured_as, root.dtype)
    if measured is None:
        return unmeasured(match.pattern, root.dtype)
    if terms.fidelity == "exact":
        return Decline(
            "TP205",
            "fidelity",
            "a convolution kernel adds in another order than the recorded ops, so its bits differ; ask for fidelity fast",
            {"relative_error": measured.relative},
        )
    read = sum(tape.ops[v].type.bytes for name, v in match.bindings.items() if name == "x" or name.endswith("kernel"))
    work = Work(cost.flops, transcendentals, read + planes + extra_bytes, root.bytes + planes)
    return Offer(
        kernel=kernel, work=work, exact=False, envelope=measured, efficiency=cost.efficiency, stages=stages,
        any_order=root.dtype in ("f32", "f64"),  # others are computed wider and copied
        apart=apart, columns=columns,
    )  # fmt: skip


def _lanes(tape: Tape, match: Match) -> int:
    return LANES[tape.ops[match.root].type.dtype]


def _computed_bytes(tape: Tape, match: Match) -> int:
    """Counts the bytes of an element as the kernels compute it."""
    return 8 if tape.ops[match.root].type.dtype == "f64" else 4


def _efficiency(convolution: Problem, lanes: int) -> float:
    """Estimates the share of the peak: lanes and rows that exist, and what a tile costs beside its products.

    `benchmarks/home_against_recorded.py` prints the shares that these figures follow.
    """
    width = convolution.result[2]
    reach = (convolution.windows[2].size - 1) * convolution.windows[2].dilation // convolution.windows[2].stride
    positions = max(convolution.result[1] * (width + (reach + 1) // 2), 1)
    registers = -(-positions // lanes)
    dense = convolution.result[1] * width / (registers * lanes)
    if convolution.rows <= 1:
        return max(0.01, DEPTHWISE_EFFICIENCY * dense)
    tall = 8 if convolution.rows > 4 else 4
    rows = convolution.rows / (-(-convolution.rows // tall) * tall)
    steps = convolution.steps / (convolution.steps + 24)
    return max(0.01, 0.95 * dense * rows * steps)


def _name(convolution: Problem) -> str:
    kind = "depthwise" if convolution.rows == 1 and convolution.groups > 1 else "direct"
    found = phases_of(convolution)
    if found:
        most = max(phase.problem.steps for phase in found)
        return f"{len(found)} {kind} convolutions, one a phase of the stride, register tiles over up to {most} products"
    return f"{kind} convolution, register tiles over {convolution.steps} products"
