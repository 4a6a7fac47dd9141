"""What a convolution kernel costs, and when there is none."""

from __future__ import annotations

from typing import Final

from topos_core.cost.work import Work
from topos_core.kernels.convolution.choice import WINOGRAD, by_tiles
from topos_core.kernels.convolution.geometry import Problem, problem
from topos_core.kernels.convolution.winograd import products_of
from topos_core.kernels.envelopes import envelope, unmeasured
from topos_core.kernels.kernel import Decline, Offer, Terms
from topos_core.matching.facts import ConvolutionFacts
from topos_core.matching.match import Match
from topos_core.tape.tape import Tape
from topos_core.tape.type import FLOATS, numpy_dtype

LANES: Final = {"f32": 16, "f64": 8, "f16": 16, "bf16": 16}
"""Lanes that the estimate counts with; fixed, so that a verdict never depends on the machine that asks."""
TILED: Final = "Winograd F(4x4, 3x3), register tiles; direct where a result is not finite"
TILED_EFFICIENCY: Final = 0.6
"""Share of the peak that products and transforms reach together: 0.55 to 0.65 (`python -m benchmarks --only conv3_56 conv3_28`)."""


def offer_convolution(
    tape: Tape,
    match: Match,
    facts: ConvolutionFacts,
    terms: Terms,
    *,
    extra_flops: int = 0,
    extra_bytes: int,
    transcendentals: int,
) -> Offer | Decline:
    """Prices the tile kernel; `extra_flops`, `extra_bytes` and `transcendentals` are the epilogue's."""
    root = tape.ops[match.root].type
    if root.dtype not in FLOATS:
        return Decline(
            "TP206", "no-kernel", f"the kernels compute in floats, this convolution is {root}; cast it to f32 or f64"
        )
    if len(facts.windows) > 3:
        return Decline(
            "TP206", "no-kernel", f"home has kernels for 1 to 3 spatial axes, this convolution has {len(facts.windows)}"
        )
    tiled = by_tiles(tape, match, facts, terms.off)
    measured = envelope(WINOGRAD if tiled else match.pattern, root.dtype)
    if measured is None:
        return unmeasured(match.pattern, root.dtype)
    if terms.fidelity == "exact":
        return Decline(
            "TP205",
            "fidelity",
            "a convolution kernel adds in another order than the recorded ops, so its bits differ; ask for fidelity fast",
            {"relative_error": measured.relative},
        )
    convolution = problem(facts)
    image = tape.ops[match.bindings["x"]].type
    kernel = tape.ops[match.bindings["kernel"]].type
    padded = _plane_elements(convolution) * numpy_dtype("f64" if root.dtype == "f64" else "f32").itemsize
    work = Work(
        flops=(products_of(convolution) if tiled else convolution.flops) + extra_flops,
        transcendentals=transcendentals,
        bytes_read=image.bytes + padded + kernel.bytes * (4 if tiled else 1) + extra_bytes,
        bytes_written=root.bytes + padded,
    )
    return Offer(
        kernel=TILED if tiled else _name(convolution),
        work=work,
        exact=False,
        envelope=measured,
        efficiency=TILED_EFFICIENCY if tiled else _efficiency(convolution, LANES[root.dtype]),
        temporary_bytes=padded,
    )


def _plane_elements(convolution: Problem) -> int:
    size = convolution.batch * convolution.groups * convolution.channels
    for extent, window in zip(convolution.result, convolution.windows, strict=True):
        taps = [tap * window.dilation for tap in range(window.size)]
        residues = {tap % window.stride for tap in taps}
        size *= len(residues) * (extent + max(taps) // window.stride)
    return size


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
        return max(0.01, 0.25 * dense)  # one row has no reuse: it is bound by loads
    tall = 8 if convolution.rows > 4 else 4
    rows = convolution.rows / (-(-convolution.rows // tall) * tall)
    steps = convolution.steps / (convolution.steps + 24)
    return max(0.01, 0.95 * dense * rows * steps)


def _name(convolution: Problem) -> str:
    kind = "depthwise" if convolution.rows == 1 and convolution.groups > 1 else "direct"
    return f"{kind} convolution, register tiles over {convolution.steps} products"
